"""The drives that models larger than memory are measured on, and how their caches are emptied."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.io_throttle import device_of  # noqa: E402

SLOW, FAST, THIS = "500 MB/s", "fast", "this drive"
SLOW_BYTES_PER_S = 500_000_000
READ_AHEAD_KB = 128
FAST_BYTES = 8 << 30
"""Room of the device in RAM; only what is written takes memory."""
_ZRAM = Path("/sys/class/zram-control")


@dataclasses.dataclass(frozen=True)
class Place:
    """A drive: a folder on it, its name, and to what it is throttled."""

    name: str
    folder: Path
    limit_per_s: int = 0


@contextlib.contextmanager
def place_of(name: str, fast_folder: Path | None) -> Iterator[Place]:
    """Yield a drive by its name; the fast one is made in RAM unless there is a folder on one.

    Raises ``OSError`` where the system lets nobody make it.
    """
    own = ROOT / "build" / "bench-drive"
    if name == FAST and fast_folder is None:
        with _in_ram() as folder:
            yield Place(name, folder)
    elif name == FAST:
        assert fast_folder is not None
        yield Place(name, fast_folder / "larder-bench-drive")
    else:
        yield Place(name, own, SLOW_BYTES_PER_S if name == SLOW else 0)


@contextlib.contextmanager
def _in_ram() -> Iterator[Path]:
    """Make a compressed block device in RAM with a file system, and take both away afterwards.

    Random numbers are not compressed, so that it holds as much memory as its files have.
    """
    # Who ends a benchmark means an exit, which takes mounts and devices away.
    for each in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, lambda which, _frame: sys.exit(128 + which))
    number = int((_ZRAM / "hot_add").read_text(encoding="ascii"))
    with contextlib.ExitStack() as stack:
        stack.callback((_ZRAM / "hot_remove").write_text, str(number), encoding="ascii")
        own = Path(f"/sys/block/zram{number}")
        (own / "comp_algorithm").write_text("lz4", encoding="ascii")
        (own / "disksize").write_text(str(FAST_BYTES), encoding="ascii")
        device = f"/dev/zram{number}"
        if not Path(device).exists():
            major, minor = map(int, (own / "dev").read_text(encoding="ascii").split(":"))
            os.mknod(device, 0o600 | 0o060000, os.makedev(major, minor))
            stack.callback(Path(device).unlink)
        _run("mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal", device)
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        _run("mount", device, folder)
        stack.callback(_run, "umount", folder)
        yield Path(folder) / "bench-drive"


def _run(*command: str) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")


@contextlib.contextmanager
def read_ahead(folder: Path, size_kb: int = READ_AHEAD_KB) -> Iterator[None]:
    """Set the read-ahead of a folder's drive for the time of a block."""
    path = Path(f"/sys/dev/block/{device_of(folder)}/queue/read_ahead_kb")
    before = path.read_text(encoding="ascii")
    path.write_text(str(size_kb), encoding="ascii")
    try:
        yield
    finally:
        path.write_text(before, encoding="ascii")


def forget(place: Path) -> None:
    """Let the system's cache forget a file, or all files of a folder."""
    for path in [place] if place.is_file() else place.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
