"""The sampler: true intervals, a first sample that only begins, notes that are not lost."""

import queue
import threading

import msgspec

from runtime.protocol.messages import AnyEvent, TelemetrySampled
from runtime.protocol.telemetry import NoteCode, RuntimeNote, TelemetrySample
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
    sampler = Sampler(engine.take, events.put, ErrorLog(), engine.clock)
    assert sampler.watch(0.001) == MIN_INTERVAL_S
    first, second = sampled(events), sampled(events)
    assert sampler.finish(10.0)
    assert (first.interval_s, second.interval_s) == (1.0, 1.0)
    assert (numbers(first), numbers(second)) == ([1, 2], [3])
    assert engine.intervals[0] == 0.0


def test_sampler_watched_before_there_is_a_model_begins_when_there_is() -> None:
    engine = FakeEngine(num_absent=1)
    events: queue.SimpleQueue[AnyEvent] = queue.SimpleQueue()
    sampler = Sampler(engine.take, events.put, ErrorLog(), engine.clock)
    sampler.watch(MIN_INTERVAL_S)
    assert numbers(sampled(events)) == [2, 3]
    assert engine.intervals[:3] == [0.0, 0.0, 1.0]
    assert sampler.finish(10.0)


def test_sampler_watched_again_begins_again() -> None:
    engine = FakeEngine()
    events: queue.SimpleQueue[AnyEvent] = queue.SimpleQueue()
    sampler = Sampler(engine.take, events.put, ErrorLog(), engine.clock)
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
    sampler = Sampler(engine.take, lambda _: None, ErrorLog(), engine.clock)
    assert sampler.watch(0) == 0.0
    assert threading.active_count() == before
    assert sampler.finish(0.0)
    assert engine.intervals == []
