"""A whole model from the hub to the drive: resumed where it stopped, complete or not there."""

import dataclasses
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from runtime.engine.base import CancelToken
from runtime.errors import LarderError
from runtime.hub.connection import HubConnection
from runtime.hub.places import (
    RECORD_NAME,
    Record,
    final_folder,
    is_complete,
    kept_bytes,
    part_folder,
    read_record,
    write_record,
)
from runtime.hub.repo import Repo, RepoFile
from runtime.hub.transfer import Carrier, fetch_file
from runtime.inspect.files import shown
from runtime.prepare.disk import PART_ENDING, disk_error, free_bytes, sync_folder
from runtime.prepare.lock import FolderBusyError, FolderLock
from runtime.protocol.errors import ErrorCode

SPARE_BYTES = 256 << 20
"""Room that is left on the drive; a system without any cannot work."""
TELL_INTERVAL_S = 0.25
_RATE_S = 4.0
"""The rate is that of about so many seconds before."""


@dataclasses.dataclass(frozen=True, slots=True)
class Fetched:
    """How far a download is."""

    done_bytes: int
    total_bytes: int
    bytes_per_s: float
    file: str
    num_retries: int


Told = Callable[[Fetched], None]


def _is_used(folder: Path, record: Record) -> bool:
    """Whether a folder of ours holds more than its record and what goes beside weights."""
    names = {path.name for path in folder.iterdir()} - {RECORD_NAME}
    beside = {file.name for file in record.files if not file.is_weights}
    return bool(names - beside)


class Download:
    """One model on its way. Threads: one."""

    def __init__(
        self,
        hub: HubConnection,
        cancel: CancelToken,
        tell: Told,
        *,
        first_pause_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._hub = hub
        self._cancel = cancel
        self._tell = tell
        self._clock = clock
        self._carrier = Carrier(hub, cancel, self._on_arrived, self._on_retrying, first_pause_s)
        self._total = self._done = 0
        self._file = ""
        self._num_retries = 0
        self._told_s = clock()
        self._marks: list[tuple[float, int]] = []

    def run(self, repo: Repo, files: list[RepoFile], root: Path, variant: str = "") -> Path:
        """Bring a model to its place below ``root``; return its folder.

        Raises ``CancelledError`` or ``LarderError``; what is there stays for the next run.
        """
        final = final_folder(root, repo.model_id, variant)
        part = part_folder(root, repo.model_id, variant)
        record = Record(model_id=repo.model_id, revision=repo.revision, files=files)
        try:
            if final.exists():
                there = read_record(final)
                if there == record and is_complete(final, record):
                    return final
                if there is None or there.model_id != repo.model_id or _is_used(final, there):
                    raise LarderError(ErrorCode.DOWNLOAD_PLACE_TAKEN, folder=shown(str(final)))
                # What was left when its files were deleted one by one.
                shutil.rmtree(final)
            part.mkdir(parents=True, exist_ok=True)
            with FolderLock(part):
                self._fill(record, repo, part)
            part.rename(final)
            sync_folder(final.parent)
        except FolderBusyError as cause:
            raise LarderError(ErrorCode.DOWNLOAD_BUSY, model=repo.model_id) from cause
        except OSError as cause:
            kept = kept_bytes(part, files)
            missing = sum(file.size_bytes for file in files) - kept
            failed = ErrorCode.DOWNLOAD_WRITE_FAILED
            raise disk_error(part.parent, cause, missing, kept, failed) from cause
        return final

    def _fill(self, record: Record, repo: Repo, folder: Path) -> None:
        files = record.files
        before = read_record(folder)
        if before is not None and before != record:
            self._drop_changed(before, record, folder)
        self._total = sum(file.size_bytes for file in files)
        self._check_room(files, folder)
        write_record(folder, record)
        for file in files:
            self._cancel.check()
            self._file = file.name
            self._tell_now()
            url = self._hub.file_url(repo, file.path)
            fetch_file(self._carrier, file, url, folder, repo.model_id)
        sync_folder(folder)
        self._tell_now()

    def _drop_changed(self, before: Record, record: Record, folder: Path) -> None:
        """Delete what belongs to another revision; files that are the same in both stay."""
        same = set(before.files) & set(record.files)
        for file in before.files:
            if file not in same:
                (folder / file.name).unlink(missing_ok=True)
                (folder / (file.name + PART_ENDING)).unlink(missing_ok=True)

    def _check_room(self, files: list[RepoFile], folder: Path) -> None:
        missing = self._total - kept_bytes(folder, files)
        free = free_bytes(folder)
        if missing and missing + SPARE_BYTES > free:
            raise LarderError(
                ErrorCode.DISK_FULL,
                folder=shown(str(folder.parent)),
                needed_bytes=missing + SPARE_BYTES,
                free_bytes=free,
            )

    def _on_arrived(self, num_bytes: int) -> None:
        self._done += num_bytes
        if self._clock() - self._told_s >= TELL_INTERVAL_S:
            self._tell_now()

    def _on_retrying(self, num_retries: int) -> None:
        self._num_retries = num_retries
        self._tell_now()

    def _tell_now(self) -> None:
        now_s = self._clock()
        self._told_s = now_s
        self._marks = [mark for mark in self._marks if now_s - mark[0] <= _RATE_S]
        rate = 0.0
        if self._marks and not self._num_retries:
            first_s, first_bytes = self._marks[0]
            if now_s > first_s:
                rate = max(self._done - first_bytes, 0) / (now_s - first_s)
        self._marks.append((now_s, self._done))
        self._tell(Fetched(self._done, self._total, rate, self._file, self._num_retries))
