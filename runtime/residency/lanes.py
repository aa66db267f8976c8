"""Two lanes of reads from the drive: what a computation waits for, and everything else."""

import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

from runtime.errors import LarderError
from runtime.spec.tensors import ExpertId
from runtime.store.base import ExpertStore

NUM_DEMAND_READERS = 4
"""Reads in flight at the same time while a computation waits for them."""
NUM_BACKGROUND_READERS = 2
"""Fewer, so that the drive is soon free for a computation."""


class ReadLanes:
    """Reads experts for whoever waits, and others in the background while nobody waits.

    A background read begins only while no demand read is in flight; one that has begun is ended.

    Threads: ``demand``, ``behind`` and ``close`` belong to the engine thread.
    """

    def __init__(self, store: ExpertStore) -> None:
        self._store = store
        self._demand = ThreadPoolExecutor(NUM_DEMAND_READERS, "expert-reader")
        self._background = ThreadPoolExecutor(NUM_BACKGROUND_READERS, "expert-filler")
        self._quiet = threading.Event()
        self._quiet.set()
        self._is_closing = False

    def demand(self, reads: Sequence[tuple[ExpertId, memoryview]]) -> list[LarderError | None]:
        """Fill all targets and return what went wrong with each.

        One read alone is done without a change of thread.
        """
        self._quiet.clear()
        try:
            if len(reads) == 1:
                return [self._read(*reads[0])]
            futures = [self._demand.submit(self._read, *read) for read in reads]
            wait(futures)
            return [future.result() for future in futures]
        finally:
            self._quiet.set()

    def behind(self, expert: ExpertId, target: memoryview) -> Future[LarderError | None]:
        """Ask for a target to be filled in the background.

        The result is what went wrong; the future can be cancelled until the read is its turn.
        """
        return self._background.submit(self._read_behind, expert, target)

    def close(self) -> None:
        """Forget what waits and wait for what is being read; may be called twice."""
        self._is_closing = True
        self._quiet.set()
        self._background.shutdown(cancel_futures=True)
        self._demand.shutdown(cancel_futures=True)

    def _read_behind(self, expert: ExpertId, target: memoryview) -> LarderError | None:
        while not self._quiet.is_set():
            self._quiet.wait()
        if self._is_closing:
            return None
        return self._read(expert, target)

    def _read(self, expert: ExpertId, target: memoryview) -> LarderError | None:
        try:
            self._store.read_expert(expert, target)
        except LarderError as error:
            return error
        return None
