"""A file system that shows a folder and fails as a test says: a drive with faults, for Linux.

What fails is below the runtime: its reads reach the system, which asks this file system. Run as
``python -m tests.support.faulty_drive SHOWN MOUNT FAULTS [cached]`` it serves until it is ended;
``cached`` refuses reads past the system's cache, as some file systems do.
"""

from __future__ import annotations

import contextlib
import ctypes.util
import enum
import errno
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CACHED = "cached"
_TAKE_AWAY = "fusermount3"
MOUNT_S = 30.0
"""Far longer than a file system takes to appear, on the slowest machine."""


class Fault(enum.StrEnum):
    """What reads meet while it is there; what is said with it stands after each."""

    ERROR = "error"
    """They fail with an error of this number."""
    STALL = "stall"
    """One of them takes so many seconds."""
    SHORT = "short"
    """They return at most so many bytes, where they go past the cache."""
    ROT = "rot"
    """A bit in the middle of each is wrong."""
    FLIP = "flip"
    """The first that has this byte of a file, as in ``name:offset``, has it with a wrong bit."""


class FaultyDrive:
    """A folder shown at another place, and what its reads meet.

    The faults are files, so that the drive can be another process.
    """

    def __init__(self, shown: Path, place: Path, faults: Path, *, is_cached: bool = False) -> None:
        self.place = place
        self.is_cached = is_cached
        self._faults = faults
        folders = map(str, (shown, place, faults))
        self._command = [sys.executable, "-m", "tests.support.faulty_drive", *folders]
        self._command += [CACHED] if is_cached else []
        self._process: subprocess.Popen[bytes] | None = None

    def plug_in(self) -> None:
        """Have the folder appear."""
        self._process = subprocess.Popen(self._command, cwd=Path(__file__).parents[2])
        until_s = time.monotonic() + MOUNT_S
        while not os.path.ismount(self.place):
            assert self._process.poll() is None, "the file system did not come up"
            assert time.monotonic() < until_s, "the file system did not appear"
            time.sleep(0.02)

    def pull_out(self) -> None:
        """Have the folder vanish while it is in use, as a drive does that is unplugged."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None
        subprocess.run([_TAKE_AWAY, "-u", "-z", str(self.place)], check=True)

    def close(self) -> None:
        """End it, whatever it is doing."""
        if self._process is not None:
            self.pull_out()

    def put(self, fault: Fault, what: object = "") -> None:
        """Let reads meet a fault from now on."""
        place = self._faults / fault
        place.with_suffix(".new").write_text(str(what), encoding="utf-8")
        place.with_suffix(".new").replace(place)

    def clear(self) -> None:
        """Let reads be good again."""
        for fault in Fault:
            (self._faults / fault).unlink(missing_ok=True)

    @contextlib.contextmanager
    def failing(self, error_number: int) -> Iterator[None]:
        """Have every read fail with an error of the system for a while."""
        self.put(Fault.ERROR, error_number)
        yield
        self.clear()

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """Be pulled out for a while."""
        self.pull_out()
        yield
        self.plug_in()

    @property
    def num_met(self) -> int:
        """How many reads met a fault so far."""
        met = self._faults / "met"
        return met.stat().st_size if met.exists() else 0


@contextlib.contextmanager
def faulty_drive(shown: Path, folder: Path, *, is_cached: bool = False) -> Iterator[FaultyDrive]:
    """Show a folder below another on a drive with faults, and take it away afterwards."""
    place, faults = folder / "drive", folder / "faults"
    place.mkdir()
    faults.mkdir()
    drive = FaultyDrive(shown, place, faults, is_cached=is_cached)
    try:
        drive.plug_in()
        yield drive
    finally:
        drive.close()


def why_not() -> str:
    """Why there can be no such drive on this machine; nothing where there can."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "no file system of a program's own may be made here"
    if shutil.which(_TAKE_AWAY) is None or ctypes.util.find_library("fuse3") is None:
        return "FUSE 3 is not installed"
    return ""


class _Meeting:
    """What the reads of the drive meet now."""

    def __init__(self, faults: Path) -> None:
        self._faults = faults
        self._lock = threading.Lock()

    def said(self, fault: Fault) -> str | None:
        """What was said with a fault that is there."""
        try:
            return (self._faults / fault).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def take(self, fault: Fault) -> str | None:
        """Take a fault that one read alone meets."""
        with self._lock:
            said = self.said(fault)
            (self._faults / fault).unlink(missing_ok=True)
        return said

    def meet(self) -> None:
        """Note that a read met something."""
        with (self._faults / "met").open("ab") as met:
            met.write(b".")

    def before(self, size: int) -> int:
        """Fail or wait, as a read of that size does now; return how much it may have."""
        failure = self.said(Fault.ERROR)
        if failure is not None:
            self.meet()
            raise OSError(int(failure), os.strerror(int(failure)))
        seconds = self.take(Fault.STALL)
        if seconds is not None:
            self.meet()
            threading.Event().wait(float(seconds))
        most = int(self.said(Fault.SHORT) or size)
        if most < size:
            self.meet()
        return min(size, most)

    def changed(self, name: str, offset: int, data: bytes) -> bytes:
        """What a read gets in place of what is there."""
        wrong = len(data) // 2 if self.said(Fault.ROT) is not None else -1
        flip = self.said(Fault.FLIP)
        if flip is not None:
            there, _, byte = flip.rpartition(":")
            place = int(byte) - offset
            if there == name and 0 <= place < len(data) and self.take(Fault.FLIP) is not None:
                wrong = place
        if not 0 <= wrong < len(data):
            return data
        self.meet()
        return data[:wrong] + bytes([data[wrong] ^ 1]) + data[wrong + 1 :]


def _serve(shown: Path, place: Path, faults: Path, *, is_cached: bool) -> None:
    """Serve the folder until this process ends."""
    import mfusepy

    meeting = _Meeting(faults)

    class Drive(mfusepy.Operations):  # type: ignore[misc]
        """A folder to be read; every read meets what is there."""

        use_ns = True

        def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
            found = (shown / path[1:]).stat()
            times = {f"st_{kind}time": getattr(found, f"st_{kind}time_ns") for kind in "acm"}
            names = ("st_mode", "st_nlink", "st_size", "st_uid", "st_gid")
            return {**{name: getattr(found, name) for name in names}, **times}

        def readdir(self, path: str, fh: int) -> list[str]:
            return [".", "..", *(each.name for each in (shown / path[1:]).iterdir())]

        def open(self, path: str, handle: Any) -> int:
            if is_cached and handle.flags & os.O_DIRECT:
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
            # Otherwise a read that returns less is taken for the end of the file.
            handle.direct_io = not is_cached
            handle.fh = os.open(shown / path[1:], os.O_RDONLY)
            return 0

        def read(self, path: str, size: int, offset: int, handle: Any) -> bytes:
            data = os.pread(handle.fh, meeting.before(size), offset)
            return meeting.changed(path[1:], offset, data)

        def release(self, path: str, handle: Any) -> int:
            os.close(handle.fh)
            return 0

    mfusepy.FUSE(Drive(), str(place), raw_fi=True, foreground=True, ro=True, fsname="faulty")


if __name__ == "__main__":
    _serve(*map(Path, sys.argv[1:4]), is_cached=CACHED in sys.argv[4:])
