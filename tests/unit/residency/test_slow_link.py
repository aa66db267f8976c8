"""Uploads over a link that is slower than the steps: bounded, and no wait for the drive."""

import contextlib
import threading

from runtime.device.simulated import SimulatedDevice
from runtime.memory.ledger import Ledger
from runtime.policy.device_choice import UploadTerms
from runtime.residency.books import Books
from runtime.residency.device_experts import DeviceExperts
from runtime.residency.experts import ExpertCache
from runtime.residency.shape import CacheShape
from runtime.residency.slots import CPU, SlotKey
from runtime.spec.tensors import PAGE_BYTES, ExpertId
from runtime.telemetry.expert_tally import ExpertTally
from runtime.telemetry.recorder import Counters
from tests.support.dictionary_store import TINY_LAYOUT, DictionaryStore

LAYER = 1
NUM_EXPERTS = 8


class HeldClock:
    """Time that passes in the link alone, and there not before ``gate`` is set."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self._passed_s = 0.0

    def now_s(self) -> float:
        return self._passed_s

    def sleep(self, seconds: float) -> None:
        assert self.gate.wait(30)
        self._passed_s += seconds


def make_cache(
    clock: HeldClock, num_ram_slots: int, counters: Counters
) -> tuple[ExpertCache, DeviceExperts]:
    """Return a cache under a device that could hold all experts."""
    shape = CacheShape((LAYER,), (num_ram_slots,), NUM_EXPERTS, (NUM_EXPERTS,))
    device = SimulatedDevice("simulated:0", "Slow", NUM_EXPERTS * PAGE_BYTES, 1.0, clock)
    books = Books(counters, ExpertTally(1, NUM_EXPERTS, 32))
    cache = ExpertCache(
        DictionaryStore(),
        shape,
        Ledger((NUM_EXPERTS + 1) * PAGE_BYTES),
        books,
        clock=clock.now_s,
    )
    above = DeviceExperts(device, shape, TINY_LAYOUT.record_bytes)
    cache.attach(above)
    return cache, above


def place_of(cache: ExpertCache, expert: int) -> SlotKey:
    """Return where an expert lies."""
    key = cache.find(ExpertId(LAYER, expert))
    assert key is not None
    return key


def use(cache: ExpertCache, expert: int) -> None:
    """Compute a step that needs one expert."""
    cache.begin_step()
    with contextlib.closing(cache.runs(LAYER, [expert])) as runs:
        assert [number for run in runs for number, _ in run] == [expert]


def test_uploads_slower_than_steps_wait_in_a_short_queue() -> None:
    clock = HeldClock()
    cache, above = make_cache(clock, NUM_EXPERTS, Counters())

    for expert in range(NUM_EXPERTS):
        use(cache, expert)
    cache.begin_step()

    clock.gate.set()
    assert 0 < len(above.wait_copied(LAYER)) <= UploadTerms().max_per_layer
    cache.begin_step()
    cache.check()
    cache.close()


def test_slow_upload_keeps_its_slot_and_nobody_waits_for_it() -> None:
    clock, counters = HeldClock(), Counters()
    cache, above = make_cache(clock, 1, counters)
    use(cache, 0)

    use(cache, 1)

    assert cache.find(ExpertId(LAYER, 1)) is None
    assert counters.drive_wait_s == 0
    clock.gate.set()
    assert above.wait_copied(LAYER) == [0]
    cache.begin_step()
    use(cache, 1)
    assert place_of(cache, 1).device == CPU
    cache.check()
    cache.close()


def test_resident_expert_is_found_by_device_and_slot_wherever_it_lies() -> None:
    clock = HeldClock()
    cache, above = make_cache(clock, 2, Counters())
    use(cache, 0)
    in_ram = place_of(cache, 0)
    assert in_ram.device == CPU

    cache.begin_step()
    clock.gate.set()
    assert above.wait_copied(LAYER) == [0]
    assert place_of(cache, 0) == in_ram
    cache.begin_step()
    use(cache, 1)

    on_device = place_of(cache, 0)
    assert on_device == SlotKey(above.device.device, above.tables[LAYER].slot_of[0])
    assert on_device.device == "simulated:0"
    assert place_of(cache, 1).device == CPU
    assert cache.find(ExpertId(LAYER, 2)) is None
    cache.check()
    cache.close()
