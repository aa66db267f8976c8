"""Where benchmarks show the window."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SIZE = "1600x1000x24"


@contextlib.contextmanager
def a_screen(home: Path, size: str = SIZE) -> Iterator[dict[str, str]]:
    """Yield the environment of a window with a home of its own: under Xvfb, else offscreen."""
    environment = {**os.environ, "LARDER_HOME": str(home)}
    environment.pop("WAYLAND_DISPLAY", None)
    if sys.platform != "linux" or not shutil.which("Xvfb"):
        yield {**environment, "QT_QPA_PLATFORM": "offscreen"}
        return
    read_fd, write_fd = os.pipe()
    with (
        open(read_fd, encoding="ascii") as number,  # noqa: PTH123  (a pipe, not a path)
        subprocess.Popen(
            # It takes a free number, and writes it once it can be used.
            ["Xvfb", "-noreset", "-displayfd", str(write_fd), "-screen", "0", size],
            stderr=subprocess.DEVNULL,
            pass_fds=(write_fd,),
        ) as server,
    ):
        os.close(write_fd)
        try:
            display = number.readline().strip()
            if not display:
                raise SystemExit("Xvfb did not start")
            yield {**environment, "DISPLAY": f":{display}", "QT_QPA_PLATFORM": "xcb"}
        finally:
            server.terminate()
