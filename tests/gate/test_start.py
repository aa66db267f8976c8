"""How `make run` starts the program: what Ctrl+C reaches while the chat has the terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from console import ROOT

_CHAT = """#!{python}
import signal, sys
is_stopped = False
def stop(number, frame):
    global is_stopped
    is_stopped = True
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
signal.signal(signal.SIGINT, stop)
print("answering", flush=True)
while not is_stopped:
    signal.pause()
print("stopped", flush=True)
sys.exit(7 if sys.stdin.readline() == "/quit\\n" else 1)
"""
"""A chat whose first answer goes on until Ctrl+C stops it; then it waits for /quit."""

_START = """
import pathlib, sys
sys.path.insert(0, {scripts!r})
import setup, start
setup.everything = lambda *, window: pathlib.Path(sys.argv[1])
sys.exit(start.main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals to a group are POSIX")
def test_start_without_a_screen_says_so_and_ctrl_c_leaves_the_chat_running(
    tmp_path: Path,
) -> None:
    chat = tmp_path / "chat"
    chat.write_text(_CHAT.format(python=sys.executable))
    chat.chmod(0o700)
    screen = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    with subprocess.Popen(
        [sys.executable, "-c", _START.format(scripts=str(ROOT / ".ci")), str(chat)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={name: value for name, value in os.environ.items() if name not in screen},
    ) as process:
        assert process.stdout is not None
        said = ""
        while not said.endswith("answering\n"):
            assert process.poll() is None
            said += process.stdout.readline()
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate("/quit\n", 30)
    assert "there is no screen here, so the same chat opens in this terminal" in said
    assert output == "stopped\n"
    assert process.returncode == 7
