"""Experts whose matrices have several formats: the same answers at every budget, exact sums."""

import json
import random
from pathlib import Path

import pytest
import torch

from runtime.generate.long_prompts import room_for_prompt
from runtime.hardware.profile import MACHINE_VARIABLE
from runtime.inspect.folder import inspect_folder
from runtime.kernels.dispatch import choose_kernels
from runtime.kernels.native import NativeKernels
from runtime.plan.planner import plan_model
from runtime.protocol.errors import ErrorCode
from runtime.protocol.plan import MemoryPart, PlacementPlan
from runtime.protocol.values import Budgets, WeightFormat
from runtime.spec.footprint import policy_bytes, staging_slots, work_bytes
from runtime.spec.ram_slots import Records, ram_experts_bytes, ram_slots_within
from tests.support.hand_made_plans import device_plan, exact_plan
from tests.support.loaded_logits import loaded_logits
from tests.support.mixed_gguf import KINDS, NUM_EXPERTS, NUM_LAYERS, q4_k_m, wide_down, write_mixed
from tests.support.plan_cases import facts_of, machine
from tests.unit.generate.conftest import OpenEngine

IDS = [5, 9, 3, 7, 11, 2, 8, 6, 200, 31, 77]


@pytest.fixture(autouse=True)
def simulated_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine profile with one fast simulated card."""
    path = tmp_path / "machine.json"
    path.write_text(json.dumps({"devices": [{"total_gib": 1, "link_gb_per_s": 1000}]}))
    monkeypatch.setenv(MACHINE_VARIABLE, str(path))


@pytest.mark.parametrize("name", ["q4_k_m", "with_plain"])
def test_answers_are_the_same_bits_with_any_slots_threads_and_on_a_card(
    open_engine: OpenEngine, tmp_path: Path, name: str
) -> None:
    path = write_mixed(tmp_path / "m.gguf", KINDS[name])

    def logits(plan: PlacementPlan) -> torch.Tensor:
        parts = open_engine(plan)._parts
        assert parts is not None
        found = [loaded_logits(parts, IDS) for _ in range(2)]
        assert torch.equal(*found)
        return found[0]

    expected = logits(exact_plan(path))
    for slots in (1, 3, 5):
        assert torch.equal(logits(exact_plan(path, slots)), expected)
    kernels = choose_kernels()
    assert isinstance(kernels, NativeKernels)
    before = kernels.module.num_threads()
    for threads in (1, 3):
        kernels.module.set_num_threads(threads)
        try:
            assert torch.equal(logits(exact_plan(path, 4)), expected)
        finally:
            kernels.module.set_num_threads(before)
    for ram_slots, vram_slots in ((2, 3), (1, 6), (6, 6)):
        assert torch.equal(logits(device_plan(path, ram_slots, vram_slots)), expected)


def test_slots_have_the_sizes_of_their_experts_where_all_have_one(
    open_engine: OpenEngine, tmp_path: Path
) -> None:
    path = write_mixed(tmp_path / "m.gguf", q4_k_m)
    mixed = inspect_folder(str(path)).report.mixed_experts
    assert mixed is not None
    engine = open_engine(exact_plan(path))
    parts = engine._parts
    assert parts is not None
    policy = policy_bytes(NUM_LAYERS, NUM_EXPERTS)
    assert parts.ledger.by_kind()[MemoryPart.EXPERTS] == mixed.records_bytes + policy
    assert engine._model is not None
    assert engine._model.mean_bits == pytest.approx((4.5 * 10 + 6.5625 * 2) / 12)
    # 4.67 bits in two layers, 4 in the others.
    assert list(parts.tally.bits) == [4] * 12 + [5] * 12


def test_slots_by_layer_are_more_and_every_budget_gives_the_same_answers(
    open_engine: OpenEngine, tmp_path: Path
) -> None:
    path = write_mixed(tmp_path / "m.gguf", wide_down, num_experts=16)
    facts, here = facts_of(path), machine()

    def planned(ram_bytes: int | None) -> PlacementPlan:
        return plan_model(facts, here, Budgets(ram_bytes=ram_bytes), context_tokens=128)[0]

    whole = planned(None)
    least, most = whole.min_ram_bytes, whole.all_ram_bytes
    engine = open_engine(whole)
    parts = engine._parts
    assert parts is not None
    expected = loaded_logits(parts, IDS)
    largest = Records.alike(parts.experts.layout.record_bytes, parts.spec)
    drawn, changed = random.Random(4), []
    budgets = [drawn.randint(least, most) for _ in range(10)]
    for budget in (most - 1, *budgets, least, most):
        plan = planned(budget)
        engine.propose(plan, lambda *outcome: changed.append(outcome))
        engine.apply()
        assert parts.plan is plan
        assert torch.equal(loaded_logits(parts, IDS), expected)
        held_bytes = parts.ledger.held_bytes
        assert held_bytes <= plan.ram_bytes <= budget
        assert parts.ledger.by_kind()[MemoryPart.EXPERTS] == plan.ram_parts[MemoryPart.EXPERTS]
        # In slots of the largest record alone they would be fewer, or no more.
        room_bytes = plan.ram_parts[MemoryPart.EXPERTS]
        number, before = (
            sum(plan.slots_per_layer),
            ram_slots_within(parts.spec, largest, room_bytes),
        )
        assert number >= before - staging_slots(parts.spec)
        if budget > (least + 2 * most) // 3:
            assert number > before
    assert len(changed) == 13


def test_slots_of_every_size_give_way_to_a_long_prompt_and_come_back(
    open_engine: OpenEngine, tmp_path: Path
) -> None:
    path = write_mixed(tmp_path / "m.gguf", q4_k_m, num_experts=16)
    parts = open_engine(exact_plan(path, 6, chunk_tokens=4))._parts
    assert parts is not None
    before = parts.ledger.by_kind()
    # Layers of a size have exchanged slots meanwhile.
    expected = loaded_logits(parts, IDS)
    with room_for_prompt(parts, 128):
        assert parts.slots_before_loan
        fewer = parts.experts.slots_per_layer
        held = parts.ledger.by_kind()
        assert held[MemoryPart.WORK] > before[MemoryPart.WORK]
        experts_bytes = ram_experts_bytes(parts.spec, parts.experts.records, fewer)
        assert held[MemoryPart.EXPERTS] == experts_bytes < before[MemoryPart.EXPERTS]
        # Both sizes keep their shares.
        assert abs(sum(fewer[:2]) - sum(fewer[2:])) <= 2
        assert sum(fewer[:2]) < 12 > sum(fewer[2:])
        assert torch.equal(loaded_logits(parts, IDS), expected)
    assert not parts.slots_before_loan
    assert parts.ledger.by_kind() == before
    assert torch.equal(loaded_logits(parts, IDS), expected)


@pytest.mark.parametrize("slots", [(10, 10, 2, 2), (2, 2, 10, 10)])
def test_slots_that_a_plan_shares_out_unevenly_give_way_within_the_budget_and_come_back(
    open_engine: OpenEngine, tmp_path: Path, slots: tuple[int, ...]
) -> None:
    path = write_mixed(tmp_path / "m.gguf", q4_k_m, num_experts=16)
    parts = open_engine(exact_plan(path, 6, chunk_tokens=4))._parts
    assert parts is not None
    spec, ledger, experts = parts.spec, parts.ledger, parts.experts
    tokens = parts.kv.context_tokens
    rest_bytes = ledger.held_bytes - ledger.by_kind()[MemoryPart.EXPERTS]
    used_bytes = rest_bytes + ram_experts_bytes(spec, experts.records, slots)
    more_bytes = work_bytes(spec, tokens, 128) - work_bytes(spec, tokens, 4)
    # With nothing free, and with room for the larger work, where nobody has to give way.
    for free_bytes in (0, more_bytes):
        experts.resize(slots, used_bytes + free_bytes)
        held = ledger.by_kind()
        with room_for_prompt(parts, 128):
            is_wider = parts.home.chunk_tokens > 4
            assert is_wider or (free_bytes == 0 and slots[0] > slots[-1])
            assert sum(experts.slots_per_layer) <= sum(slots)
            experts.check()
        assert ledger.by_kind() == held
        assert sum(experts.slots_per_layer[:2]) == sum(slots[:2])


def test_plan_takes_what_loading_takes_and_no_more_than_the_budget(
    open_engine: OpenEngine, tmp_path: Path
) -> None:
    path = write_mixed(tmp_path / "m.gguf", q4_k_m)
    facts, here = facts_of(path), machine()

    def planned(ram_bytes: int | None) -> PlacementPlan:
        return plan_model(facts, here, Budgets(ram_bytes=ram_bytes))[0]

    whole = planned(None)
    assert whole.expert_format is WeightFormat.Q4K_G32
    assert sum(whole.slots_per_layer) == NUM_LAYERS * NUM_EXPERTS
    least = whole.min_ram_bytes
    for budget in (
        whole.all_ram_bytes,
        whole.all_ram_bytes - 1,
        (least + whole.all_ram_bytes) // 2,
        least,
    ):
        plan = planned(budget)
        assert plan.ram_bytes <= budget
        engine = open_engine(plan)
        parts = engine._parts
        assert parts is not None
        held = parts.ledger.by_kind()
        for part in (MemoryPart.DENSE, MemoryPart.EXPERTS, MemoryPart.KV_CACHE):
            assert held[part] == plan.ram_parts[part], part
        assert sum(held.values()) <= budget
    too_small = planned(least - 1)
    assert too_small.problem is not None
    assert too_small.problem.code is ErrorCode.RAM_BUDGET_TOO_SMALL
