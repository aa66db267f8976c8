"""How a layer is split on a card: the card begins, the processor follows, one sum goes over."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from runtime.device.torch_device import TorchDevice
from runtime.kernels.kv import KvPages
from runtime.kernels.matrix import Slot
from runtime.kernels.reference import ReferenceKernels
from runtime.kernels.tiered import TieredKernels
from runtime.protocol.plan import MemoryPart
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import expert_layout
from runtime.telemetry.recorder import Counters
from tests.support.kernel_inputs import random_rows, random_slots

HIDDEN, WIDTH, NUM_EXPERTS, TOP_K = 64, 32, 6, 4
LAYOUT = expert_layout(WeightFormat.Q8_G32, HIDDEN, WIDTH)
HERE = {1, 4}


class Told(ReferenceKernels):
    """The reference, which tells whom it computes."""

    def __init__(self, asked: list[tuple[str, tuple[int, ...]]], where: str) -> None:
        self._asked = asked
        self._where = where

    def experts(self, x: torch.Tensor, *more: Any, **options: Any) -> None:
        """Compute, and tell."""
        numbers = tuple(number for number, _ in more[1])
        self._asked.append((self._where, numbers))
        super().experts(x, *more, **options)


@pytest.mark.parametrize("n", [1, 3])
def test_device_begins_and_the_processor_computes_the_rest_meanwhile(
    monkeypatch: pytest.MonkeyPatch, n: int
) -> None:
    asked: list[tuple[str, tuple[int, ...]]] = []
    monkeypatch.setattr(
        "runtime.kernels.tiered.choose_device_kernels", lambda device: Told(asked, "card")
    )
    device = TorchDevice("torch:0", NUM_EXPERTS * LAYOUT.record_bytes, torch.device("cpu"))
    arena = device.arena(MemoryPart.EXPERTS, NUM_EXPERTS, LAYOUT.record_bytes)
    pairs: list[tuple[int, Slot]] = []
    slots = random_slots(LAYOUT, NUM_EXPERTS)
    for number, slot in slots:
        there = arena.tensor(number)
        device.copy(slot.bytes(), there).wait()
        pairs.append((number, slot if number in HERE else Slot.from_buffer(there, device.device)))
    x = random_rows(n, HIDDEN)
    ids = torch.tensor([[0, 1, 4, 5]] * n, dtype=torch.int32)
    weights = torch.full((n, TOP_K), 0.25)
    expected, out = torch.zeros(n, HIDDEN), torch.zeros(n, HIDDEN)
    ReferenceKernels().experts(x, LAYOUT, slots, ids, weights, expected)
    before, counters = device.num_bytes_copied, Counters()
    chosen: Sequence[tuple[int, Slot]] = [pairs[number] for number in (0, 1, 4, 5)]

    tiered = TieredKernels(Told(asked, "processor"), device, counters)
    tiered.experts(x, LAYOUT, chosen, ids, weights, out)

    torch.testing.assert_close(out, expected, atol=1e-5, rtol=1e-5)
    one_by_one = [("processor", (1,)), ("processor", (4,))]
    assert asked == [("card", (0, 5)), *([("processor", (1, 4))] if n == 1 else one_by_one)]
    rows_sent = 1 if n == 1 else n * len(HERE)
    assert device.num_bytes_copied - before == rows_sent * HIDDEN * 4
    assert counters.compute_s > 0
    chosen, pairs, there = [], [], None  # type: ignore[assignment]
    device.close()


def test_pages_lie_apart_unless_they_are_one_piece() -> None:
    with pytest.raises(AssertionError, match="lie apart"):
        KvPages(4, 1, 2).in_one_piece()
