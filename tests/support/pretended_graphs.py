"""A recorder that computes again where a card would replay, into the same memory."""

from collections.abc import Callable, Sequence

import pytest
import torch

from runtime.device.base import Device
from runtime.device.graphs import Replay, Work
from runtime.device.torch_device import TorchDevice

Bend = Callable[[Sequence[torch.Tensor]], None]


class PretendedGraphs:
    """What was recorded runs anew at each replay; as on a card it sees no new arguments."""

    def __init__(self, bend: Bend | None = None, fault: Exception | None = None) -> None:
        self.num_recorded = 0
        self.num_replayed = 0
        self._bend = bend
        self._fault = fault

    def record(self, work: Work) -> tuple[Replay, Sequence[torch.Tensor]]:
        """Run the work as a card's libraries want it, then keep it."""
        work()
        if self._fault is not None:
            raise self._fault
        self.num_recorded += 1
        results = [torch.empty_like(each) for each in work()]

        def replay() -> None:
            self.num_replayed += 1
            for kept, new in zip(results, work(), strict=True):
                kept.copy_(new)
            if self._bend is not None:
                self._bend(results)

        return replay, results


def use_card_that_records(monkeypatch: pytest.MonkeyPatch, recorder: PretendedGraphs) -> None:
    """Let engines open torch's processor as a card with a recorder."""

    def open_torch(device: str, budget_bytes: int) -> Device:
        card = TorchDevice(device, budget_bytes, torch.device("cpu"))
        card.recorder = recorder
        return card

    monkeypatch.setattr("runtime.generate.plan_terms.open_device", open_torch)
