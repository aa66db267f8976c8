"""How the system tells that memory is short: what waits for it, and what is written to swap."""

import os

from runtime.hardware.control_group import group_folders
from runtime.hardware.system_files import SystemFiles

_PAGE_BYTES = 4096


def stalled_ratio(files: SystemFiles) -> float:
    """Return the part of the last ten seconds in which something waited for memory.

    The worst of the whole PC and of the control groups of this process; 0 where nothing tells.
    """
    places = [f"{folder}/memory.pressure" for version, folder in group_folders(files, "memory")
              if version == 2]  # fmt: skip
    return max(map(_some, [files.text("/proc/pressure/memory"), *map(files.text, places)]))


def swapped_out_bytes(files: SystemFiles) -> int:
    """Return what was written to swap since the PC was started; 0 where nothing tells."""
    page_bytes = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else _PAGE_BYTES
    return files.table("/proc/vmstat").get("pswpout", 0) * page_bytes


def _some(text: str) -> float:
    """Return the first figure of a line ``some avg10=0.12 avg60=...``, which is in percent."""
    for line in text.splitlines():
        kind, *figures = line.split()
        if kind == "some" and figures:
            name, _, value = figures[0].partition("=")
            digits = value.replace(".", "", 1)
            if name == "avg10" and digits.isdecimal():
                return min(float(value) / 100, 1.0)
    return 0.0
