"""A card behind links of three speeds: one slider moved all the time, the same tokens."""

import json
import random
from pathlib import Path

import pytest

from runtime.engine.base import CancelToken
from runtime.hardware.profile import MACHINE_VARIABLE
from runtime.protocol.values import Tier
from tests.support.engine_runs import GREEDY, Run, answer, user
from tests.support.hand_made_plans import device_plan, exact_plan
from tests.unit.generate.conftest import OpenEngine
from tests.unit.generate.test_placing import Replies

QUESTION = [user("What is the capital of France?")]
NUM_EXPERTS = 6
RAM_SLOTS = 4
NUM_MOVES = 170
"""With each of three links, so more than 500 together."""


def use_link(folder: Path, monkeypatch: pytest.MonkeyPatch, gb_per_s: int) -> None:
    """Let the PC have a card behind a link of a speed."""
    path = folder / "machine.json"
    path.write_text(json.dumps({"devices": [{"total_gib": 1, "link_gb_per_s": gb_per_s}]}))
    monkeypatch.setenv(MACHINE_VARIABLE, str(path))


@pytest.mark.parametrize("gb_per_s", [6, 12, 25])
def test_card_slider_moved_all_the_time_budgets_and_tokens_stay(
    open_engine: OpenEngine,
    qwen2_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    gb_per_s: int,
) -> None:
    use_link(tmp_path, monkeypatch, gb_per_s)
    expected_ids = answer(open_engine(exact_plan(qwen2_folder)), QUESTION).token_ids
    plans = [device_plan(qwen2_folder, RAM_SLOTS, slots) for slots in range(NUM_EXPERTS + 1)]
    # Keys and values of some layers make room for experts.
    plans += [device_plan(qwen2_folder, RAM_SLOTS, 2, ram_kv_layers=kv) for kv in ((0,), (0, 1))]
    engine, replies, draws = open_engine(plans[3]), Replies(), random.Random(gb_per_s)
    engine.sample(0.1)
    parts = engine._parts
    assert parts is not None
    device = parts.device
    assert device is not None
    before_bytes, told_bytes, hits = device.num_bytes_copied, 0, 0

    while len(replies.outcomes) < NUM_MOVES:
        parts.kv.truncate(0)
        run = Run([])
        for event in engine.start(1, QUESTION, GREEDY, CancelToken()):
            run.events.append(event)
            assert device.ledger.held_bytes <= device.ledger.limit_bytes
            assert parts.ledger.held_bytes <= parts.ledger.limit_bytes
            assert device.num_host_bytes <= parts.plan.vram_bytes
            engine.propose(plans[draws.randrange(len(plans))], replies)
        sample = engine.sample(0.1)
        told_bytes += sample.link_bytes
        hits += sum(tier.hits for tier in sample.tiers if tier.tier is Tier.VRAM)
        assert run.token_ids == expected_ids
        parts.experts.check()

    engine.apply()
    assert all(code is None for code in replies.codes)
    assert {outcome[0].vram_bytes for outcome in replies.outcomes} == {
        plan.vram_bytes for plan in plans
    }
    assert hits > 0
    # What the graph was told is what passed, to the byte; copies may still be on their way.
    parts.experts.attach(None)
    told_bytes += engine.sample(0.1).link_bytes
    assert told_bytes == device.num_bytes_copied - before_bytes
    assert told_bytes > 0
