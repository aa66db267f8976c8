"""A control group in which a drive reads no faster than so many bytes a second."""

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from runtime.hardware.control_group import group_folders
from runtime.hardware.system_files import SystemFiles
from tests.support.memory_group import MemoryGroup, joining

VERSION_2 = 2

Join = Callable[[Sequence[str]], list[str]]
"""Returns a command that is the same in the group."""


def device_of(folder: Path) -> str:
    """Return the numbers of the whole block device that a folder lies on, as ``254:0``."""
    number = folder.stat().st_dev
    own = f"{os.major(number)}:{os.minor(number)}"
    place = Path(f"/sys/dev/block/{own}").resolve()
    if (place / "partition").exists():
        return (place.parent / "dev").read_text(encoding="ascii").strip()
    return own


@contextlib.contextmanager
def io_throttle(memory: MemoryGroup, folder: Path, bytes_per_s: int) -> Iterator[Join]:
    """Throttle a folder's drive for what joins a memory group; 0 bytes a second mean no throttle.

    In version 2 the group itself is throttled, in version 1 another one beside it. Raises
    ``OSError`` where the system lets nobody do that.
    """
    device = device_of(folder)
    if not bytes_per_s:
        yield list
    elif memory.version == VERSION_2:
        (memory.folder / "io.max").write_text(f"{device} rbps={bytes_per_s}", encoding="ascii")
        yield list
    else:
        group = _make(f"{device} {bytes_per_s}")
        try:
            yield functools.partial(joining, group / "cgroup.procs")
        finally:
            with contextlib.suppress(OSError):  # what ended a moment ago may still be leaving
                group.rmdir()


def _make(text: str) -> Path:
    for version, above in group_folders(SystemFiles(), "blkio"):
        if version == VERSION_2:
            continue
        group = Path(above) / f"larder-throttle-{os.getpid()}"
        with contextlib.suppress(OSError):
            group.mkdir()
            (group / "blkio.throttle.read_bps_device").write_text(text, encoding="ascii")
            return group
    raise OSError("no control group throttles drives here")
