"""A virtual screen of a process's own, so that windows of tests at the same time do not meet."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator

SCREEN_VARIABLE = "LARDER_TEST_SCREEN"
"""Size and depth of the screen that a process of tests opens for itself; without it, none."""
_UNTIL_INPUT_ENDS = 'Xvfb "$@" & cat > /dev/null; kill $!; wait'
"""However the process of tests goes, the screen goes with it."""


@contextlib.contextmanager
def own_screen(size: str) -> Iterator[str]:
    """Start an X server under a number that is free; yields the name of its display."""
    reading, writing = os.pipe()
    told = ("-displayfd", str(writing), "-screen", "0", size, "-nolisten", "tcp", "-noreset")
    try:
        server = subprocess.Popen(
            ["sh", "-c", _UNTIL_INPUT_ENDS, "sh", *told],
            pass_fds=(writing,),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    finally:
        os.close(writing)
    with server:
        number = b""
        while not number.endswith(b"\n"):
            read = os.read(reading, 16)
            assert read, "Xvfb ended and told no display"
            number += read
        os.close(reading)
        yield f":{number.decode('ascii').strip()}"
