"""Newer versions of the program itself: a signed list that names them, and the file of one."""

import base64
import binascii
import contextlib
import hashlib
import re
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import msgspec

from runtime.engine.base import CancelToken
from runtime.errors import LarderError
from runtime.hub.connection import STALL_S, BrokenConnectionError, HubConnection
from runtime.hub.download import SPARE_BYTES, Fetched, Told
from runtime.hub.repo import RepoFile
from runtime.hub.transfer import Carrier, fetch_file
from runtime.inspect.files import shown
from runtime.prepare.disk import disk_error, free_bytes
from runtime.protocol.errors import ErrorCode
from runtime.protocol.update_messages import ProgramUpdate

LIST = "larder-versions.json"
SIGNATURE = f"{LIST}.sig"
"""Base64 of the Ed25519 signature over the bytes of the list."""
MAX_LIST_BYTES = 1 << 20
_HEADERS = {"User-Agent": "larder", "Accept-Encoding": "identity"}
_VERSION = re.compile(r"\d{1,9}(\.\d{1,9}){0,3}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class _File(msgspec.Struct, frozen=True):
    name: str
    size_bytes: int
    sha256: str


class _Versions(msgspec.Struct, frozen=True):
    """The list: the newest version, what it changes, and its file for each kind of package."""

    version: str
    notes: str
    files: dict[str, _File]


class UpdateDesk:
    """Asks for newer versions and brings them. Threads: any, one at a time."""

    def __init__(self, *, stall_s: float = STALL_S, first_pause_s: float = 1.0) -> None:
        self._stall_s = stall_s
        self._first_pause_s = first_pause_s

    def check(
        self, address: str, key: str, version: str, package: str, cancel: CancelToken
    ) -> ProgramUpdate | None:
        """Return a version newer than ``version``, if the signed list has a file of it.

        Raises ``CancelledError`` or ``LarderError``.
        """
        place = address.rstrip("/")
        with self._asking(place, cancel) as hub:
            data = hub.read_all(f"{place}/{LIST}", MAX_LIST_BYTES, "")
            signature = hub.read_all(f"{place}/{SIGNATURE}", MAX_LIST_BYTES, "")
            _check_signature(hub.host, key, data, signature)
            listed = _read(hub.host, data)
        file = listed.files.get(package)
        if file is None or _numbers(listed.version) <= _numbers(version):
            return None
        return ProgramUpdate(
            version=listed.version,
            notes=listed.notes,
            file=file.name,
            size_bytes=file.size_bytes,
            sha256=file.sha256,
        )

    def fetch(
        self, address: str, update: ProgramUpdate, folder: str, cancel: CancelToken, tell: Told
    ) -> Path:
        """Bring the file of a version into a folder, going on with what is there; return it.

        Raises ``CancelledError`` or ``LarderError``.
        """
        place, target = address.rstrip("/"), Path(folder)
        path = target / update.file
        try:
            target.mkdir(parents=True, exist_ok=True)
            if path.exists():
                if _sha256(path) == update.sha256:
                    return path
                path.unlink()
            if free_bytes(target) < update.size_bytes + SPARE_BYTES:
                raise LarderError(
                    ErrorCode.DISK_FULL,
                    folder=shown(folder),
                    needed_bytes=update.size_bytes + SPARE_BYTES,
                    free_bytes=free_bytes(target),
                )
            with self._asking(place, cancel) as hub:
                counter = _Counter(update, tell)
                carrier = Carrier(
                    hub, cancel, counter.arrived, counter.retrying, self._first_pause_s
                )
                file = RepoFile(
                    name=update.file, size_bytes=update.size_bytes, sha256=update.sha256
                )
                url = f"{place}/{urllib.parse.quote(update.file)}"
                fetch_file(carrier, file, url, target, update.file)
        except OSError as cause:
            failed = ErrorCode.DOWNLOAD_WRITE_FAILED
            raise disk_error(target, cause, update.size_bytes, 0, failed) from cause
        return path

    @contextlib.contextmanager
    def _asking(self, address: str, cancel: CancelToken) -> Iterator[HubConnection]:
        """A connection whose failures are told as those of a list of versions."""
        with HubConnection(address, _HEADERS, cancel, self._stall_s) as hub:
            try:
                yield hub
            except BrokenConnectionError as broken:
                raise LarderError(
                    ErrorCode.UPDATE_UNREACHABLE, host=hub.host, reason=broken.reason
                ) from broken
            except LarderError as error:
                raise _as_update(error, hub.host) from error


def _as_update(error: LarderError, host: str) -> LarderError:
    """Return an error of a hub in the words of a list of versions."""
    reason = str(error.parameters.get("reason", ""))
    match error.code:
        case ErrorCode.HUB_UNREACHABLE:
            return LarderError(ErrorCode.UPDATE_UNREACHABLE, host=host, reason=reason)
        case ErrorCode.HUB_ANSWER_INVALID:
            return LarderError(ErrorCode.UPDATE_INVALID, host=host, reason=reason)
        case ErrorCode.HUB_MODEL_MISSING | ErrorCode.HUB_MODEL_GATED:
            return LarderError(ErrorCode.UPDATE_INVALID, host=host, reason="the file is not there")
    return error


class _Counter:
    """Tells how far the file is. Threads: one."""

    def __init__(self, update: ProgramUpdate, tell: Told) -> None:
        self._update = update
        self._tell = tell
        self._done = self._num_retries = 0

    def arrived(self, num_bytes: int) -> None:
        self._done += num_bytes
        self._say()

    def retrying(self, num_retries: int) -> None:
        self._num_retries = num_retries
        self._say()

    def _say(self) -> None:
        update = self._update
        told = Fetched(self._done, update.size_bytes, 0.0, update.file, self._num_retries)
        self._tell(told)


def _check_signature(host: str, key: str, data: bytes, signature: bytes) -> None:
    """Raise ``LarderError`` where the list is not signed by the holder of the key."""
    # Late: only who looks for a newer version needs it.
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        public = Ed25519PublicKey.from_public_bytes(base64.b64decode(key, validate=True))
        public.verify(base64.b64decode(signature.strip(), validate=True), data)
    except (InvalidSignature, binascii.Error, ValueError) as cause:
        raise LarderError(ErrorCode.UPDATE_UNSIGNED, host=host) from cause


def _read(host: str, data: bytes) -> _Versions:
    """Read a list whose signature is good."""

    def refuse(reason: str) -> NoReturn:
        raise LarderError(ErrorCode.UPDATE_INVALID, host=host, reason=reason)

    try:
        listed = msgspec.json.decode(data, type=_Versions)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as cause:
        refuse(f"it is no list of versions ({cause})")
    if not _VERSION.fullmatch(listed.version):
        refuse(f"{listed.version!r} is no version")
    for file in listed.files.values():
        if not _NAME.fullmatch(file.name) or not _SHA256.fullmatch(file.sha256):
            refuse(f"{file.name!r} is no file of a version")
        if file.size_bytes <= 0:
            refuse(f"{file.name} has {file.size_bytes} bytes")
    return listed


def _numbers(version: str) -> tuple[int, ...]:
    """Return a version as it is compared; what is no version is older than all."""
    return tuple(map(int, version.split("."))) if _VERSION.fullmatch(version) else ()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
