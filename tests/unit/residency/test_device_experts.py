"""Experts on a device: chosen from prompts and tokens, slots going to the layers that need them."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.multiprocessing.reductions import StorageWeakRef

from runtime.device.base import Device
from runtime.device.simulated import SimulatedDevice
from runtime.device.torch_arena import TorchArena
from runtime.device.torch_device import TorchDevice
from runtime.errors import LarderError
from runtime.memory.ledger import Ledger
from runtime.protocol.errors import ErrorCode
from runtime.residency.books import Books
from runtime.residency.device_experts import DeviceExperts
from runtime.residency.experts import ExpertCache
from runtime.residency.shape import CacheShape
from runtime.spec.tensors import PAGE_BYTES, ExpertId
from runtime.telemetry.expert_tally import ExpertTally
from runtime.telemetry.recorder import Counters
from tests.support.dictionary_store import TINY_LAYOUT, DictionaryStore, content
from tests.support.still_clock import StillClock

LAYERS = (1, 4)
NUM_EXPERTS = 6
SLOTS = (2, 2)


class Bench:
    """A cache whose RAM holds everything, under a device with few slots."""

    def __init__(self, device: Device | None = None, slots: tuple[int, ...] = SLOTS) -> None:
        shape = CacheShape(LAYERS, (NUM_EXPERTS,) * 2, NUM_EXPERTS, slots)
        room_bytes = 2 * NUM_EXPERTS * PAGE_BYTES
        if device is None:
            device = SimulatedDevice("simulated:0", "a card", room_bytes, 1e12, StillClock())
        self.counters = Counters()
        books = Books(self.counters, ExpertTally(2, NUM_EXPERTS, 32))
        self.cache = ExpertCache(DictionaryStore(), shape, Ledger(2 * room_bytes), books)
        self.above = DeviceExperts(device, shape, TINY_LAYOUT.record_bytes)
        self.cache.attach(self.above)
        self.cache.fill(NUM_EXPERTS, lambda done, total: None)

    def token(self, *rows: list[int]) -> None:
        """Compute a token that needs a row of each layer; what it makes come is waited for."""
        self.cache.begin_step()
        for layer, row in zip(LAYERS, rows, strict=True):
            ids = torch.tensor([row])
            self.cache.note_routing(layer, ids, torch.ones_like(ids))
            self._use(layer, row)
        self.arrive()

    def prompt(self, *ids: list[list[int]]) -> None:
        """Compute a prompt whose rows choose experts of each layer."""
        self.cache.begin_step()
        for layer, rows in zip(LAYERS, ids, strict=True):
            chosen = torch.tensor(rows)
            self.cache.note_routing(layer, chosen, torch.ones_like(chosen))
            self._use(layer, sorted({expert for row in rows for expert in row}))

    def arrive(self) -> None:
        """Begin a step, and wait for what it lets come."""
        self.cache.begin_step()
        for layer in LAYERS:
            self.above.wait_copied(layer)
        self.cache.begin_step()

    def there(self, layer: int) -> list[int]:
        """Return who lies on the device, every byte being right."""
        found = self.above.tables[layer].experts
        for expert, slot in self.above.find(layer, found).items():
            assert bytes(slot.bytes().tolist()[:1]) == content(ExpertId(layer, expert))
        return found

    def _use(self, layer: int, experts: list[int]) -> None:
        with contextlib.closing(self.cache.runs(layer, experts)) as runs:
            assert [number for run in runs for number, _ in run] == experts


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.cache.check()
    made.cache.close()


def test_device_experts_prompt_brings_what_most_of_its_rows_chose(bench: Bench) -> None:
    for _ in range(100):
        bench.token([0, 1], [0, 1])
    assert bench.there(1) == bench.there(4) == [0, 1]

    rows = [[2, 3]] * 200 + [[2, 5]] * 100
    bench.prompt(rows, rows)
    bench.arrive()
    bench.arrive()

    assert bench.there(1) == bench.there(4) == [2, 3]


def test_device_experts_slots_go_to_the_layer_that_uses_more_experts(bench: Bench) -> None:
    for number in range(300):
        bench.token([number % 3], [5])

    assert bench.above.slots_per_layer == (3, 1)
    assert bench.there(1) == [0, 1, 2]
    assert bench.there(4) == [5]
    before = bench.counters.device_hits
    bench.token([0], [5])
    assert bench.counters.device_hits - before == 2


def test_device_experts_fewer_slots_keep_those_that_are_used_most(bench: Bench) -> None:
    for number in range(300):
        bench.token([0], [1 if number % 10 else 2])
    assert bench.cache.num_on_device == 3

    bench.cache.resize((NUM_EXPERTS,) * 2, 1 << 30, (1, 1), 1 << 30)

    assert (bench.there(1), bench.there(4)) == ([0], [1])
    assert sum(bench.above.slots_per_layer) == 2


def test_device_experts_move_together_where_memory_comes_in_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    record_bytes = TINY_LAYOUT.record_bytes
    monkeypatch.setattr("runtime.device.torch_arena.PIECE_BYTES", 2 * record_bytes)
    device = TorchDevice("torch:0", 10 * record_bytes, torch.device("cpu"))
    bench = Bench(device, (5, 5))
    for number in range(300):
        bench.token([number % 5], [number % 5 if number % 3 else 4])
    assert bench.cache.num_on_device == 10

    for num_slots in (9, 6, 3, 8, 1):
        half = num_slots // 2
        limit = num_slots * record_bytes
        bench.cache.resize((NUM_EXPERTS,) * 2, 1 << 30, (half, num_slots - half), limit)
        bench.cache.check()
        assert device.ledger.held_bytes == limit
        assert sum(bench.above.slots_per_layer) == num_slots
        assert len(bench.there(1)) + len(bench.there(4)) <= num_slots
        bench.token([0], [4])
    assert bench.cache.num_on_device == 1
    bench.cache.close()
    device.close()


def _crowded(monkeypatch: pytest.MonkeyPatch) -> tuple[Bench, TorchDevice]:
    """Return a bench with ten experts on a card whose memory comes in pieces for four slots."""
    record_bytes = TINY_LAYOUT.record_bytes
    monkeypatch.setattr("runtime.device.torch_arena.PIECE_BYTES", 4 * record_bytes)
    device = TorchDevice("torch:0", 10 * record_bytes, torch.device("cpu"))
    bench = Bench(device, (5, 5))
    for number in range(300):
        bench.token([number % 5], [number % 5 if number % 3 else 4])
    assert bench.cache.num_on_device == 10
    return bench, device


def test_device_experts_hold_no_memory_while_they_move(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, device = _crowded(monkeypatch)
    arena = bench.above._arena
    assert isinstance(arena, TorchArena)
    pieces = [StorageWeakRef(each.tensor.untyped_storage()) for each in arena._pieces]
    num_left: list[int] = []

    def count() -> None:
        num_left.append(sum(not each.expired() for each in pieces))

    monkeypatch.setattr(device, "trim", count)
    monkeypatch.setattr(arena, "_trim", count)
    bench.cache.resize((NUM_EXPERTS,) * 2, 1 << 30, (3, 2), 5 * TINY_LAYOUT.record_bytes)

    assert num_left == [1, 1], "before the rest of a piece gets room, and in the end"
    bench.cache.close()
    device.close()


def test_device_experts_that_the_card_refuses_room_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, device = _crowded(monkeypatch)

    def refuse(*arguments: object, **more: object) -> torch.Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    with monkeypatch.context() as patch:
        patch.setattr("runtime.device.torch_arena.torch.empty", refuse)
        with pytest.raises(LarderError) as told:
            bench.cache.resize((NUM_EXPERTS,) * 2, 1 << 30, (3, 2), 5 * TINY_LAYOUT.record_bytes)
    assert told.value.code is ErrorCode.VRAM_FULL
    bench.cache.check()
    assert sum(bench.above.slots_per_layer) == bench.cache.num_on_device == 4
    assert len(bench.there(1)) + len(bench.there(4)) == 4

    bench.cache.resize((NUM_EXPERTS,) * 2, 1 << 30, (4, 3), 7 * TINY_LAYOUT.record_bytes)
    for number in range(300):
        bench.token([number % 5], [number % 5 if number % 3 else 4])
    bench.cache.check()
    assert len(bench.there(1)) + len(bench.there(4)) == 7
    bench.cache.close()
    device.close()


def test_slots_in_ram_stay_as_they_were_where_the_card_refuses_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench, device = _crowded(monkeypatch)
    ledger, before = bench.cache._ledger, bench.cache.slots_per_layer

    def refuse(*arguments: object, **more: object) -> torch.Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    with monkeypatch.context() as patch:
        patch.setattr("runtime.device.torch_arena.torch.empty", refuse)
        with pytest.raises(LarderError):
            bench.cache.resize((2, 2), ledger.limit_bytes, (3, 2), 5 * TINY_LAYOUT.record_bytes)
    assert bench.cache.slots_per_layer == before
    assert bench.cache.wait_filled(60)
    bench.cache.begin_step()
    assert bench.cache.num_resident == 2 * NUM_EXPERTS
    bench.cache.check()
    bench.cache.close()
    device.close()


def test_device_experts_that_come_back_after_a_refusal_are_read_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench, device = _crowded(monkeypatch)
    empty, num_refused = torch.empty, 0

    def refuse_once(*arguments: Any, **more: Any) -> torch.Tensor:
        nonlocal num_refused
        num_refused += 1
        if num_refused == 1:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return empty(*arguments, **more)

    monkeypatch.setattr("runtime.device.torch_arena.torch.empty", refuse_once)
    bench.cache.resize((NUM_EXPERTS,) * 2, 1 << 30, (3, 2), 5 * TINY_LAYOUT.record_bytes)
    bench.cache.check()
    assert num_refused == 2
    assert sum(bench.above.slots_per_layer) == 5
    assert len(bench.there(1)) + len(bench.there(4)) == 4
    bench.cache.close()
    device.close()
