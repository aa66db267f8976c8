"""The thread that looks for models below places, one search after the other."""

import time
from pathlib import Path

from runtime.inspect.search import Seen, TreeSearch
from runtime.protocol.messages import (
    FindModels,
    ModelsFound,
    ModelsSearched,
    RootSearched,
    SearchCancelled,
)
from runtime.protocol.model import ModelReport
from runtime.service.guard import run_guarded
from runtime.service.log import ErrorLog
from runtime.service.planning import Planning
from runtime.service.requests import Request
from runtime.service.worker import Worker

MAX_TOGETHER = 20
"""Reports in one event; the next of them cannot make a frame too long."""
TELL_INTERVAL_S = 0.2


class SearchRoom:
    """Looks through places, inspects what is found, and tells it while it goes on.

    Places come in their order: one on a drive that hangs holds up those after it, but neither the
    engine nor the desk.

    Threads: the command thread starts; the room's own thread looks.
    """

    def __init__(self, planning: Planning, error_log: ErrorLog) -> None:
        self._planning = planning
        self._error_log = error_log
        self._worker = Worker("search")

    def start(self, request: Request, command: FindModels) -> None:
        """Begin a search, once those before it have ended."""
        request.is_cancellable = True

        def work() -> None:
            is_whole = _Search(self._planning, request).run(command.roots)
            closing = ModelsSearched if is_whole else SearchCancelled
            request.close(closing(request_id=request.request_id))

        self._worker.submit(lambda: run_guarded(work, request.fail, self._error_log))

    def finish(self, timeout_s: float) -> bool:
        """End after what was started and cancelled; return whether that was in time."""
        self._worker.finish()
        return self._worker.join(timeout_s)


class _Search:
    """One search with what it has found and not told yet."""

    def __init__(self, planning: Planning, request: Request) -> None:
        self._planning = planning
        self._request = request
        self._seen: Seen = {}
        self._reports: list[ModelReport] = []
        self._num_folders = 0
        self._told_s = time.monotonic()

    def run(self, roots: list[str]) -> bool:
        """Look through the places; return whether that was not cancelled."""
        return all(self._look_through(root) for root in roots)

    def _look_through(self, root: str) -> bool:
        search = TreeSearch(root, self._seen)
        for models in search:
            self._num_folders += 1
            found: list[Path | None] = [*models] or [None]
            for model in found:
                if self._request.cancel.is_cancelled:
                    return False
                self._take(root, model)
        self._tell(root)
        self._request.tell(
            RootSearched(
                request_id=self._request.request_id,
                root=root,
                state=search.state,
                num_models=search.num_models,
                num_unreadable=search.num_unreadable,
                is_complete=search.is_complete,
            )
        )
        return not self._request.cancel.is_cancelled

    def _take(self, root: str, model: Path | None) -> None:
        if model is not None:
            self._reports.append(self._planning.inspect(str(model)))
        is_time = time.monotonic() - self._told_s >= TELL_INTERVAL_S
        if is_time or len(self._reports) == MAX_TOGETHER:
            self._tell(root)

    def _tell(self, root: str) -> None:
        self._told_s = time.monotonic()
        reports, self._reports = self._reports, []
        self._request.tell(
            ModelsFound(
                request_id=self._request.request_id,
                root=root,
                reports=reports,
                num_folders=self._num_folders,
            )
        )
