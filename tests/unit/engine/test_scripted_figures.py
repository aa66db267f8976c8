"""The scripted engine's samples: maps that move, tiers as planned, figures that add up."""

import dataclasses
from pathlib import Path

import pytest

from runtime.engine.base import CancelToken
from runtime.engine.script import Script
from runtime.engine.scripted import ScriptedEngine
from runtime.errors import LarderError
from runtime.protocol.chat import ChatMessage, Role, SamplingSettings
from runtime.protocol.errors import ErrorCode
from runtime.protocol.plan import PlacementPlan
from runtime.protocol.telemetry import ExpertMap, NoteCode, TelemetrySample
from runtime.protocol.values import Budgets, Tier
from runtime.service.scripted import ScriptedPlanning
from runtime.service.scripted_plans import DEVICE
from tests.support.scripted import FAST

LARGE = dataclasses.replace(FAST, num_layers=94, num_experts=512)
HELLO = [ChatMessage(role=Role.USER, text="hello")]


def plan_for(folder: Path, script: Script, budgets: Budgets | None = None) -> PlacementPlan:
    return ScriptedPlanning(script).plan(str(folder), budgets or Budgets(), 0).plans[0]


def loaded(folder: Path, script: Script = FAST, budgets: Budgets | None = None) -> ScriptedEngine:
    engine = ScriptedEngine(script)
    engine.load(plan_for(folder, script, budgets), lambda *_: None, CancelToken())
    return engine


def answered(engine: ScriptedEngine) -> TelemetrySample:
    list(engine.start(1, HELLO, SamplingSettings(), CancelToken()))
    return engine.sample(0.1)


def map_of(sample: TelemetrySample) -> ExpertMap:
    assert sample.experts is not None
    return sample.experts


@pytest.mark.parametrize("script", [FAST, LARGE], ids=["30 x 32", "94 x 512"])
def test_sample_map_has_the_tiers_of_the_plan(tmp_path: Path, script: Script) -> None:
    plan = plan_for(tmp_path, script)
    experts = map_of(loaded(tmp_path, script).sample(0.1))
    assert (experts.num_layers, experts.num_experts) == (script.num_layers, script.num_experts)
    assert len(experts.use) == script.num_layers * script.num_experts
    assert set(experts.bits) == {16}
    for code, tier in enumerate(Tier):
        planned = sum(share.num_experts for share in plan.tiers if share.tier is tier)
        assert experts.tier.count(code) == planned


def test_sample_map_moves_with_an_answer_and_rests_without(tmp_path: Path) -> None:
    engine = loaded(tmp_path)
    before = map_of(engine.sample(0.1))
    assert not any(before.use)
    after = map_of(answered(engine))
    assert sum(map(bool, after.use)) >= FAST.num_layers
    assert map_of(engine.sample(0.1)) == after
    moved = [map_of(answered(engine)) for _ in range(20)][-1]
    assert moved.tier != before.tier
    assert all(moved.tier.count(tier) == before.tier.count(tier) for tier in range(3))
    for _ in range(12 * 256):
        last = map_of(engine.sample(0.1))
    assert not any(last.use), "what is not used fades"


def test_sample_figures_add_up(tmp_path: Path) -> None:
    budgets = Budgets(ram_bytes=800 << 20, vram_bytes={DEVICE: 800 << 20})
    sample = answered(loaded(tmp_path, budgets=budgets))
    assert [count.tier for count in sample.tiers] == list(Tier)
    num_lookups = sample.num_tokens * 8 * FAST.num_layers
    assert sum(count.hits for count in sample.tiers) == num_lookups
    assert sample.tiers[0].hits + sample.tiers[0].misses == num_lookups
    assert sample.drive_bytes_read == sample.tiers[-1].bytes > 0
    assert sample.link_bytes > 0
    assert sum(sample.seconds.values()) == pytest.approx(0.1)
    assert [part.source for part in sample.energy] == ["scripted", "drive-reads"]
    assert sample.limits.drive > 0


def test_sample_of_a_smaller_budget_waits_longer_for_the_drive(tmp_path: Path) -> None:
    waits = []
    for ram_mib in (2048, 800, 560):
        budgets = Budgets(ram_bytes=ram_mib << 20, vram_bytes={DEVICE: 0})
        sample = answered(loaded(tmp_path, dataclasses.replace(FAST, num_experts=24), budgets))
        waits.append(sample.seconds["drive_wait"])
    assert waits == sorted(waits)
    assert waits[0] == 0.0 < waits[1] < waits[2]


def test_sample_after_a_change_of_budgets_has_its_note(tmp_path: Path) -> None:
    engine = loaded(tmp_path)
    assert [note.code for note in engine.sample(0.1).notes] == [NoteCode.EXPERTS_LOADED]
    engine.propose(plan_for(tmp_path, FAST, Budgets(vram_bytes={DEVICE: 0})), lambda *_: None)
    engine.apply()
    sample = engine.sample(0.1)
    tiers = [note.parameters["tier"] for note in sample.notes]
    assert tiers == ["vram", "ram"]
    assert 0 not in map_of(sample).tier


def test_sample_without_a_model_is_refused() -> None:
    with pytest.raises(LarderError) as raised:
        ScriptedEngine(FAST).sample(0.1)
    assert raised.value.code is ErrorCode.NO_MODEL_LOADED
