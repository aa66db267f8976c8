"""A card that is full or lost: the budget steps down once and answers stay, or it is told."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from torch.multiprocessing.reductions import StorageWeakRef

from runtime.device.base import Device
from runtime.device.faults import fault_of
from runtime.device.torch_arena import TorchArena
from runtime.device.torch_device import TorchDevice
from runtime.engine.base import CancelToken
from runtime.errors import LarderError, severity_of
from runtime.generate.card_guard import CROWDED_BYTES, FULL_BYTES, LOOK_TOKENS, MAX_GIVEN
from runtime.generate.engine import TieredEngine
from runtime.generate.plan_terms import fewer_in_vram
from runtime.kernels.reference import ReferenceKernels
from runtime.kernels.tiered import TieredKernels
from runtime.policy.spill import WINDOW_STEPS
from runtime.protocol.errors import ErrorCode, Severity
from runtime.protocol.model import TierShare
from runtime.protocol.plan import MemoryPart, PlacementPlan
from runtime.protocol.telemetry import NoteCode
from runtime.protocol.values import Tier
from tests.support.engine_runs import answer, ignore_load_progress, user
from tests.support.hand_made_plans import device_plan, exact_plan
from tests.unit.generate.test_placing import Replies

QUESTION = [user("What is the capital of France?")]
CARD = "torch:0"
VRAM_SLOTS = 5


class Faults:
    """Errors that launches raise, one each time, when a countdown is over."""

    def __init__(self) -> None:
        self.waiting: list[RuntimeError] = []
        self.num_launches_before = 0

    def meet(self) -> None:
        """Raise the next error if it is its turn."""
        if not self.waiting:
            return
        if self.num_launches_before:
            self.num_launches_before -= 1
            return
        raise self.waiting.pop(0)


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    """A card of torch, played by its processor, whose launches can fail."""
    met = Faults()
    launch = TorchDevice.launch

    def launch_or_fail(self: TorchDevice, work: Callable[[], Any]) -> Any:
        met.meet()
        return launch(self, work)

    def open_torch(device: str, budget_bytes: int) -> Device:
        return TorchDevice(device, budget_bytes, torch.device("cpu"))

    monkeypatch.setattr(TorchDevice, "launch", launch_or_fail)
    monkeypatch.setattr("runtime.generate.plan_terms.open_device", open_torch)
    return met


def card_plan(folder: Path) -> PlacementPlan:
    """Return a plan that says what the card holds."""
    plan = device_plan(folder, 4, VRAM_SLOTS, CARD)
    number = sum(plan.vram_slots_per_layer)
    share = TierShare(
        tier=Tier.VRAM, device=CARD, num_experts=number, bytes=plan.vram_parts[MemoryPart.EXPERTS]
    )
    return msgspec.structs.replace(plan, tiers=[share, *plan.tiers])


@pytest.fixture
def engine(faults: Faults, qwen2_folder: Path) -> Any:
    made = TieredEngine(ReferenceKernels())
    made.load(card_plan(qwen2_folder), ignore_load_progress, CancelToken())
    assert made.wait_filled(60)
    yield made
    made.close()


def full() -> RuntimeError:
    return torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 MiB.")


def lost() -> RuntimeError:
    return RuntimeError("CUDA error: unspecified launch failure")


@pytest.mark.expects_log("runtime.generate.card_guard", "WARNING")
@pytest.mark.parametrize("num_launches_before", [0, 7, 60])
def test_full_card_gives_experts_back_once_and_answers_the_same(
    engine: TieredEngine, faults: Faults, qwen2_folder: Path, num_launches_before: int
) -> None:
    alone = TieredEngine(ReferenceKernels())
    alone.load(exact_plan(qwen2_folder), ignore_load_progress, CancelToken())
    expected_ids = answer(alone, QUESTION).token_ids
    alone.close()
    assert answer(engine, QUESTION).token_ids == expected_ids
    engine.sample(0.1)
    parts = engine._parts
    assert parts is not None
    assert parts.device is not None
    before = parts.plan
    parts.kv.truncate(0)
    faults.num_launches_before = num_launches_before
    faults.waiting = [full()]

    run = answer(engine, QUESTION)

    assert run.token_ids == expected_ids
    assert not faults.waiting
    plan = parts.plan
    assert sum(plan.vram_slots_per_layer) < sum(before.vram_slots_per_layer)
    assert parts.device.ledger.held_bytes == plan.vram_bytes == sum(plan.vram_parts.values())
    assert parts.device.ledger.limit_bytes == plan.vram_bytes
    (note,) = engine.sample(0.1).notes
    assert note.code is NoteCode.CARD_FULL
    assert note.parameters == {"old_bytes": before.vram_bytes, "new_bytes": plan.vram_bytes}
    assert engine._model is not None
    (share, *_) = engine._model.tiers
    assert share.num_experts == sum(plan.vram_slots_per_layer)
    assert share.bytes == plan.vram_parts[MemoryPart.EXPERTS]
    parts.experts.check()


@pytest.mark.expects_log("runtime.generate.card_guard", "WARNING")
def test_step_that_failed_holds_no_memory_of_experts_that_gave_way(
    faults: Faults, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Each slot is a piece; the failed step had looked some up."""
    monkeypatch.setattr("runtime.device.torch_arena.PIECE_BYTES", 1)
    engine: TieredEngine = request.getfixturevalue("engine")
    parts = engine._parts
    assert parts is not None
    device, above = parts.device, parts.experts._above
    assert device is not None
    assert above is not None
    answer(engine, QUESTION)
    assert above.num_resident > 0
    slots = [StorageWeakRef(slot.bytes().untyped_storage()) for slot in above.slots.values()]
    num_held: list[int] = []
    compute = TieredKernels.experts

    def fail(self: TieredKernels, *arguments: Any) -> None:
        monkeypatch.setattr(TieredKernels, "experts", compute)
        held = [slot for _, slot in arguments[2]]
        assert any(slot.device == CARD for slot in held)
        raise full()

    def count() -> None:
        num_held.append(sum(not each.expired() for each in slots))

    monkeypatch.setattr(device, "trim", count)
    monkeypatch.setattr(TieredKernels, "experts", fail)
    parts.kv.truncate(0)
    answer(engine, QUESTION)
    assert num_held[0] == len(above.slots) < len(slots)


@pytest.mark.expects_log("runtime.generate.card_guard", "WARNING")
def test_card_full_again_is_told(engine: TieredEngine, faults: Faults) -> None:
    faults.waiting = [full(), full()]

    with pytest.raises(LarderError) as told:
        answer(engine, QUESTION)

    assert told.value.code is ErrorCode.VRAM_FULL
    assert told.value.parameters == {"device": CARD}
    faults.waiting = [full()]
    with pytest.raises(LarderError) as again:
        answer(engine, QUESTION)
    assert again.value.code is ErrorCode.VRAM_FULL


def test_card_without_experts_that_is_full_is_told(faults: Faults, qwen2_folder: Path) -> None:
    engine = TieredEngine(ReferenceKernels())
    engine.load(device_plan(qwen2_folder, 4, 0, CARD), ignore_load_progress, CancelToken())
    faults.waiting = [full()]

    with pytest.raises(LarderError) as told:
        answer(engine, QUESTION)

    assert told.value.code is ErrorCode.VRAM_FULL
    engine.close()


def test_card_without_kernels_for_packed_weights_is_told(engine: TieredEngine) -> None:
    codes = [note.code for note in engine.sample(0.1).notes]

    assert NoteCode.CARD_UNPACKS in codes


def test_lost_card_is_told_and_asks_for_a_new_start(engine: TieredEngine, faults: Faults) -> None:
    faults.num_launches_before = 9
    faults.waiting = [lost()]

    with pytest.raises(LarderError) as told:
        answer(engine, QUESTION)

    assert told.value.code is ErrorCode.DEVICE_LOST
    assert "launch failure" in told.value.detail
    assert severity_of(told.value.code) is Severity.RUNTIME


@pytest.mark.expects_log("runtime.generate.card_guard", "WARNING")
def test_card_lost_while_a_step_is_repeated_is_told(engine: TieredEngine, faults: Faults) -> None:
    faults.waiting = [full(), lost()]

    with pytest.raises(LarderError) as told:
        answer(engine, QUESTION)

    assert told.value.code is ErrorCode.DEVICE_LOST


@pytest.mark.parametrize(
    "num_full",
    [0, pytest.param(1, marks=pytest.mark.expects_log("runtime.generate.card_guard", "WARNING"))],
)
def test_errors_that_are_not_the_cards_stay_what_they_are(
    engine: TieredEngine, faults: Faults, num_full: int
) -> None:
    faults.waiting = [*(full() for _ in range(num_full)), RuntimeError("shapes do not match")]

    with pytest.raises(RuntimeError, match="shapes do not match"):
        answer(engine, QUESTION)


def test_card_with_less_memory_than_thought_is_loaded_with_fewer_experts(
    faults: Faults, qwen2_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = card_plan(qwen2_folder)
    extend = TorchArena.extend
    refused: list[int] = []

    def extend_or_fail(self: TorchArena, num_slots: int) -> list[int]:
        if self._kind is MemoryPart.EXPERTS and self.num_slots == 7 and not refused:
            refused.append(self.num_slots)
            raise LarderError(ErrorCode.VRAM_FULL, device=CARD)
        return extend(self, 1)

    monkeypatch.setattr(TorchArena, "extend", extend_or_fail)
    engine = TieredEngine(ReferenceKernels())

    model = engine.load(plan, ignore_load_progress, CancelToken())

    assert refused == [7]
    assert engine._parts is not None
    assert engine._parts.device is not None
    fewer = fewer_in_vram(plan, engine._parts.experts.layout.record_bytes)
    assert engine._parts.plan == fewer
    assert engine._parts.device.ledger.held_bytes == fewer.vram_bytes
    assert model.tiers == fewer.tiers
    codes = [note.code for note in engine.sample(0.1).notes]
    assert NoteCode.CARD_FULL in codes
    assert answer(engine, QUESTION).token_ids
    engine.close()


def test_card_too_full_for_fewer_experts_too_is_told(
    faults: Faults, qwen2_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object, **more: object) -> torch.Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    device = TorchDevice(CARD, 1 << 20, torch.device("cpu"))
    monkeypatch.setattr("runtime.device.torch_arena.torch.empty", fail)
    with pytest.raises(LarderError) as told:
        device.arena(MemoryPart.EXPERTS, 1, 4096)

    assert told.value.code is ErrorCode.VRAM_FULL
    assert device.ledger.held_bytes == 0
    device.close()


def test_fault_of_an_error_of_torch_is_known_by_its_class_or_its_words() -> None:
    class AcceleratorError(RuntimeError):
        """As newer torch has it."""

    cases = {
        ErrorCode.VRAM_FULL: full(),
        ErrorCode.DEVICE_LOST: lost(),
        None: RuntimeError("no such file"),
    }
    for code, error in cases.items():
        found = fault_of(error, CARD)
        assert (None if found is None else found.code) is code
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "AcceleratorError", AcceleratorError, raising=False)
        found = fault_of(AcceleratorError("gone"), CARD)
        assert found is not None
        assert found.code is ErrorCode.DEVICE_LOST
        patch.delattr(torch, "AcceleratorError")
        assert fault_of(AcceleratorError("gone"), CARD) is None


@pytest.mark.expects_log("runtime.generate.card_guard", "WARNING")
def test_full_card_that_becomes_slow_gives_experts_back(
    engine: TieredEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = engine._parts
    assert parts is not None
    monkeypatch.setattr(TorchDevice, "free_bytes", FULL_BYTES - 1)
    engine.sample(0.1)
    budgets = [parts.plan.vram_bytes]

    for _ in range(MAX_GIVEN + 2):
        decode(engine, 0.01, 5 * WINDOW_STEPS)
        decode(engine, 0.2, 2 * WINDOW_STEPS)
        budgets.append(parts.plan.vram_bytes)

    assert len(set(budgets)) == MAX_GIVEN + 1
    assert budgets == sorted(budgets, reverse=True)
    codes = [note.code for note in engine.sample(0.1).notes]
    assert codes == [NoteCode.CARD_FULL] * MAX_GIVEN
    parts.experts.check()


@pytest.mark.parametrize("free_bytes", [None, FULL_BYTES])
def test_card_that_becomes_slow_and_is_not_full_keeps_its_experts(
    engine: TieredEngine, monkeypatch: pytest.MonkeyPatch, free_bytes: int | None
) -> None:
    parts = engine._parts
    assert parts is not None
    monkeypatch.setattr(TorchDevice, "free_bytes", free_bytes)
    before = parts.plan

    decode(engine, 0.01, 5 * WINDOW_STEPS)
    decode(engine, 0.2, 4 * WINDOW_STEPS)

    assert parts.plan is before


@pytest.mark.expects_log("runtime.generate.card_guard", "WARNING")
def test_card_that_another_program_fills_gives_experts_back_and_no_more_than_that(
    engine: TieredEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = engine._parts
    assert parts is not None
    monkeypatch.setattr(TorchDevice, "free_bytes", CROWDED_BYTES)
    before = parts.plan
    decode(engine, 0.01, 2 * LOOK_TOKENS)
    assert parts.plan is before

    monkeypatch.setattr(TorchDevice, "free_bytes", CROWDED_BYTES - 1)
    decode(engine, 0.01, LOOK_TOKENS)
    once = parts.plan
    monkeypatch.setattr(TorchDevice, "free_bytes", CROWDED_BYTES)
    decode(engine, 0.01, 2 * LOOK_TOKENS)

    assert once.vram_bytes < before.vram_bytes
    assert parts.plan is once
    monkeypatch.setattr(TorchDevice, "free_bytes", 0)
    decode(engine, 0.01, 10 * LOOK_TOKENS)
    assert engine._guard is not None
    assert engine._guard._gives_left == 0


@pytest.mark.expects_log("runtime.generate.card_guard", "WARNING")
def test_crowded_card_that_refuses_what_it_was_just_given_keeps_what_is_left(
    engine: TieredEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = engine._parts
    assert parts is not None
    above, device, before = parts.experts._above, parts.device, parts.plan
    assert above is not None
    assert device is not None

    def refuse(*arguments: object) -> torch.Tensor:
        raise LarderError(ErrorCode.VRAM_FULL, device=CARD)

    monkeypatch.setattr(TorchArena, "_allocate", refuse)
    monkeypatch.setattr(TorchDevice, "free_bytes", CROWDED_BYTES - 1)
    decode(engine, 0.01, LOOK_TOKENS)

    num_left = len(above.slots)
    assert num_left < sum(before.vram_slots_per_layer) * 13 // 16
    assert sum(parts.plan.vram_slots_per_layer) == num_left
    assert parts.plan.slots_per_layer == before.slots_per_layer
    assert sum(parts.experts.slots_per_layer) == sum(before.slots_per_layer)
    assert device.ledger.held_bytes == parts.plan.vram_bytes == device.ledger.limit_bytes
    parts.experts.check()
    assert answer(engine, QUESTION).token_ids


def test_plan_in_force_is_what_is_left_where_a_card_refuses_a_change(
    engine: TieredEngine, qwen2_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts, replies = engine._parts, Replies()
    assert parts is not None
    before = parts.plan

    def refuse(*arguments: object) -> torch.Tensor:
        raise LarderError(ErrorCode.VRAM_FULL, device=CARD)

    monkeypatch.setattr(TorchArena, "_allocate", refuse)
    engine.propose(device_plan(qwen2_folder, 3, VRAM_SLOTS - 1, CARD), replies)
    engine.apply()

    assert replies.codes == [ErrorCode.VRAM_FULL]
    num_left = parts.experts.num_device_slots
    assert num_left < sum(before.vram_slots_per_layer)
    assert sum(parts.plan.vram_slots_per_layer) == num_left
    assert parts.plan.slots_per_layer == before.slots_per_layer
    assert parts.device is not None
    assert parts.device.ledger.held_bytes == parts.plan.vram_bytes
    (note,) = [each for each in engine.sample(0.1).notes if each.code is NoteCode.CARD_FULL]
    assert note.parameters == {"old_bytes": before.vram_bytes, "new_bytes": parts.plan.vram_bytes}
    parts.experts.check()


def test_other_budgets_are_no_collapse(
    engine: TieredEngine, qwen2_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts, replies = engine._parts, Replies()
    assert parts is not None
    monkeypatch.setattr(TorchDevice, "free_bytes", FULL_BYTES - 1)
    decode(engine, 0.01, 5 * WINDOW_STEPS)
    engine.propose(device_plan(qwen2_folder, 4, VRAM_SLOTS - 1, CARD), replies)
    engine.apply()
    placed = parts.plan

    decode(engine, 0.2, 4 * WINDOW_STEPS)

    assert replies.codes == [None]
    assert parts.plan is placed


def decode(engine: TieredEngine, device_s: float, num_tokens: int) -> None:
    """Let tokens pass that took so long on the card each."""
    for _ in range(num_tokens):
        engine._counters.num_decoded_tokens += 1
        engine._counters.device_s += device_s
        engine.apply()
