"""A drive that fails below the runtime, in the midst of its reads of experts: told and survived.

The drive is a file system of the test's own; the system passes each read on to it. What an answer
came to is the same as ever, or the answer ends with a sentence and the next one is.
"""

import errno
import functools
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from runtime.protocol.chat import SamplingSettings
from runtime.protocol.errors import ErrorCode, ErrorReport
from runtime.protocol.messages import (
    CommandFailed,
    GenerationFinished,
    LoadModel,
    ModelLoaded,
    Reply,
    StartGeneration,
    TelemetrySampled,
    TokensGenerated,
    WatchTelemetry,
)
from runtime.protocol.plan import PlacementPlan
from runtime.protocol.sentences import sentence
from runtime.protocol.telemetry import NoteCode
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import ExpertId
from runtime.store.prepared import PreparedStore
from tests.support.checkpoint_folders import TinyModel, write_checkpoint
from tests.support.engine_runs import user
from tests.support.faulty_drive import Fault, FaultyDrive, faulty_drive, why_not
from tests.support.hand_made_plans import exact_plan, prepared_plan
from tests.support.runtime_process import RuntimeProcess, running_runtime

IS_DEEP = os.environ.get("LARDER_TEST_PROFILE") == "deep"
STALL_S = 30.0
NUM_ROUNDS = 50 if IS_DEEP else 1
NUM_SLOTS = 16
"""Of the 32 experts of each layer so many have room in RAM: every token reads from the drive."""
NUM_TOKENS = 5
CONTEXT_TOKENS = 192
STORY = "Write a long story about a cook and a cellar."
_GONE = {os.strerror(number) for number in (errno.ENOTCONN, errno.ECONNABORTED)}
"""What is said of a read that comes after, and of one in flight, when the drive goes."""
Record = Callable[[str, object], None]

pytestmark = [
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
    pytest.mark.timeout(900 if IS_DEEP else 240),
]


class Talk:
    """One question asked over and over of the model that a runtime has loaded."""

    def __init__(self, runtime: RuntimeProcess) -> None:
        self._runtime = runtime
        self._next_id = 10
        self.notes: list[NoteCode] = []

    def ask(self, *, midst: Callable[[], object] | None = None) -> tuple[list[int], Reply]:
        """Return the tokens of an answer and how it ended; ``midst`` happens after the first."""
        self._next_id += 1
        question = [user(STORY)]
        sampling = SamplingSettings(temperature=0, max_tokens=NUM_TOKENS)
        self._runtime.send(
            StartGeneration(request_id=self._next_id, conversation=question, sampling=sampling)
        )
        token_ids: list[int] = []
        while True:
            event = self._runtime.next_event()
            assert event is not None, "the runtime is gone"
            if isinstance(event, TelemetrySampled):
                self.notes += [note.code for note in event.sample.notes]
            elif isinstance(event, TokensGenerated):
                token_ids += event.token_ids
                if midst is not None:
                    midst()
                    midst = None
            elif isinstance(event, GenerationFinished | CommandFailed):
                return token_ids, event

    def fails(self, expected: list[int], midst: Callable[[], object] | None = None) -> ErrorReport:
        """Return why an answer failed, which has begun as it should."""
        token_ids, end = self.ask(midst=midst)
        assert isinstance(end, CommandFailed)
        assert token_ids == expected[: len(token_ids)]
        assert sentence(end.error)
        return end.error


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[RuntimeProcess]:
    with running_runtime(tmp_path, "--engine", "tiered") as process:
        process.open()
        yield process


@pytest.fixture(params=["past the cache", "cached"])
def drive(
    request: pytest.FixtureRequest, demo_folder: Path, tmp_path: Path
) -> Iterator[FaultyDrive]:
    with faulty_drive(demo_folder, tmp_path, is_cached=request.param == "cached") as made:
        yield made


def test_drive_with_faults_costs_nothing_but_time(
    drive: FaultyDrive, runtime: RuntimeProcess, record_property: Record
) -> None:
    plan = exact_plan(drive.place, NUM_SLOTS, CONTEXT_TOKENS)
    _fail_to_load(drive, runtime, plan)
    runtime.load(plan)
    talk = Talk(runtime)
    expected, end = talk.ask()
    assert isinstance(end, GenerationFinished)
    assert len(expected) == NUM_TOKENS
    for number in (errno.EIO, errno.ENODEV):
        met = drive.num_met
        error = talk.fails(expected, functools.partial(drive.put, Fault.ERROR, number))
        assert error.code is ErrorCode.DRIVE_READ_FAILED
        assert os.strerror(number) in sentence(error)
        assert str(drive.place) in sentence(error)
        assert drive.num_met > met
        drive.clear()
        assert talk.ask()[0] == expected
    if not drive.is_cached:
        _short_and_late(drive, runtime, talk)
    _any_fault_at_any_time(drive, talk, expected, record_property)
    _vanish(drive, talk, expected)
    record_property("faults_met", drive.num_met)


def _fail_to_load(drive: FaultyDrive, runtime: RuntimeProcess, plan: PlacementPlan) -> None:
    """Have loading fail: it is told, and nothing stands in the way of the next time."""
    drive.put(Fault.ERROR, errno.EIO)
    runtime.send(LoadModel(request_id=5, plan=plan))
    while not isinstance(event := runtime.next_event(), CommandFailed | ModelLoaded):
        assert event is not None, "the runtime is gone"
    assert isinstance(event, CommandFailed)
    assert os.strerror(errno.EIO) in sentence(event.error)
    drive.clear()


def _vanish(drive: FaultyDrive, talk: Talk, expected: list[int]) -> None:
    """Pull the drive out in mid-answer: told; plugged in again the loaded model goes on."""
    assert talk.fails(expected, drive.pull_out).parameters["reason"] in _GONE
    for _ in range(2):
        assert talk.fails(expected).code is ErrorCode.DRIVE_READ_FAILED, "still away"
    drive.plug_in()
    token_ids, end = talk.ask()
    assert isinstance(end, GenerationFinished), end
    assert token_ids == expected, "without loading again"


def _short_and_late(drive: FaultyDrive, runtime: RuntimeProcess, talk: Talk) -> None:
    """Have reads return less than they could, and one take long: the answer is the same."""
    expected, _ = talk.ask()
    drive.put(Fault.SHORT, 64 << 10)
    met = drive.num_met
    assert talk.ask()[0] == expected
    assert drive.num_met > met + 10
    drive.clear()
    if IS_DEEP:
        runtime.send(WatchTelemetry(request_id=6, interval_s=0.1))
        assert talk.ask(midst=functools.partial(drive.put, Fault.STALL, STALL_S))[0] == expected
        assert NoteCode.DRIVE_STALLED in talk.notes


def _any_fault_at_any_time(
    drive: FaultyDrive, talk: Talk, expected: list[int], record_property: Record
) -> None:
    """Draw faults and the tokens at which they come; nothing is lost but time."""
    drawn = random.Random(NUM_ROUNDS)
    num_whole = 0
    for _ in range(NUM_ROUNDS):
        faults: list[tuple[Fault, float]] = [
            (Fault.ERROR, drawn.choice([errno.EIO, errno.ENODEV, errno.ENXIO, errno.ESTALE])),
            (Fault.STALL, drawn.uniform(0.01, 1)),
        ]
        if not drive.is_cached:
            faults.append((Fault.SHORT, drawn.randrange(8, 60) << 12))
        fault, what = drawn.choice(faults)
        token_ids, end = talk.ask(midst=functools.partial(drive.put, fault, what))
        drive.clear()
        assert token_ids == expected[: len(token_ids)]
        is_whole = isinstance(end, GenerationFinished)
        assert token_ids == expected or not is_whole
        num_whole += is_whole
    assert talk.ask()[0] == expected
    record_property("rounds", NUM_ROUNDS)
    record_property("answers_that_were_whole_all_the_same", num_whole)


def test_flipped_bit_of_a_copy_is_read_again_and_rot_is_refused_by_expert(
    tmp_path: Path, runtime: RuntimeProcess
) -> None:
    model = write_checkpoint(tmp_path / "model", TinyModel())
    copy = tmp_path / "copy"
    plan = prepared_plan(model, copy, WeightFormat.Q8_G32, CONTEXT_TOKENS, num_slots=3)
    with faulty_drive(copy, tmp_path) as drive:
        runtime.load(msgspec.structs.replace(plan, store_folder=str(drive.place)))
        talk = Talk(runtime)
        drive.put(Fault.ROT)
        error = talk.fails([])
        drive.clear()
        assert error.code is ErrorCode.STORE_DAMAGED
        store = PreparedStore(copy)
        words = str(error.parameters["part"]).replace(",", "").split()
        expert = ExpertId(int(words[1]), int(words[3]))
        file, offset_bytes = store.place_of(expert)
        store.close()
        met = drive.num_met
        drive.put(Fault.FLIP, f"{Path(file).name}:{offset_bytes + 100}")
        found, end = talk.ask()
        assert drive.num_met == met + 1, "the expert was read with a wrong bit"
        assert isinstance(end, GenerationFinished)
        assert found == talk.ask()[0], "it was read once more"
