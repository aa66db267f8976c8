"""The watch over reads: it tells of each that stalls, while it still waits, and of it once."""

import queue
import threading

from runtime.residency.lanes import ReadLanes
from runtime.residency.watch import ReadWatch, StalledRead
from runtime.spec.tensors import ExpertId
from tests.support.dictionary_store import GatedStore


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_watch_tells_of_a_stalled_read_once_and_of_the_next_again() -> None:
    clock, told = Clock(), list[tuple[ExpertId, float]]()
    watch = ReadWatch(lambda *stall: told.append(stall), limit_s=1000, clock=clock)
    watch.begin(ExpertId(1, 2))
    clock.now_s += 999
    watch.look()
    assert told == []
    clock.now_s += 2
    watch.look()
    watch.look()
    assert told == [(ExpertId(1, 2), 1001)]
    watch.end()
    clock.now_s += 5000
    watch.look()
    watch.begin(ExpertId(1, 3))
    clock.now_s += 1000
    watch.look()
    assert told == [(ExpertId(1, 2), 1001), (ExpertId(1, 3), 1000)]
    watch.end()
    watch.close()
    watch.close()


def test_watch_nobody_reads_nobody_looks() -> None:
    watch = ReadWatch(lambda *_: None)
    before = threading.active_count()
    watch.close()
    assert threading.active_count() == before


def test_lanes_tell_file_offset_and_expert_of_a_read_that_hangs() -> None:
    store, told = GatedStore(), queue.Queue[StalledRead]()
    lanes = ReadLanes(store, told.put, stall_s=0.02)
    target = memoryview(bytearray(store.layout.record_bytes))
    reads = lanes.demand([(ExpertId(4, 3), target)])
    stalled = told.get(timeout=30)
    assert stalled.expert == ExpertId(4, 3)
    assert (stalled.file, stalled.offset_bytes) == store.place_of(ExpertId(4, 3))
    assert stalled.seconds >= 0.02
    store.gate.set()
    assert reads.wait(0) is None
    lanes.close()
