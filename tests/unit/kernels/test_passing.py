"""Experts of a prompt that pass to the card: the same results, in room that is given back."""

import weakref
from collections.abc import Callable

import pytest
import torch

from runtime.device.base import Device, DeviceArena
from runtime.device.simulated import SimulatedDevice
from runtime.device.torch_device import TorchDevice
from runtime.errors import LarderError
from runtime.kernels.base import Kernels
from runtime.kernels.dispatch import choose_kernels
from runtime.kernels.matrix import Slot
from runtime.kernels.passing import MIN_ROWS, NUM_SLOTS, PassingExperts
from runtime.kernels.reference import ReferenceKernels
from runtime.kernels.tiered import TieredKernels
from runtime.protocol.errors import ErrorCode
from runtime.protocol.plan import MemoryPart
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import expert_layout
from runtime.telemetry.recorder import Counters
from tests.support.kernel_inputs import random_rows, random_slots

NUM_EXPERTS = 6
LAYOUT = expert_layout(WeightFormat.Q8_G32, 64, 32)
BUDGET_BYTES = 4 * LAYOUT.record_bytes
ROW_BYTES = 4 * 64


def simulated() -> Device:
    return SimulatedDevice("simulated:0", "a card", BUDGET_BYTES, 1e12)


def of_torch() -> Device:
    return TorchDevice("torch:0", BUDGET_BYTES, torch.device("cpu"))


class SlowProcessor:
    """A clock that makes a copy take no time, and says so."""

    def __call__(self) -> float:
        return 5.0


def passing_on(device: Device) -> PassingExperts:
    """Return what knows that the processor is slow and that copies cost nothing."""
    passing = PassingExperts(device, SlowProcessor())
    passing.note(2, 1.0)
    return passing


def run(
    device: Device, host: Kernels, passing: PassingExperts | None, num_rows: int
) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Return what the host gives alone, what both give together, and the bytes that passed."""
    slots = random_slots(LAYOUT, NUM_EXPERTS)
    arena = device.arena(MemoryPart.EXPERTS, 1, LAYOUT.record_bytes)
    there = arena.tensor(0)[: LAYOUT.record_bytes]
    device.copy(slots[2][1].bytes(), there).wait()
    mixed = list(slots)
    mixed[2] = (2, Slot.from_buffer(there, device.device))
    x = random_rows(num_rows, 64)
    logits = random_rows(num_rows, NUM_EXPERTS, seed=3)
    ids, weights = host.route(logits, 3, is_normalised=True)
    expected, found = torch.zeros(num_rows, 64), torch.zeros(num_rows, 64)
    host.experts(x, LAYOUT, slots, ids, weights, expected)
    before = device.num_bytes_copied
    kernels = TieredKernels(host, device, Counters(), passing=passing)
    kernels.experts(x, LAYOUT, mixed, ids, weights, found)
    passed = device.num_bytes_copied - before
    del mixed, there
    arena.close()
    assert device.ledger.held_bytes == 0
    return expected, found, passed


@pytest.mark.parametrize("make", [simulated, of_torch])
@pytest.mark.parametrize("host", [choose_kernels(), ReferenceKernels()], ids=lambda k: k.name)
def test_experts_that_pass_give_what_the_host_gives(make: object, host: Kernels) -> None:
    device: Device = make()  # type: ignore[operator]

    expected, found, passed = run(device, host, passing_on(device), MIN_ROWS)

    # Two copies are for measuring; five experts of six pass.
    assert passed >= (2 + NUM_EXPERTS - 1) * LAYOUT.record_bytes
    if device.is_simulated:
        assert torch.equal(found, expected)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    device.close()


def test_few_rows_or_no_room_pass_nothing() -> None:
    device = simulated()
    *_, passed = run(device, ReferenceKernels(), passing_on(device), MIN_ROWS - 1)
    assert passed == (MIN_ROWS - 1) * ROW_BYTES

    device.ledger.set_limit(NUM_SLOTS * LAYOUT.record_bytes)
    *_, passed = run(device, ReferenceKernels(), passing_on(device), MIN_ROWS)
    assert passed == MIN_ROWS * ROW_BYTES
    device.close()


def test_card_that_refuses_the_room_lets_nothing_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    device = of_torch()
    arena = device.arena

    def refuse(kind: MemoryPart, num_slots: int, slot_bytes: int) -> DeviceArena:
        if kind is MemoryPart.WORK:
            raise LarderError(ErrorCode.VRAM_FULL, device=device.device)
        return arena(kind, num_slots, slot_bytes)

    monkeypatch.setattr(device, "arena", refuse)
    expected, found, _ = run(device, ReferenceKernels(), passing_on(device), MIN_ROWS)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    device.close()


def test_card_that_refused_is_left_alone_for_some_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    device, now_s = of_torch(), [0.0]
    asked_s: list[float] = []
    arena = device.arena

    def refuse_at_first(kind: MemoryPart, num_slots: int, slot_bytes: int) -> DeviceArena:
        asked_s.append(now_s[0])
        if len(asked_s) <= 2:
            raise LarderError(ErrorCode.VRAM_FULL, device=device.device)
        return arena(kind, num_slots, slot_bytes)

    monkeypatch.setattr(device, "arena", refuse_at_first)
    passing = PassingExperts(device, lambda: now_s[0])
    passing.note(2, 1.0)
    pairs = random_slots(LAYOUT, NUM_EXPERTS)
    ids = torch.zeros(MIN_ROWS, 1, dtype=torch.int64)
    for second in (0.0, 0.1, 4.9, 5.0, 5.1, 9.9, 10.0, 10.1):
        now_s[0] = second
        is_passing = bool(passing.choose(pairs, ids))
        assert is_passing == (second >= 10.0)
        passing.end()
    assert asked_s == [0.0, 5.0, 10.0, 10.1]
    device.close()


def test_what_is_not_known_or_does_not_pay_passes_nothing() -> None:
    device = simulated()
    *_, passed = run(device, ReferenceKernels(), PassingExperts(device), MIN_ROWS)
    assert passed == MIN_ROWS * ROW_BYTES

    quick = PassingExperts(device)
    quick.note(2, 0.0)
    *_, passed = run(device, ReferenceKernels(), quick, MIN_ROWS)
    assert passed == MIN_ROWS * ROW_BYTES + 2 * LAYOUT.record_bytes
    device.close()


def test_times_of_the_processor_follow_what_is_measured() -> None:
    passing = PassingExperts(simulated())
    for _ in range(60):
        passing.note(1, 0.5)
        passing.note(11, 1.5)
    assert (passing._expert_s, passing._row_s) == pytest.approx((0.5, 0.1))

    passing.note(1, 1.0)
    passing.note(11, 2.6)

    assert (passing._expert_s, passing._row_s) == pytest.approx((0.6, 0.12))
    for _ in range(60):
        passing.note(2, 0.1)
    assert passing._row_s == pytest.approx(0.0, abs=1e-4)


def test_nothing_taken_and_nothing_left_behind_when_a_computation_fails() -> None:
    device = simulated()

    class Failing(ReferenceKernels):
        def experts(self, *arguments: object, **more: object) -> None:
            raise RuntimeError("broken")

    slots = random_slots(LAYOUT, NUM_EXPERTS)
    kernels = TieredKernels(Failing(), device, Counters(), passing=passing_on(device))
    ids, weights = ReferenceKernels().route(
        random_rows(MIN_ROWS, NUM_EXPERTS, seed=3), 3, is_normalised=True
    )
    with pytest.raises(RuntimeError, match="broken"):
        kernels.experts(
            random_rows(MIN_ROWS, 64), LAYOUT, slots, ids, weights, torch.zeros(MIN_ROWS, 64)
        )

    assert device.ledger.held_bytes == 0
    device.close()


@pytest.mark.parametrize("make", [simulated, of_torch])
def test_room_that_was_given_back_is_kept_by_nobody(make: Callable[[], Device]) -> None:
    device = make()
    arenas = []
    for _ in range(3):
        arena = device.arena(MemoryPart.WORK, NUM_SLOTS, LAYOUT.record_bytes)
        arena.close()
        arenas.append(weakref.ref(arena))
    del arena
    assert [each() for each in arenas] == [None] * 3
    device.close()
