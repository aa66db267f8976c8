"""Two lanes of reads from the drive: what a computation waits for, and everything else."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from runtime.errors import LarderError
from runtime.spec.tensors import ExpertId
from runtime.store.base import ExpertStore

NUM_DEMAND_READERS = 4
"""Reads in flight at the same time while a computation waits for them."""
NUM_BACKGROUND_READERS = 2
"""Fewer, so that the drive is soon free for a computation."""

Arrived = Callable[[ExpertId], None]
"""Called by a reader's thread when an expert lies in its slot."""
ReadOutcome = Future[LarderError | None]
"""What went wrong with a read, None if nothing did."""


class ReadLanes:
    """Reads experts for whoever waits, and others in the background while nobody waits.

    A background read begins only while no demand read is in flight; one that has begun is ended.

    Threads: ``demand``, ``behind`` and ``close`` belong to the engine thread.
    """

    def __init__(self, store: ExpertStore) -> None:
        self._store = store
        self._demand = ThreadPoolExecutor(NUM_DEMAND_READERS, "expert-reader")
        self._background = ThreadPoolExecutor(NUM_BACKGROUND_READERS, "expert-filler")
        self._lock = threading.Lock()
        self._num_demanded = 0
        self._quiet = threading.Event()
        self._quiet.set()
        self._is_closing = False

    def demand(self, expert: ExpertId, target: memoryview) -> ReadOutcome:
        """Ask for a target to be filled as soon as possible, after those that were asked before."""
        with self._lock:
            self._num_demanded += 1
            self._quiet.clear()
        return self._demand.submit(self._read_demanded, expert, target)

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
        self._background.shutdown(cancel_futures=True)
        self._demand.shutdown(cancel_futures=True)

    def _read_demanded(self, expert: ExpertId, target: memoryview) -> LarderError | None:
        try:
            return self._read(expert, target)
        finally:
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

    def _read(self, expert: ExpertId, target: memoryview) -> LarderError | None:
        try:
            self._store.read_expert(expert, target)
        except LarderError as error:
            return error
        return None
