"""How fast a device's link is, measured by copying as experts are copied, and back."""

import dataclasses
import time
from collections.abc import Callable

import torch

from runtime.device.base import Device
from runtime.device.torch_device import staging_of
from runtime.protocol.machine import Measured
from runtime.protocol.plan import MemoryPart

COPY_BYTES = 8 << 20
"""The most that is copied at once, and what the measurement takes of RAM and of the device."""
MIN_COPY_BYTES = 256 << 10
"""Smaller copies tell of the way to the link, and not of the link."""
MAX_COPIES = 16
ENOUGH_S = 0.05
"""After so long no further copy begins."""

Clock = Callable[[], float]


@dataclasses.dataclass(frozen=True, slots=True)
class LinkRates:
    """Rates of both ways."""

    to_device: Measured
    to_host: Measured | None
    """Into page-locked RAM where the system gives it; None if no time passed."""


def measure_link(device: Device, clock: Clock = time.perf_counter) -> LinkRates | None:
    """Return the rates of a device's link, None if its budget has no room for a measurement.

    Nothing else may use the link meanwhile. What it takes of the budget is given back.
    """
    num_bytes = min(COPY_BYTES, device.ledger.free_bytes)
    if num_bytes < MIN_COPY_BYTES:
        return None
    # Written, so that it lies in pages of its own as experts do.
    source = torch.ones(num_bytes, dtype=torch.uint8)
    arena = device.arena(MemoryPart.EXPERTS, 1, num_bytes)
    try:
        target = arena.tensor(0)[:num_bytes]
        # The first copy wakes the link up and makes the queues; it is not counted.
        device.copy(source[:MIN_COPY_BYTES], target[:MIN_COPY_BYTES]).wait()
        there = _rate(lambda: device.copy(source, target).wait(), num_bytes, clock)
        place = staging_of(num_bytes, is_locked=device.torch_device.type == "cuda")

        def bring_back() -> None:
            device.launch(lambda: place.copy_(target))
            device.synchronize()

        bring_back()
        back = _rate(bring_back, num_bytes, clock)
    finally:
        arena.close()
    return None if there is None else LinkRates(there, back)


def _rate(copy: Callable[[], None], num_bytes: int, clock: Clock) -> Measured | None:
    """Return how fast copies of so many bytes are; None if no time passed."""
    started_s = clock()
    num_copies, passed_s = 0, 0.0
    while num_copies < MAX_COPIES and passed_s < ENOUGH_S:
        copy()
        num_copies += 1
        passed_s = clock() - started_s
    if passed_s <= 0:
        return None
    copied_bytes = num_copies * num_bytes
    return Measured(
        value=copied_bytes / passed_s, method=f"measured, {copied_bytes >> 20} MiB copied"
    )
