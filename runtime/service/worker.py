"""A thread that does one thing after the other."""

import queue
import threading
from collections.abc import Callable

Job = Callable[[], None]


class Worker:
    """One thread that runs the jobs handed to it, in their order. A job must not raise.

    Threads: any thread may call any method; jobs run in the worker's own.
    """

    def __init__(self, name: str) -> None:
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Run a job after those handed in before."""
        self._jobs.put(job)

    def finish(self) -> None:
        """End the thread after the jobs handed in so far."""
        self._jobs.put(None)

    def join(self, timeout_s: float) -> bool:
        """Wait for the end of the thread after ``finish``; return whether it has ended."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
