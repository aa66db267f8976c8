"""What a service asks of a hub, each question from beginning to end."""

import concurrent.futures
import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from runtime.engine.base import CancelToken
from runtime.errors import CancelledError, LarderError, report_of
from runtime.hub.address import hub_address, request_headers
from runtime.hub.connection import STALL_S, BrokenConnectionError, HubConnection
from runtime.hub.download import Download, Told
from runtime.hub.listing import search_hub
from runtime.hub.outline import OutlineMaker
from runtime.hub.places import (
    checked_root,
    discard,
    final_folder,
    is_complete,
    kept_bytes,
    part_folder,
    read_record,
)
from runtime.hub.repo import (
    Repo,
    RepoFile,
    check_model_id,
    check_revision,
    is_model_id,
    read_repo,
)
from runtime.hub.variants import (
    Variant,
    files_of,
    find_variant,
    usual_variant,
    variants_of,
)
from runtime.inspect.files import shown
from runtime.inspect.listing import CONFIG_NAME
from runtime.prepare.disk import free_bytes
from runtime.prepare.lock import FolderBusyError
from runtime.protocol.errors import ErrorCode
from runtime.protocol.hub import HubCard, HubFit, HubModel, HubVariant

MAX_CONFIG_BYTES = 64 << 10
_NUM_TOGETHER = 6
_ACCESS = frozenset({ErrorCode.HUB_MODEL_GATED, ErrorCode.HUB_MODEL_UNUSABLE})


@dataclasses.dataclass(frozen=True, slots=True)
class HubDesk:
    """Answers questions about a hub.

    Threads: any, but downloads and descriptions of one model one at a time.
    """

    cache: Path
    """Below it outlines lie."""
    stall_s: float = STALL_S
    first_pause_s: float = 1.0

    def search(self, query: str, endpoint: str, folder: str, cancel: CancelToken) -> list[HubModel]:
        """Return what a hub finds; raises ``CancelledError`` or ``LarderError``."""
        root = checked_root(folder)
        with self._hub(endpoint, cancel) as hub:
            return search_hub(hub, query, _free(root))

    def describe(
        self, model_id: str, endpoint: str, folder: str, cancel: CancelToken, variant: str = ""
    ) -> HubCard:
        """Return what a model is, with an outline; raises ``CancelledError``, ``LarderError``.

        Of a page with GGUF files alone, and no ``variant`` named, that of the usual size.
        """
        root = checked_root(folder)
        check_model_id(model_id)
        with self._hub(endpoint, cancel) as hub, _drive_errors(self.cache):
            repo = _repo_of(hub, model_id)
            card = _card_of(repo, root)
            try:
                chosen = _chosen(repo, variant)
                if chosen is not None:
                    card = msgspec.structs.replace(
                        card,
                        variant=chosen.name,
                        folder=shown(str(final_folder(root, model_id, chosen.name))),
                    )
                files, outline = OutlineMaker(hub, cancel, self._outlines()).make(repo, chosen)
            except LarderError as error:
                if error.code not in _ACCESS:
                    raise
                return msgspec.structs.replace(card, problem=report_of(error))
        size = sum(file.size_bytes for file in files)
        final = final_folder(root, model_id, card.variant)
        part = part_folder(root, model_id, card.variant)
        is_here = _is_here(final, files)
        return msgspec.structs.replace(
            card,
            num_files=len(files),
            size_bytes=size,
            left_out_bytes=max(repo.all_bytes - size, 0),
            kept_bytes=size if is_here else kept_bytes(part, files),
            is_here=is_here,
            outline_folder=outline,
        )

    def read_configs(
        self, model_ids: Sequence[str], endpoint: str, cancel: CancelToken
    ) -> list[str]:
        """Return the config of each model, empty where it cannot be had.

        Raises ``CancelledError``, and ``LarderError`` if no hub may be asked.
        """
        with (
            self._hub(endpoint, cancel) as hub,
            concurrent.futures.ThreadPoolExecutor(_NUM_TOGETHER) as pool,
        ):
            configs = list(pool.map(lambda each: _config_of(hub, each, cancel), model_ids))
        cancel.check()
        return configs

    def download(
        self,
        model_id: str,
        revision: str,
        endpoint: str,
        folder: str,
        cancel: CancelToken,
        tell: Told,
        variant: str = "",
    ) -> tuple[Path, int]:
        """Bring a model to its place; return its folder and size.

        Raises ``CancelledError`` or ``LarderError``.
        """
        root = checked_root(folder)
        check_model_id(model_id)
        check_revision(revision)
        with self._hub(endpoint, cancel) as hub:
            record = read_record(part_folder(root, model_id, variant))
            if record is not None and (record.model_id, record.revision) == (model_id, revision):
                repo = Repo(model_id=model_id, revision=revision)
                files = record.files
            else:
                repo = _repo_of(hub, model_id, revision)
                files = self._files_of(hub, cancel, repo, variant)
            download = Download(hub, cancel, tell, first_pause_s=self.first_pause_s)
            final = download.run(repo, files, root, variant)
        return final, sum(file.size_bytes for file in files)

    def _files_of(
        self, hub: HubConnection, cancel: CancelToken, repo: Repo, variant: str
    ) -> list[RepoFile]:
        if variant:
            return files_of(repo, find_variant(repo, variant))
        with _drive_errors(self.cache):
            return OutlineMaker(hub, cancel, self._outlines()).make(repo)[0]

    def kept(self, model_id: str, folder: str, variant: str = "") -> int:
        """Return how much of an unfinished download is there."""
        place = part_folder(checked_root(folder), model_id, variant)
        record = read_record(place)
        return kept_bytes(place, record.files) if record is not None else 0

    def discard(self, model_id: str, folder: str, variant: str = "") -> int:
        """Delete an unfinished download; return how many bytes that were.

        Raises ``LarderError``.
        """
        check_model_id(model_id)
        root = checked_root(folder)
        try:
            with _drive_errors(root):
                return discard(root, model_id, variant)
        except FolderBusyError as cause:
            raise LarderError(ErrorCode.DOWNLOAD_BUSY, model=model_id) from cause

    def _hub(self, endpoint: str, cancel: CancelToken) -> HubConnection:
        return HubConnection(hub_address(endpoint), request_headers(), cancel, self.stall_s)

    def _outlines(self) -> Path:
        folder = self.cache / "hub"
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def _chosen(repo: Repo, name: str) -> Variant | None:
    """Return the model in GGUF that is meant; None for the one in safetensors."""
    if name:
        return find_variant(repo, name)
    variants, names = variants_of(repo), [file.name for file in repo.files]
    has_weights = any(name.endswith(".safetensors") for name in names)
    if has_weights and (CONFIG_NAME in names or not variants):
        return None
    # Where none can be read, looking at one says why.
    return usual_variant(variants) or next(iter(variants), None)


def _is_here(final: Path, files: list[RepoFile]) -> bool:
    record = read_record(final)
    return record is not None and record.files == files and is_complete(final, record)


def _repo_of(hub: HubConnection, model_id: str, revision: str = "") -> Repo:
    path = f"models/{model_id}" + (f"/revision/{revision}" if revision else "")
    answer = hub.ask(path, {"blobs": "true"}, model_id)
    try:
        return read_repo(answer, model_id)
    except ValueError as cause:
        raise hub.invalid(str(cause)) from cause


def _config_of(hub: HubConnection, model_id: str, cancel: CancelToken) -> str:
    """Return the config of a model as it is now; empty if it cannot be had, which is no error."""
    if cancel.is_cancelled or not is_model_id(model_id):
        return ""
    url = hub.file_url(Repo(model_id=model_id, revision="main"), "config.json")
    try:
        return hub.read_all(url, MAX_CONFIG_BYTES, model_id).decode()
    except (BrokenConnectionError, CancelledError, LarderError, UnicodeDecodeError):
        return ""


def _card_of(repo: Repo, root: Path) -> HubCard:
    return HubCard(
        model_id=repo.model_id,
        revision=repo.revision,
        licence=repo.licence,
        is_gated=repo.is_gated,
        base_model=repo.base_model,
        languages=list(repo.languages),
        last_modified=repo.last_modified,
        num_downloads=repo.num_downloads,
        free_bytes=_free(root),
        folder=shown(str(final_folder(root, repo.model_id))),
        variants=[_variant_of(repo, each, root) for each in variants_of(repo)],
    )


def _variant_of(repo: Repo, variant: Variant, root: Path) -> HubVariant:
    """Return what a page has in GGUF, beside what is here of it."""
    files = files_of(repo, variant)
    size = sum(file.size_bytes for file in files)
    is_here = _is_here(final_folder(root, repo.model_id, variant.name), files)
    kept = kept_bytes(part_folder(root, repo.model_id, variant.name), files)
    fit = HubFit.FITS if size - kept <= _free(root) or is_here else HubFit.NO_ROOM
    return HubVariant(
        name=variant.name,
        label=variant.label,
        fit=fit if variant.is_readable else HubFit.NOT_RUNNABLE,
        size_bytes=size,
        num_files=len(variant.files),
        is_here=is_here,
    )


def _free(root: Path) -> int:
    try:
        return free_bytes(root)
    except OSError:
        return 0


@contextlib.contextmanager
def _drive_errors(folder: Path) -> Iterator[None]:
    """Tell what a failure to write below a folder means."""
    try:
        yield
    except OSError as cause:
        reason = cause.strerror or str(cause)
        raise LarderError(
            ErrorCode.DISK_NOT_WRITABLE, folder=shown(str(folder)), reason=reason
        ) from cause
