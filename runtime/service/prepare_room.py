"""The thread that has prepared copies written, one at a time."""

import threading

from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode
from runtime.protocol.messages import (
    ModelPrepared,
    PrepareCancelled,
    PrepareModel,
    PreparePhase,
    PrepareProgressed,
)
from runtime.service.guard import run_guarded
from runtime.service.log import ErrorLog
from runtime.service.preparing import Preparer, PrepareStoppedError
from runtime.service.requests import Request
from runtime.service.worker import Worker


class PrepareRoom:
    """Runs a preparer and tells how far it is.

    Threads: the command thread starts; the room's own thread prepares, and lives as long as the
    process, which a child that dies with the thread that made it needs.
    """

    def __init__(self, prepare: Preparer, error_log: ErrorLog) -> None:
        self._prepare = prepare
        self._error_log = error_log
        self._worker = Worker("prepare")
        self._is_busy = threading.Event()

    def start(self, request: Request, command: PrepareModel) -> None:
        """Begin preparing; raise ``ENGINE_BUSY`` while another preparation runs."""
        if self._is_busy.is_set():
            raise LarderError(ErrorCode.ENGINE_BUSY, detail="a preparation is running")
        self._is_busy.set()
        request.is_cancellable = True

        def work() -> None:
            try:
                closing = self._run(request, command)
            finally:
                self._is_busy.clear()
            request.close(closing)

        self._worker.submit(lambda: run_guarded(work, request.fail, self._error_log))

    def finish(self, timeout_s: float) -> bool:
        """End after what was started and cancelled; return whether that was in time."""
        self._worker.finish()
        return self._worker.join(timeout_s)

    def _run(self, request: Request, command: PrepareModel) -> ModelPrepared | PrepareCancelled:
        def progress(
            done_bytes: int, total_bytes: int, bytes_per_s: float, phase: PreparePhase
        ) -> None:
            request.tell(
                PrepareProgressed(
                    request_id=request.request_id,
                    done_bytes=done_bytes,
                    total_bytes=total_bytes,
                    bytes_per_s=bytes_per_s,
                    phase=phase,
                )
            )

        try:
            copy = self._prepare(command, progress, request.cancel)
        except PrepareStoppedError as stopped:
            return PrepareCancelled(request_id=request.request_id, kept_bytes=stopped.kept_bytes)
        return ModelPrepared(
            request_id=request.request_id,
            folder=copy.folder,
            expert_format=copy.expert_format,
            size_bytes=copy.size_bytes,
        )
