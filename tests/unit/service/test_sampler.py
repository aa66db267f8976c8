"""The sampler: true intervals, a first sample that only begins, notes kept, and rests."""

import queue
import threading

import msgspec
import pytest

from runtime.protocol.messages import AnyEvent, TelemetrySampled
from runtime.protocol.telemetry import NoteCode, RuntimeNote, TelemetrySample
from runtime.service import sampler as sampler_module
from runtime.service import sampling_pace
from runtime.service.log import ErrorLog
from runtime.service.sampler import MIN_INTERVAL_S, Sampler
from tests.protocol.examples import EVENTS

SAMPLE = next(event for event in EVENTS if isinstance(event, TelemetrySampled)).sample


class FakeEngine:
    """Gives samples that count themselves, and remembers the intervals asked for."""

    def __init__(self, num_absent: int = 0) -> None:
        self.intervals: list[float] = []
        self.num_absent = num_absent
        self.clock_s = 0.0

    def clock(self) -> float:
        """A clock that goes a second at each look."""
        self.clock_s += 1.0
        return self.clock_s

    def take(self, interval_s: float) -> TelemetrySample | None:
        self.intervals.append(interval_s)
        if len(self.intervals) <= self.num_absent:
            return None
        note = RuntimeNote(code=NoteCode.EXPERTS_LOADED, parameters={"number": len(self.intervals)})
        return msgspec.structs.replace(SAMPLE, interval_s=interval_s, notes=[note])


def sampled(events: "queue.SimpleQueue[AnyEvent]") -> TelemetrySample:
    event = events.get(timeout=10.0)
    assert isinstance(event, TelemetrySampled)
    return event.sample


def numbers(sample: TelemetrySample) -> list[object]:
    return [note.parameters["number"] for note in sample.notes]


def test_sampler_sends_the_second_sample_first_with_the_notes_of_both() -> None:
    engine = FakeEngine()
    events: queue.SimpleQueue[AnyEvent] = queue.SimpleQueue()
    sampler = Sampler(engine.take, events.put, ErrorLog(), lambda: True, engine.clock)
    assert sampler.watch(0.001) == MIN_INTERVAL_S
    first, second = sampled(events), sampled(events)
    assert sampler.finish(10.0)
    assert (first.interval_s, second.interval_s) == (1.0, 1.0)
    assert (numbers(first), numbers(second)) == ([1, 2], [3])
    assert engine.intervals[0] == 0.0


def test_sampler_watched_before_there_is_a_model_begins_when_there_is() -> None:
    engine = FakeEngine(num_absent=1)
    events: queue.SimpleQueue[AnyEvent] = queue.SimpleQueue()
    sampler = Sampler(engine.take, events.put, ErrorLog(), lambda: True, engine.clock)
    sampler.watch(MIN_INTERVAL_S)
    assert numbers(sampled(events)) == [2, 3]
    assert engine.intervals[:3] == [0.0, 0.0, 1.0]
    assert sampler.finish(10.0)


def test_sampler_watched_again_begins_again() -> None:
    engine = FakeEngine()
    events: queue.SimpleQueue[AnyEvent] = queue.SimpleQueue()
    sampler = Sampler(engine.take, events.put, ErrorLog(), lambda: True, engine.clock)
    sampler.watch(MIN_INTERVAL_S)
    sampled(events)
    sampler.watch(0)
    sampler.watch(MIN_INTERVAL_S)
    sampled(events)
    assert sampler.finish(10.0)
    assert engine.intervals.count(0.0) == 2


def test_sampler_not_watched_has_no_thread() -> None:
    before = threading.active_count()
    engine = FakeEngine()
    sampler = Sampler(engine.take, lambda _: None, ErrorLog(), lambda: True, engine.clock)
    assert sampler.watch(0) == 0.0
    assert threading.active_count() == before
    assert sampler.finish(0.0)
    assert engine.intervals == []


def test_sampler_rests_when_nothing_happens_and_is_woken_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    interval_s = 0.02
    monkeypatch.setattr(sampler_module, "MIN_INTERVAL_S", interval_s)
    monkeypatch.setattr(sampling_pace, "NUM_QUIET_SAMPLES", 3)
    # So long that no test waits for it.
    monkeypatch.setattr(sampling_pace, "REST_INTERVAL_S", 600.0)
    engine = FakeEngine()
    is_busy = threading.Event()
    rests = threading.Semaphore(0)
    events: queue.SimpleQueue[AnyEvent] = queue.SimpleQueue()

    def take(interval_s: float) -> TelemetrySample:
        sample = engine.take(interval_s)
        assert sample is not None
        if len(engine.intervals) % 3 == 0:
            rests.release()
        quiet: TelemetrySample = msgspec.structs.replace(
            sample, num_tokens=0, ram_bytes_read=0, drive_bytes_read=0, link_bytes=0, notes=[]
        )
        return quiet

    sampler = Sampler(take, events.put, ErrorLog(), is_busy.is_set, engine.clock)
    sampler.watch(interval_s)
    for rest in (1, 2, 3):
        assert rests.acquire(timeout=10.0)
        assert not rests.acquire(timeout=5 * interval_s)
        assert len(engine.intervals) == 3 * rest
        sampler.wake()
    is_busy.set()
    for _ in range(3):
        assert rests.acquire(timeout=10.0)
    assert sampler.finish(10.0)
    assert engine.intervals.count(0.0) == 1
