"""The link of a simulated device is as slow as it says, in its own time."""

import threading
from pathlib import Path

import pytest
import torch

from runtime.device.link_rate import measure_link
from runtime.device.open import open_device
from runtime.device.simulated import PIECE_BYTES, SimulatedDevice
from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode
from runtime.protocol.plan import MemoryPart
from tests.support.still_clock import StillClock

MIB = 1024 * 1024


def test_simulated_link_takes_the_time_that_its_speed_says() -> None:
    clock = StillClock()
    device = SimulatedDevice("simulated:0", "a card", 8 * MIB, 2 * MIB, clock)
    arena = device.arena(MemoryPart.EXPERTS, 2, 4 * MIB)
    source = torch.ones(4 * MIB, dtype=torch.uint8)

    for slot in (0, 1):
        device.copy(source, arena.tensor(slot)).wait()

    assert clock.time_s == pytest.approx(100.0 + 4.0)
    assert device.num_bytes_copied == 8 * MIB
    device.close()


@pytest.mark.parametrize("bytes_per_s", [1e6, 12e9])
def test_simulated_link_is_measured_as_fast_as_it_says(bytes_per_s: float) -> None:
    clock = StillClock()
    device = SimulatedDevice("simulated:0", "a card", 64 * MIB, bytes_per_s, clock)

    measured = measure_link(device, clock.now_s)

    assert measured is not None
    assert measured.to_device.value == pytest.approx(bytes_per_s, rel=0.001)
    assert device.ledger.held_bytes == 0
    device.close()


def test_simulated_link_that_copies_in_no_time_has_no_rate() -> None:
    device = SimulatedDevice("simulated:0", "a card", 64 * MIB, 1e9, StillClock())
    assert measure_link(device, lambda: 5.0) is None
    device.close()


def test_simulated_memory_is_counted_as_the_devices() -> None:
    device = SimulatedDevice("simulated:0", "a card", 4 * MIB, 1e9)
    arena = device.arena(MemoryPart.EXPERTS, 1, MIB)

    assert device.num_host_bytes == device.ledger.held_bytes == MIB
    arena.extend(1)
    assert device.num_host_bytes == 2 * MIB
    device.close()
    assert device.num_host_bytes == 0


def test_open_device_finds_the_profiles_card(tmp_path: Path) -> None:
    profile = tmp_path / "machine.json"
    profile.write_text('{"devices": [{"name": "Old card", "total_gib": 1, "link_gb_per_s": 3}]}')

    device = open_device("simulated:0", MIB, {"LARDER_MACHINE": str(profile)})

    assert device.is_simulated
    assert device.name == "Old card"
    assert device.ledger.limit_bytes == MIB
    device.close()


@pytest.mark.parametrize("device", ["simulated:0", "cuda:99", "cuda:x", "tpu:0", ""])
def test_open_device_what_is_not_there_is_named(device: str) -> None:
    with pytest.raises(LarderError) as refused:
        open_device(device, MIB, {})

    assert refused.value.code is ErrorCode.VRAM_NOT_THERE
    assert refused.value.parameters == {"device": device}


class OneMovingPiece:
    """Time that stands still: one piece of an upload stays on the link; waits are written down."""

    def __init__(self) -> None:
        self.has_begun = threading.Event()
        self.gate = threading.Event()
        self.waits_s: list[float] = []

    def now_s(self) -> float:
        return 100.0

    def sleep(self, seconds: float) -> None:
        if threading.current_thread() is threading.main_thread():
            self.waits_s.append(seconds)
            return
        self.has_begun.set()
        assert self.gate.wait(30)


@pytest.mark.parametrize("gb_per_s", [6, 12, 25])
def test_simulated_link_lets_a_small_tensor_by_after_one_piece(gb_per_s: int) -> None:
    clock, rate = OneMovingPiece(), gb_per_s * 1e9
    device = SimulatedDevice("simulated:0", "a card", 32 * MIB, rate, clock)
    arena = device.arena(MemoryPart.EXPERTS, 1, 16 * MIB)
    upload = device.copy(torch.ones(16 * MIB, dtype=torch.uint8), arena.tensor(0))
    assert clock.has_begun.wait(30)
    row = torch.arange(2048, dtype=torch.float32)

    there = device.send(row)

    assert torch.equal(there, row)
    (waited_s,) = clock.waits_s
    assert waited_s <= (PIECE_BYTES + row.nbytes) / rate * 1.001
    assert not upload.is_done
    clock.gate.set()
    upload.wait()
    assert device.num_bytes_copied == 16 * MIB + row.nbytes
    device.close()
