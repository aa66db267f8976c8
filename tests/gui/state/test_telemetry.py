"""What is kept of the measurements, and when they are asked for."""

import msgspec
import pytest
from pytestqt.qtbot import QtBot

from app.state.session import Session
from app.state.telemetry import MAX_NOTES, TelemetryState
from app.state.telemetry_watch import INTERVAL_S, TelemetryWatch
from runtime.protocol.messages import WatchTelemetry
from runtime.protocol.telemetry import ExpertMap, NoteCode, RuntimeNote, TelemetrySample
from tests.support.fake_client import FakeClient
from tests.support.unnarrowed import now
from tests.support.window_values import resting_sample, some_sample


def with_map(use: bytes, tier: bytes = b"", bits: bytes = b"") -> TelemetrySample:
    experts = ExpertMap(num_layers=1, num_experts=len(use), use=use, tier=tier, bits=bits)
    sample: TelemetrySample = msgspec.structs.replace(some_sample(), experts=experts)
    return sample


def with_note(number: int) -> TelemetrySample:
    note = RuntimeNote(code=NoteCode.TOPIC_CHANGED, parameters={"num_experts": number})
    sample: TelemetrySample = msgspec.structs.replace(some_sample(), notes=[note])
    return sample


def test_telemetry_keeps_the_newest_sample_until_it_is_cleared(qtbot: QtBot) -> None:
    state = TelemetryState()
    assert now(state.latest) is None
    for number in range(5):
        state.add(some_sample(number))
    assert state.latest == some_sample(4)
    assert state.num_samples == 5
    with qtbot.waitSignals([state.sampled, state.noted]):
        state.clear()
    assert now(state.latest) is None
    assert state.series.is_empty(state.now_s)


def test_telemetry_fills_in_what_a_map_leaves_as_before(qtbot: QtBot) -> None:
    state = TelemetryState()
    assert now(state.experts) is None
    state.add(with_map(b"\1\2", b"\0\2", b"\x08\x08"))
    state.add(with_map(b"\3\4"))
    experts = state.experts
    assert experts is not None
    assert (experts.use, experts.tier, experts.bits) == (b"\3\4", b"\0\2", b"\x08\x08")
    state.add(some_sample())
    assert state.experts is experts
    state.add(with_map(b"\1\2\3"))
    assert state.experts is not None
    assert state.experts.tier == b""


def test_telemetry_notes_are_newest_first_with_the_time_they_came(qtbot: QtBot) -> None:
    times = iter(range(1000))
    state = TelemetryState(wall_clock=lambda: float(next(times)))
    with qtbot.waitSignal(state.noted):
        state.add(with_note(0))
    for number in range(1, MAX_NOTES + 3):
        state.add(with_note(number))
    notes = state.notes
    assert len(notes) == MAX_NOTES
    assert notes[0].note.parameters == {"num_experts": MAX_NOTES + 2}
    assert notes[0].at_s == MAX_NOTES + 2


def test_telemetry_series_gets_no_maps(qtbot: QtBot) -> None:
    state = TelemetryState(clock=lambda: 1.0)
    state.add(with_map(b"\1\2"))
    assert state.latest is not None
    assert now(state.latest.experts) is None
    assert state.series.recent(1.0).num_tokens == 1


@pytest.fixture
def watch(open_session: Session) -> TelemetryWatch:
    return TelemetryWatch(open_session)


def test_watch_asks_while_anybody_looks(watch: TelemetryWatch, client: FakeClient) -> None:
    watch.set_watching("chat", is_watching=True)
    watch.set_watching("monitor", is_watching=True)
    watch.set_watching("chat", is_watching=False)
    assert watch.is_watching
    assert [client.last(WatchTelemetry).interval_s, client.count(WatchTelemetry)] == [INTERVAL_S, 1]
    watch.set_watching("monitor", is_watching=False)
    watch.set_watching("monitor", is_watching=False)
    assert [client.last(WatchTelemetry).interval_s, client.count(WatchTelemetry)] == [0.0, 2]


def test_watch_rests_while_the_window_is_minimised(
    watch: TelemetryWatch, client: FakeClient
) -> None:
    watch.set_watching("monitor", is_watching=True)
    watch.set_window_seen(is_seen=False)
    assert client.last(WatchTelemetry).interval_s == 0.0
    watch.set_window_seen(is_seen=True)
    assert client.last(WatchTelemetry).interval_s == INTERVAL_S


def test_state_knows_whether_anything_moves() -> None:
    state = TelemetryState()
    assert not state.is_working
    state.add(msgspec.structs.replace(some_sample(), num_tokens=1))
    assert state.is_working
    assert state.is_lively
    rest = {"num_tokens": 0, "ram_bytes_read": 0, "drive_bytes_read": 0, "link_bytes": 0}
    state.add(msgspec.structs.replace(some_sample(), **rest))
    assert not state.is_working
    assert state.is_lively
    state.add(resting_sample())
    assert not state.is_lively
    state.add(msgspec.structs.replace(resting_sample(), num_tokens=1))
    assert state.is_lively
