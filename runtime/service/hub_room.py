"""The threads that ask hubs: one for questions, one for downloads."""

from runtime.errors import CancelledError, LarderError
from runtime.hub.desk import HubDesk
from runtime.hub.download import Fetched
from runtime.hub.places import checked_root, discard
from runtime.hub.repo import check_model_id
from runtime.prepare.lock import FolderBusyError
from runtime.protocol.errors import ErrorCode
from runtime.protocol.hub_messages import (
    DescribeHubModel,
    DiscardDownload,
    DownloadDiscarded,
    DownloadModel,
    DownloadPaused,
    DownloadProgressed,
    HubCancelled,
    HubModelDescribed,
    HubSearched,
    ModelDownloaded,
    SearchHub,
)
from runtime.service.guard import run_guarded
from runtime.service.log import ErrorLog
from runtime.service.requests import Request
from runtime.service.worker import Worker

HubQuestion = SearchHub | DescribeHubModel | DownloadModel | DiscardDownload


class HubRoom:
    """Asks hubs and downloads, one model after the other; looking at others goes on meanwhile.

    Threads: the command thread starts; its own threads ask and download.
    """

    def __init__(self, desk: HubDesk, error_log: ErrorLog) -> None:
        self._desk = desk
        self._error_log = error_log
        self._asking: Worker | None = None
        self._loading: Worker | None = None

    def start(self, request: Request, question: HubQuestion) -> None:
        """Begin, once what was asked of the same thread before has ended."""
        request.is_cancellable = not isinstance(question, DiscardDownload)

        def work() -> None:
            match question:
                case SearchHub() | DescribeHubModel():
                    self._answer(request, question)
                case DownloadModel():
                    self._download(request, question)
                case DiscardDownload():
                    self._discard(request, question)

        worker = self._worker(is_question=isinstance(question, SearchHub | DescribeHubModel))
        worker.submit(lambda: run_guarded(work, request.fail, self._error_log))

    def finish(self, timeout_s: float) -> bool:
        """End after what was started and cancelled; return whether that was in time."""
        workers = [worker for worker in (self._asking, self._loading) if worker is not None]
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

    def _answer(self, request: Request, question: SearchHub | DescribeHubModel) -> None:
        request_id = request.request_id
        try:
            request.cancel.check()
            if isinstance(question, SearchHub):
                models = self._desk.search(
                    question.query, question.endpoint, question.folder, request.cancel
                )
                request.close(HubSearched(request_id=request_id, models=models))
                return
            card = self._desk.describe(
                question.model_id, question.endpoint, question.folder, request.cancel
            )
            request.close(HubModelDescribed(request_id=request_id, card=card))
        except CancelledError:
            request.close(HubCancelled(request_id=request_id))

    def _download(self, request: Request, command: DownloadModel) -> None:
        request_id = request.request_id

        def tell(fetched: Fetched) -> None:
            request.tell(
                DownloadProgressed(
                    request_id=request_id,
                    done_bytes=fetched.done_bytes,
                    total_bytes=fetched.total_bytes,
                    bytes_per_s=fetched.bytes_per_s,
                    file=fetched.file,
                    num_retries=fetched.num_retries,
                )
            )

        try:
            request.cancel.check()
            folder, size_bytes = self._desk.download(
                command.model_id,
                command.revision,
                command.endpoint,
                command.folder,
                request.cancel,
                tell,
            )
        except CancelledError:
            kept = self._desk.kept(command.model_id, command.folder)
            request.close(DownloadPaused(request_id=request_id, kept_bytes=kept))
            return
        request.close(
            ModelDownloaded(request_id=request_id, folder=str(folder), size_bytes=size_bytes)
        )

    def _discard(self, request: Request, command: DiscardDownload) -> None:
        check_model_id(command.model_id)
        root = checked_root(command.folder)
        try:
            freed = discard(root, command.model_id)
        except FolderBusyError as cause:
            raise LarderError(ErrorCode.DOWNLOAD_BUSY, model=command.model_id) from cause
        except OSError as cause:
            reason = cause.strerror or str(cause)
            raise LarderError(
                ErrorCode.DISK_NOT_WRITABLE, folder=command.folder, reason=reason
            ) from cause
        request.close(DownloadDiscarded(request_id=request.request_id, freed_bytes=freed))
