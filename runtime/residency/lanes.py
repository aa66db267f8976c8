"""Lanes of reads from the drive: what a computation waits for, what it may need, and the rest."""

import enum
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from runtime.errors import LarderError
from runtime.residency.depth import DEPTHS, USUAL_DEPTH
from runtime.residency.watch import STALL_S, ReadWatch, Stalled, StalledRead, log_stall
from runtime.spec.tensors import ExpertId
from runtime.store.base import ExpertStore, HalvingStore

MAX_DEMAND_READERS = max(DEPTHS)
"""The most that read at the same time for a computation, beside whoever waits for it."""
NUM_BACKGROUND_READERS = 2
"""Fewer, so that the drive is soon free for a computation."""
NUM_HINT_READERS = 2
"""The same for what is only guessed to be needed."""

Arrived = Callable[[ExpertId], None]
"""Called by a reader's thread when an expert lies in its slot."""


class AbandonedError(Exception):
    """A read that was not begun because an earlier one failed."""


class _Pending(enum.Enum):
    """What stands for the outcome of a read that has not ended."""

    PENDING = enum.auto()


_PENDING = _Pending.PENDING
ReadOutcome = Future[LarderError | None]
"""What went wrong with a read, None if nothing did."""


class Halved(NamedTuple):
    """How the last of some reads is read in halves; each returns what went wrong."""

    read: Callable[[int], LarderError | None]
    check: Callable[[], LarderError | None]


def _outcome_of(read: Callable[[], LarderError | None]) -> BaseException | None:
    try:
        return read()
    except BaseException as bug:  # noqa: BLE001
        # It is raised in the thread that waits.
        return bug


class DemandedReads:
    """Reads that a computation waits for, begun in their order by readers and by whoever waits.

    The last one may be read in halves, so that no thread reads alone while another waits for it.
    Hints are such reads too, until they are waited for or abandoned.

    Threads: ``is_done``, ``wait`` and ``abandon`` belong to the engine thread; ``read_some`` runs
    in several at once.
    """

    def __init__(
        self,
        work: Sequence[tuple[ExpertId, memoryview]],
        read: Callable[[ExpertId, memoryview], LarderError | None],
        forget: Callable[[], None],
        halved: Halved | None = None,
    ) -> None:
        """``read`` reads and counts one; ``forget`` counts one that is not read.

        ``halved`` reads and counts the halves of the last one.
        """
        self._work = work
        self._read = read
        self._forget = forget
        self._halved = halved
        self._first_half = len(work) if halved is None else len(work) - 1
        self._half_outcomes: list[BaseException | None] = []
        # Taking a number from it is one step that no other thread can come between.
        self._numbers = iter(range(len(work) if halved is None else len(work) + 1))
        self._outcomes: list[BaseException | _Pending | None] = [_PENDING] * len(work)
        self._awaited = -1
        self._changed = threading.Condition(threading.Lock())

    def read_some(self) -> None:
        """Read until every read has begun."""
        while self.read_next():
            pass

    def read_next(self) -> bool:
        """Read the next one; return whether there was any."""
        number = next(self._numbers, None)
        if number is None:
            return False
        self._read_one(number)
        return True

    def is_good(self, number: int) -> bool:
        """Whether a read has ended well."""
        return self._outcomes[number] is None

    def is_usable(self, number: int) -> bool:
        """Whether a read has ended well or still may."""
        outcome = self._outcomes[number]
        return outcome is None or outcome is _PENDING

    def is_done(self, number: int) -> bool:
        """Whether a read has ended."""
        return self._outcomes[number] is not _PENDING

    def wait(self, number: int) -> BaseException | None:
        """Wait until a read has ended, taking part until then; return what went wrong with it."""
        while self._outcomes[number] is _PENDING:
            mine = next(self._numbers, None)
            if mine is not None:
                self._read_one(mine)
                continue
            with self._changed:
                self._awaited = number
                while self._outcomes[number] is _PENDING:
                    self._changed.wait()
        outcome = self._outcomes[number]
        assert not isinstance(outcome, _Pending)
        return outcome

    def abandon(self) -> None:
        """Leave what has not begun; it counts as failed."""
        for number in self._numbers:
            self._forget()
            if number < self._first_half:
                self._outcomes[number] = AbandonedError()
            else:
                self._end_half(AbandonedError())

    def _read_one(self, number: int) -> None:
        if number < self._first_half:
            self._end(number, _outcome_of(lambda: self._read(*self._work[number])))
            return
        halved = self._halved
        assert halved is not None, "halves come with how to read them"
        self._end_half(_outcome_of(lambda: halved.read(number - self._first_half)))

    def _end_half(self, outcome: BaseException | None) -> None:
        """Note what came of a half; the later one ends the read."""
        assert self._halved is not None, "halves come with how to read them"
        with self._changed:
            self._half_outcomes.append(outcome)
            is_first = len(self._half_outcomes) == 1
        if is_first:
            return
        wrong = next((each for each in self._half_outcomes if each is not None), None)
        self._end(self._first_half, _outcome_of(self._halved.check) if wrong is None else wrong)

    def _end(self, number: int, outcome: BaseException | None) -> None:
        with self._changed:
            self._outcomes[number] = outcome
            if number == self._awaited:
                self._changed.notify()


class ReadLanes:
    """Reads experts for whoever waits, and others in the background while nobody waits.

    A background read or a hint begins only while no demand read is in flight; one that has begun is
    ended.

    Threads: ``demand``, ``hint``, ``behind`` and ``close`` belong to the engine thread.
    """

    def __init__(
        self, store: ExpertStore, stalled: Stalled = log_stall, stall_s: float = STALL_S
    ) -> None:
        """``stalled`` is called while a read takes longer than ``stall_s``."""
        self._store = store
        self._halving = store if isinstance(store, HalvingStore) else None
        self._stalled = stalled
        self._watch = ReadWatch(self._tell_stall, stall_s)
        self._demand = ThreadPoolExecutor(MAX_DEMAND_READERS, "expert-reader")
        self.num_readers = USUAL_DEPTH
        """How many readers take part in a demand that comes."""
        self._background = ThreadPoolExecutor(NUM_BACKGROUND_READERS, "expert-filler")
        self._hints = ThreadPoolExecutor(NUM_HINT_READERS, "expert-guesser")
        self._lock = threading.Lock()
        self._num_demanded = 0
        self._quiet = threading.Event()
        self._quiet.set()
        self._is_closing = False

    def demand(self, work: Sequence[tuple[ExpertId, memoryview]]) -> DemandedReads:
        """Ask for targets to be filled as soon as possible, in this order."""
        halved = self._halved(*work[-1]) if work else None
        number = len(work) if halved is None else len(work) + 1
        with self._lock:
            self._num_demanded += number
            self._quiet.clear()
        reads = DemandedReads(work, self._read_demanded, self._forget_demanded, halved)
        for _ in range(min(self.num_readers, number)):
            self._demand.submit(reads.read_some)
        return reads

    def hint(self, work: Sequence[tuple[ExpertId, memoryview]]) -> DemandedReads:
        """Let targets be filled, in this order, while nothing is demanded."""
        reads = DemandedReads(work, self._read, _forget_hint)
        for _ in range(min(NUM_HINT_READERS, len(work))):
            self._hints.submit(self._read_hints, reads)
        return reads

    def behind(self, expert: ExpertId, target: memoryview, arrived: Arrived) -> ReadOutcome:
        """Ask for a target to be filled in the background.

        The future can be cancelled until the read is its turn; ``arrived`` was called before it
        ends well.
        """
        return self._background.submit(self._read_behind, expert, target, arrived)

    def close(self) -> None:
        """Forget what waits and wait for what is being read; may be called twice."""
        self._is_closing = True
        self._quiet.set()
        for readers in (self._hints, self._background, self._demand):
            readers.shutdown(cancel_futures=True)
        self._watch.close()

    def _read_demanded(self, expert: ExpertId, target: memoryview) -> LarderError | None:
        try:
            return self._read(expert, target)
        finally:
            self._forget_demanded()

    def _halved(self, expert: ExpertId, target: memoryview) -> Halved | None:
        """Return how to read an expert in halves, None where that is of no use."""
        halves = None if self._halving is None else self._halving.halved(expert, target)
        if halves is None:
            return None

        def read(half: int) -> LarderError | None:
            try:
                return self._watched(expert, lambda: halves.read(half))
            finally:
                self._forget_demanded()

        return Halved(read, lambda: self._watched(expert, halves.check))

    def _forget_demanded(self) -> None:
        """Count one demanded read less; when none is left, the background goes on."""
        with self._lock:
            self._num_demanded -= 1
            if not self._num_demanded:
                self._quiet.set()

    def _read_behind(
        self, expert: ExpertId, target: memoryview, arrived: Arrived
    ) -> LarderError | None:
        while not self._quiet.is_set():
            self._quiet.wait()
        if self._is_closing:
            return None
        error = self._read(expert, target)
        if error is None:
            arrived(expert)
        return error

    def _read_hints(self, reads: DemandedReads) -> None:
        while not self._is_closing:
            if not self._quiet.is_set():
                self._quiet.wait()
            elif not reads.read_next():
                return

    def _tell_stall(self, expert: ExpertId, seconds: float) -> None:
        self._stalled(StalledRead(expert, *self._store.place_of(expert), seconds))

    def _read(self, expert: ExpertId, target: memoryview) -> LarderError | None:
        return self._watched(expert, lambda: self._store.read_expert(expert, target))

    def _watched(self, expert: ExpertId, read: Callable[[], None]) -> LarderError | None:
        self._watch.begin(expert)
        try:
            read()
        except LarderError as error:
            return _naming(expert, error)
        finally:
            self._watch.end()
        return None


def _naming(expert: ExpertId, error: LarderError) -> LarderError:
    """Return an error that says in its detail which expert was being read."""
    place = f"layer {expert.layer}, expert {expert.expert}"
    detail = " · ".join(part for part in (place, error.detail) if part)
    named = LarderError(error.code, detail, **error.parameters)
    named.__cause__ = error
    return named


def _forget_hint() -> None:
    """Count nothing: nobody waits for a hint that is not read."""
