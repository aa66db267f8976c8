"""The threads that ask hubs: one for questions, one for downloads."""

from pathlib import Path
from typing import TYPE_CHECKING

from runtime.errors import CancelledError
from runtime.protocol.engine_messages import EngineFetched, FetchEngine
from runtime.protocol.hub_messages import (
    DescribeHubModel,
    DiscardDownload,
    DownloadDiscarded,
    DownloadModel,
    DownloadPaused,
    DownloadProgressed,
    HubCancelled,
    HubConfigsRead,
    HubModelDescribed,
    HubSearched,
    ModelDownloaded,
    ReadHubConfigs,
    SearchHub,
)
from runtime.protocol.update_messages import (
    CheckForUpdate,
    FetchUpdate,
    UpdateChecked,
    UpdateFetched,
)
from runtime.service.guard import run_guarded
from runtime.service.log import ErrorLog
from runtime.service.requests import Request
from runtime.service.worker import Worker

if TYPE_CHECKING:
    from runtime.hub.desk import HubDesk
    from runtime.hub.download import Fetched

ProgramQuestion = CheckForUpdate | FetchUpdate | FetchEngine
Asking = SearchHub | DescribeHubModel | ReadHubConfigs
HubQuestion = Asking | DownloadModel | DiscardDownload


class HubRoom:
    """Asks hubs and downloads, one model after the other; looking at others goes on meanwhile.

    Threads: the command thread starts; its own threads ask and download.
    """

    def __init__(self, cache: Path, error_log: ErrorLog) -> None:
        self._cache = cache
        self._error_log = error_log
        self._asking: Worker | None = None
        self._loading: Worker | None = None
        self._updating: Worker | None = None

    def start(self, request: Request, question: HubQuestion) -> None:
        """Begin, once what was asked of the same thread before has ended."""
        request.is_cancellable = not isinstance(question, DiscardDownload)

        def work() -> None:
            match question:
                case SearchHub() | DescribeHubModel() | ReadHubConfigs():
                    self._answer(request, question)
                case DownloadModel():
                    self._download(request, question)
                case DiscardDownload():
                    self._discard(request, question)

        worker = self._worker(is_question=isinstance(question, Asking))
        worker.submit(lambda: run_guarded(work, request.fail, self._error_log))

    def start_update(self, request: Request, question: ProgramQuestion) -> None:
        """Look for a newer version of the program, or bring it or its engine for cards."""
        request.is_cancellable = True

        def work() -> None:
            match question:
                case CheckForUpdate():
                    self._check_for_update(request, question)
                case FetchUpdate():
                    self._fetch_update(request, question)
                case FetchEngine():
                    self._fetch_engine(request, question)

        self._updating = self._updating or Worker("update")
        self._updating.submit(lambda: run_guarded(work, request.fail, self._error_log))

    def finish(self, timeout_s: float) -> bool:
        """End after what was started and cancelled; return whether that was in time."""
        started = (self._asking, self._loading, self._updating)
        workers = [worker for worker in started if worker is not None]
        for worker in workers:
            worker.finish()
        are_ended = [worker.join(timeout_s) for worker in workers]
        return all(are_ended)

    def _worker(self, *, is_question: bool) -> Worker:
        """Return the thread for a command; most runtimes never have one."""
        if is_question:
            self._asking = self._asking or Worker("hub")
            return self._asking
        self._loading = self._loading or Worker("download")
        return self._loading

    def _desk(self) -> "HubDesk":
        # Late, since most runtimes ask no hub, and its libraries take longer than all others.
        from runtime.hub.desk import HubDesk

        return HubDesk(self._cache)

    def _answer(self, request: Request, question: Asking) -> None:
        request_id = request.request_id
        try:
            request.cancel.check()
            if isinstance(question, SearchHub):
                models = self._desk().search(
                    question.query, question.endpoint, question.folder, request.cancel
                )
                request.close(HubSearched(request_id=request_id, models=models))
                return
            if isinstance(question, ReadHubConfigs):
                configs = self._desk().read_configs(
                    question.model_ids, question.endpoint, request.cancel
                )
                request.close(HubConfigsRead(request_id=request_id, configs=configs))
                return
            card = self._desk().describe(
                question.model_id,
                question.endpoint,
                question.folder,
                request.cancel,
                question.variant,
            )
            request.close(HubModelDescribed(request_id=request_id, card=card))
        except CancelledError:
            request.close(HubCancelled(request_id=request_id))

    def _check_for_update(self, request: Request, question: CheckForUpdate) -> None:
        from runtime.hub.updates import UpdateDesk

        request_id = request.request_id
        try:
            request.cancel.check()
            update = UpdateDesk().check(
                question.address, question.key, question.version, question.package, request.cancel
            )
        except CancelledError:
            request.close(HubCancelled(request_id=request_id))
            return
        request.close(UpdateChecked(request_id=request_id, update=update))

    def _fetch_update(self, request: Request, command: FetchUpdate) -> None:
        from runtime.hub.unpack import unpack_beside
        from runtime.hub.updates import UpdateDesk

        request_id = request.request_id
        teller = _Teller(request)
        try:
            request.cancel.check()
            path = UpdateDesk().fetch(
                command.address, command.update, command.folder, request.cancel, teller.tell
            )
            if command.unpack_beside:
                path = unpack_beside(path, Path(command.unpack_beside), request.cancel)
        except CancelledError:
            request.close(DownloadPaused(request_id=request_id, kept_bytes=teller.done_bytes))
            return
        request.close(UpdateFetched(request_id=request_id, path=str(path)))

    def _fetch_engine(self, request: Request, command: FetchEngine) -> None:
        from runtime.hub.engine_parts import fetch_engine

        request_id = request.request_id
        teller = _Teller(request)
        try:
            request.cancel.check()
            version, card = fetch_engine(
                command.parts, Path(command.folder), request.cancel, teller.tell
            )
        except CancelledError:
            request.close(DownloadPaused(request_id=request_id, kept_bytes=teller.done_bytes))
            return
        request.close(
            EngineFetched(request_id=request_id, folder=command.folder, version=version, card=card)
        )

    def _download(self, request: Request, command: DownloadModel) -> None:
        request_id = request.request_id
        desk = self._desk()

        def tell(fetched: "Fetched") -> None:
            request.tell(_progressed(request_id, fetched))

        try:
            request.cancel.check()
            folder, size_bytes = desk.download(
                command.model_id,
                command.revision,
                command.endpoint,
                command.folder,
                request.cancel,
                tell,
                command.variant,
            )
        except CancelledError:
            kept = desk.kept(command.model_id, command.folder, command.variant)
            request.close(DownloadPaused(request_id=request_id, kept_bytes=kept))
            return
        request.close(
            ModelDownloaded(request_id=request_id, folder=str(folder), size_bytes=size_bytes)
        )

    def _discard(self, request: Request, command: DiscardDownload) -> None:
        freed = self._desk().discard(command.model_id, command.folder, command.variant)
        request.close(DownloadDiscarded(request_id=request.request_id, freed_bytes=freed))


class _Teller:
    """Tells how far a download is, a frame for each percent. Threads: one."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self.done_bytes = 0

    def tell(self, fetched: "Fetched") -> None:
        is_step = (fetched.done_bytes - self.done_bytes) * 100 >= fetched.total_bytes
        if is_step or fetched.num_retries:
            self.done_bytes = fetched.done_bytes
            self._request.tell(_progressed(self._request.request_id, fetched))


def _progressed(request_id: int, fetched: "Fetched") -> DownloadProgressed:
    """Return how far a download is, as it is told."""
    return DownloadProgressed(
        request_id=request_id,
        done_bytes=fetched.done_bytes,
        total_bytes=fetched.total_bytes,
        bytes_per_s=fetched.bytes_per_s,
        file=fetched.file,
        num_retries=fetched.num_retries,
    )
