"""The outline of a model: its small files and the headers of its weights, at their full length.

Weights are sparse files, so an outline takes some megabytes and can be inspected and planned like
the model itself: what is told before a download is what will be told after it.
"""

import concurrent.futures
import contextlib
import shutil
from pathlib import Path

from runtime.engine.base import CancelToken
from runtime.errors import CancelledError, LarderError
from runtime.hub.connection import BrokenConnectionError, HubConnection, RangeRefusedError
from runtime.hub.places import Record, is_complete, read_record, write_record
from runtime.hub.remote_header import RemoteStart, read_remote_start, small_parts
from runtime.hub.repo import Repo, RepoFile, needed_files
from runtime.hub.sparse import write_sparse
from runtime.hub.transfer import Carrier, fetch_file
from runtime.hub.variants import Variant, files_of
from runtime.inspect.gguf.parts import is_gguf_name
from runtime.inspect.header import MAX_HEADER_BYTES
from runtime.inspect.shards import INDEX_NAME, read_index_files
from runtime.protocol.errors import ErrorCode

MAX_KEPT = 12
"""Outlines of the models that were looked at last."""
FIRST_BYTES = 1 << 20
"""Most headers are shorter, so that one request is enough."""
_NUM_TOGETHER = 6
_MAX_TRIES = 3


class OutlineMaker:
    """Makes outlines below one folder. Threads: one at a time."""

    def __init__(self, hub: HubConnection, cancel: CancelToken, root: Path) -> None:
        self._hub = hub
        self._cancel = cancel
        self._root = root

    def make(self, repo: Repo, variant: Variant | None = None) -> tuple[list[RepoFile], str]:
        """Return the files that a model needs, and where its outline lies.

        That is a folder, of a ``variant`` its first file. It is empty text where the drive cannot
        hold an outline. Raises ``CancelledError``, ``LarderError`` or ``OSError``.
        """
        name = repo.model_id.replace("/", "--") + (f"@{variant.name}" if variant else "")
        folder = self._root / f"{name}--{repo.revision[:12]}" / repo.model_id.rpartition("/")[2]
        place = str(folder / variant.files[0].name if variant is not None else folder)
        record = read_record(folder)
        if record is not None and record.revision == repo.revision and is_complete(folder, record):
            folder.parent.touch()
            return record.files, place
        folder.mkdir(parents=True, exist_ok=True)
        self._prune(folder.parent)
        files = self._needed(repo, folder) if variant is None else files_of(repo, variant)
        weights = [file for file in files if file.is_weights]
        self._fetch_small(repo, [file for file in files if not file.is_weights], folder)
        with concurrent.futures.ThreadPoolExecutor(_NUM_TOGETHER) as pool:
            started = [pool.submit(self._fetch_start, repo, file, folder) for file in weights]
            try:
                are_written = [each.result() for each in started]
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        if not all(are_written):
            shutil.rmtree(folder.parent)
            return files, ""
        record = Record(model_id=repo.model_id, revision=repo.revision, files=files)
        write_record(folder, record)
        return files, place

    def _needed(self, repo: Repo, folder: Path) -> list[RepoFile]:
        index = next((file for file in repo.files if file.name == INDEX_NAME), None)
        if index is None:
            return needed_files(repo)
        self._fetch_small(repo, [index], folder)
        try:
            named = read_index_files(folder / INDEX_NAME)
        except LarderError as cause:
            reason = "its list of weights cannot be read"
            raise LarderError(
                ErrorCode.HUB_MODEL_UNUSABLE, str(cause), model=repo.model_id, reason=reason
            ) from cause
        return needed_files(repo, named)

    def _fetch_small(self, repo: Repo, files: list[RepoFile], folder: Path) -> None:
        carrier = Carrier(self._hub, self._cancel, _nothing, _nothing, 0.2)
        for file in files:
            self._cancel.check()
            fetch_file(carrier, file, self._hub.file_url(repo, file.path), folder, repo.model_id)

    def _fetch_start(self, repo: Repo, file: RepoFile, folder: Path) -> bool:
        """Write the header of one file of weights; return whether that could be."""
        url = self._hub.file_url(repo, file.path)
        if is_gguf_name(file.name):
            return self._fetch_gguf_start(url, file, folder / file.name, repo.model_id)
        start = self._read_start(url, FIRST_BYTES, repo.model_id)
        header_bytes = int.from_bytes(start[:8].ljust(8, b"\0"), "little")
        needed = min(8 + header_bytes, file.size_bytes)
        if header_bytes > MAX_HEADER_BYTES:
            # Not a header: the inspection of the outline says so.
            needed = min(FIRST_BYTES, file.size_bytes)
        if needed > len(start):
            start = self._read_start(url, needed, repo.model_id)
        return write_sparse(folder / file.name, start[:needed], file.size_bytes)

    def _fetch_gguf_start(self, url: str, file: RepoFile, path: Path, model_id: str) -> bool:
        """Write the header of one file in GGUF, and the small tensors that say what it is."""
        size = file.size_bytes
        with RemoteStart(self._hub, self._cancel, url, size, model_id) as start:
            header = read_remote_start(start, path, size)
        pieces = {
            offset: self._read_start(url, num_bytes, model_id, offset)
            for offset, num_bytes in (small_parts(header) if header is not None else ())
        }
        if not write_sparse(path, bytes(start.data), size):
            return False
        with path.open("r+b") as out:
            for offset, piece in pieces.items():
                out.seek(offset)
                out.write(piece)
        return True

    def _read_start(self, url: str, num_bytes: int, model_id: str, offset_bytes: int = 0) -> bytes:
        for num_tries in range(1, _MAX_TRIES + 1):
            self._cancel.check()
            try:
                return self._hub.read_range(url, offset_bytes, num_bytes, model_id)
            except RangeRefusedError:
                return b""
            except BrokenConnectionError as broken:
                if num_tries == _MAX_TRIES:
                    raise self._hub.unreachable(broken) from broken
                if self._cancel.wait(max(broken.wait_s, 0.2)):
                    raise CancelledError from broken
        raise AssertionError("the last try returns or raises")

    def _prune(self, kept: Path) -> None:
        """Delete the outlines that were not looked at for longest."""
        others = [path for path in self._root.iterdir() if path != kept]
        dated: list[tuple[float, Path]] = []
        for path in others:
            with contextlib.suppress(OSError):
                dated.append((path.stat().st_mtime, path))
        for _, path in sorted(dated, reverse=True)[MAX_KEPT - 1 :]:
            shutil.rmtree(path, ignore_errors=True)


def _nothing(_: int) -> None:
    """Nobody is told of an outline's bytes."""
