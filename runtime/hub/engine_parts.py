"""The engine for graphics cards: fetched, verified, unpacked, tried, and only then there."""

import json
import os
import shutil
import subprocess
import sys
import urllib.parse
import zipfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from runtime.engine.base import CancelToken
from runtime.errors import LarderError
from runtime.hub.address import shown_host
from runtime.hub.connection import STALL_S, HubConnection
from runtime.hub.download import SPARE_BYTES, Fetched, Told
from runtime.hub.repo import RepoFile
from runtime.hub.transfer import Carrier, fetch_file
from runtime.inspect.files import shown
from runtime.prepare.disk import disk_error, free_bytes
from runtime.protocol.engine_messages import EnginePart
from runtime.protocol.errors import ErrorCode

PARTS = ".parts"
"""Behind the name of the engine's folder: what was fetched."""
NEW = ".new"
READY = ".ready"
UNPACKED_RATIO = 2.0
"""Room that unpacked packages take, by their packed size; measured ones lie below."""
MAX_TRIAL_S = 600.0
_HEADERS = {"User-Agent": "larder", "Accept-Encoding": "identity"}
_TRIAL = """
import json, torch
has_card = torch.cuda.is_available()
card = torch.cuda.get_device_name(0) if has_card else ""
if has_card:
    assert int((torch.ones(4, device="cuda") * 2).sum()) == 8
print(json.dumps([torch.__version__, card]))
"""
_PASSING = (
    ErrorCode.HUB_UNREACHABLE,
    ErrorCode.HUB_ANSWER_INVALID,
    ErrorCode.HUB_MODEL_MISSING,
    ErrorCode.HUB_MODEL_GATED,
)


def fetch_engine(
    parts: Sequence[EnginePart],
    folder: Path,
    cancel: CancelToken,
    tell: Told,
    *,
    stall_s: float = STALL_S,
    first_pause_s: float = 1.0,
) -> tuple[str, str]:
    """Bring the engine into a folder; return its version and the card that it found.

    Packages that were fetched are kept until all are there and work. Raises ``CancelledError`` or
    ``LarderError``; the folder is whole or not there.
    """
    kept = folder.with_name(folder.name + PARTS)
    fresh = folder.with_name(folder.name + NEW)
    total = sum(part.size_bytes for part in parts)
    try:
        kept.mkdir(parents=True, exist_ok=True)
        there = sum(path.stat().st_size for path in kept.iterdir())
        needed = int(total * (1 + UNPACKED_RATIO)) - there + SPARE_BYTES
        if free_bytes(kept) < needed:
            raise LarderError(
                ErrorCode.DISK_FULL,
                folder=shown(str(folder.parent)),
                needed_bytes=needed,
                free_bytes=free_bytes(kept),
            )
        done = 0
        for part in parts:
            fetcher = _Fetcher(part, done, total, tell)
            fetcher.fetch(kept, cancel, stall_s, first_pause_s)
            done += part.size_bytes
        shutil.rmtree(fresh, ignore_errors=True)
        try:
            for part in parts:
                cancel.check()
                _unpack(kept / part.file, fresh)
            version, card = _try(fresh)
            (fresh / READY).touch()
            shutil.rmtree(folder, ignore_errors=True)
            fresh.rename(folder)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
        shutil.rmtree(kept)
    except OSError as cause:
        failed = ErrorCode.DOWNLOAD_WRITE_FAILED
        raise disk_error(folder.parent, cause, total, 0, failed) from cause
    return version, card


class _Fetcher:
    """Brings one package and tells how far all are. Threads: one."""

    def __init__(self, part: EnginePart, before: int, total: int, tell: Told) -> None:
        self._part = part
        self._done = before
        self._total = total
        self._tell = tell
        self._num_retries = 0

    def fetch(self, kept: Path, cancel: CancelToken, stall_s: float, first_pause_s: float) -> None:
        """Bring it, going on with what is there."""
        part = self._part
        parts = urllib.parse.urlsplit(part.url)
        host = shown_host(part.url)
        if PurePosixPath(part.file).name != part.file or parts.scheme not in ("http", "https"):
            raise _unreachable(host or part.url, f"{part.file} has no good address")
        file = RepoFile(name=part.file, size_bytes=part.size_bytes, sha256=part.sha256)
        with HubConnection(part.url, _HEADERS, cancel, stall_s) as hub:
            carrier = Carrier(hub, cancel, self._arrived, self._retrying, first_pause_s)
            try:
                fetch_file(carrier, file, part.url, kept, part.file)
            except LarderError as error:
                if error.code not in _PASSING:
                    raise
                reason = str(error.parameters.get("reason", f"{part.file} is not there"))
                raise _unreachable(host, reason) from error

    def _arrived(self, num_bytes: int) -> None:
        self._done += num_bytes
        self._say()

    def _retrying(self, num_retries: int) -> None:
        self._num_retries = num_retries
        self._say()

    def _say(self) -> None:
        self._tell(Fetched(self._done, self._total, 0.0, self._part.file, self._num_retries))


def _unreachable(host: str, reason: str) -> LarderError:
    return LarderError(ErrorCode.ENGINE_PARTS_UNREACHABLE, host=host, reason=reason)


def _unusable(reason: str) -> LarderError:
    return LarderError(ErrorCode.ENGINE_PARTS_UNUSABLE, reason=reason)


def _unpack(wheel: Path, fresh: Path) -> None:
    """Lay one package into the folder."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            for entry in archive.infolist():
                path = _place(entry.filename)
                if path is None or entry.is_dir():
                    continue
                target = fresh / path
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(entry) as source, target.open("wb") as file:
                    shutil.copyfileobj(source, file, 1 << 20)
    except zipfile.BadZipFile as cause:
        raise _unusable(f"{wheel.name} is no package ({cause})") from cause


def _place(name: str) -> str | None:
    """Where an entry belongs below the folder; None for programs and the like."""
    parts = PurePosixPath(name).parts
    if not parts or ".." in parts or PurePosixPath(name).is_absolute() or ":" in parts[0]:
        raise _unusable(f"a package names {name}, which leads out of its folder")
    if not parts[0].endswith(".data"):
        return name
    return "/".join(parts[2:]) if parts[1] in ("purelib", "platlib") else None


def _try(fresh: Path) -> tuple[str, str]:
    """Compute something on the card in a process of its own; return version and card."""
    known = os.environ.get("PYTHONPATH", "")
    path = os.pathsep.join(part for part in (str(fresh), known) if part)
    command = [sys.executable, "-P", "-B", "-c", _TRIAL]
    try:
        done = subprocess.run(
            command,
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=MAX_TRIAL_S,
            check=False,
        )
    except subprocess.TimeoutExpired as cause:
        raise _unusable(f"it did not answer in {MAX_TRIAL_S:.0f} s") from cause
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise _unusable(lines[-1] if lines else f"it ended with {done.returncode}")
    version, card = json.loads(done.stdout.strip().splitlines()[-1])
    if not card:
        raise _unusable("it finds no card that it can drive")
    return str(version), str(card)
