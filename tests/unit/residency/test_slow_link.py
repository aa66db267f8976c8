"""Uploads over a link that is slower than the steps: bounded, and no wait for the drive."""

import threading

from runtime.device.simulated import SimulatedDevice
from runtime.memory.ledger import Ledger
from runtime.residency.device_experts import MAX_UPLOADS_PER_LAYER, DeviceExperts
from runtime.residency.experts import ExpertCache
from runtime.residency.ram_experts import Books
from runtime.residency.shape import CacheShape
from runtime.spec.tensors import PAGE_BYTES
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

    def open_gate(self) -> float:
        """Return the time, then let the link go on."""
        now_s = self._passed_s
        self.gate.set()
        return now_s


def make_cache(
    clock: HeldClock, num_ram_slots: int, counters: Counters, *, opens_gate: bool = False
) -> tuple[ExpertCache, DeviceExperts]:
    """Return a cache under a device that could hold all experts."""
    shape = CacheShape((LAYER,), (num_ram_slots,), NUM_EXPERTS, (NUM_EXPERTS,))
    device = SimulatedDevice("simulated:0", "Slow", NUM_EXPERTS * PAGE_BYTES, 1.0, clock)
    books = Books(counters, ExpertTally(1, NUM_EXPERTS, 32))
    cache = ExpertCache(
        DictionaryStore(),
        shape,
        Ledger(NUM_EXPERTS * PAGE_BYTES),
        books,
        clock=clock.open_gate if opens_gate else clock.now_s,
    )
    above = DeviceExperts(device, shape, TINY_LAYOUT.record_bytes)
    cache.attach(above)
    return cache, above


def use(cache: ExpertCache, expert: int) -> None:
    """Compute a step that needs one expert."""
    cache.begin_step()
    cache.acquire(LAYER, [expert])
    cache.release(LAYER, [expert])


def test_uploads_slower_than_steps_wait_in_a_short_queue() -> None:
    clock = HeldClock()
    cache, above = make_cache(clock, NUM_EXPERTS, Counters())

    for expert in range(NUM_EXPERTS):
        use(cache, expert)
    cache.begin_step()

    clock.gate.set()
    assert 0 < len(above.wait_copied(LAYER)) <= MAX_UPLOADS_PER_LAYER
    cache.begin_step()
    cache.check()
    cache.close()


def test_wait_for_the_link_is_no_wait_for_the_drive() -> None:
    clock, counters = HeldClock(), Counters()
    cache, _ = make_cache(clock, 1, counters, opens_gate=True)
    use(cache, 0)
    clock.gate.clear()
    cache.begin_step()

    cache.acquire(LAYER, [1])

    assert clock.now_s() >= TINY_LAYOUT.record_bytes
    assert counters.drive_wait_s == 0
    cache.release(LAYER, [1])
    cache.close()
