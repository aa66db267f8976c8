"""How soon samples follow each other."""

import msgspec

from runtime.protocol.telemetry import NoteCode, RuntimeNote, TelemetrySample
from runtime.service.sampling_pace import NUM_QUIET_SAMPLES, REST_INTERVAL_S, SamplingPace
from tests.unit.service.test_sampler import SAMPLE

QUIET: TelemetrySample = msgspec.structs.replace(
    SAMPLE, num_tokens=0, ram_bytes_read=0, drive_bytes_read=0, link_bytes=0, notes=[]
)
WANTED_S = 0.1


def rested() -> SamplingPace:
    pace = SamplingPace()
    for _ in range(NUM_QUIET_SAMPLES):
        assert pace.interval_s(WANTED_S) == WANTED_S
        pace.note(QUIET, is_busy=False)
    return pace


def test_pace_slows_down_after_quiet_samples_in_a_row() -> None:
    pace = rested()
    assert pace.is_resting
    assert pace.interval_s(WANTED_S) == REST_INTERVAL_S
    assert pace.interval_s(10 * REST_INTERVAL_S) == 10 * REST_INTERVAL_S


def test_pace_of_any_work_or_note_is_fast_again() -> None:
    note = RuntimeNote(code=NoteCode.EXPERTS_LOADED)
    for change in (
        {"num_tokens": 1},
        {"ram_bytes_read": 1},
        {"drive_bytes_read": 1},
        {"link_bytes": 1},
        {"notes": [note]},
    ):
        pace = rested()
        pace.note(msgspec.structs.replace(QUIET, **change), is_busy=False)
        assert not pace.is_resting


def test_pace_of_a_busy_engine_is_fast_though_nothing_is_counted() -> None:
    pace = SamplingPace()
    for _ in range(2 * NUM_QUIET_SAMPLES):
        pace.note(QUIET, is_busy=True)
    assert not pace.is_resting


def test_pace_rests_without_a_model_until_it_is_woken() -> None:
    pace = SamplingPace()
    for _ in range(NUM_QUIET_SAMPLES):
        pace.note(None, is_busy=False)
    assert pace.is_resting
    pace.wake()
    assert not pace.is_resting
