"""The whole program as a process of its own: window, worker, and ways to end either."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from tests.support.runtime_process import ROOT, wait_until_gone

START_S = 60.0
GONE_S = 10.0
_LOOK_S = 0.05
_LOADED = "model loaded"

_OBEDIENT = """
import faulthandler, sys, threading
import app.main
from app import __main__ as program

made = []
init = app.main.Program.__init__
def init_and_keep(self, *arguments):
    made.append(self)
    init(self, *arguments)
app.main.Program.__init__ = init_and_keep

def obey():
    for line in sys.stdin:
        if line.strip() == "crash":
            faulthandler._sigsegv()
        from PySide6.QtCore import QTimer
        from PySide6.QtWidgets import QApplication
        # Widgets may be looked for in their own thread alone.
        QTimer.singleShot(0, QApplication.instance(), lambda line=line: obey_in_window(line))

def obey_in_window(line):
    from PySide6.QtCore import QTimer
    from PySide6.QtWidgets import QApplication, QPushButton
    from app.text.words import ChatWords
    from app.views.chat_list import ChatList
    from app.views.composer import Composer
    from app.views.main_window import MainWindow

    def the(kind):
        (found,) = (each for each in QApplication.allWidgets() if isinstance(each, kind))
        return found

    if line.startswith("run "):
        exec(line[4:], {"larder": made[0]})
    elif line.strip() == "close":
        the(MainWindow).close()
    elif line.startswith("ask "):
        composer = the(Composer)
        composer.edit.setPlainText(line[4:].strip())
        composer.send_button.click()
        if composer.edit.toPlainText():
            # The model is loaded, and the window has not heard of it yet.
            QTimer.singleShot(50, lambda: obey_in_window(line))
    elif line.strip() == "new":
        (new,) = (
            each for each in the(ChatList).findChildren(QPushButton)
            if each.text() == ChatWords.NEW_CHAT
        )
        new.click()

threading.Thread(target=obey, daemon=True).start()
sys.exit(program.main(sys.argv[1:]))
"""
"""The program with a thread that closes it, crashes it, begins a chat, asks a question or runs a
line of code with the program as ``larder`` when told to on standard input."""


class WindowProcess:
    """A started window with the model of a folder, and its worker.

    Without a folder it is started as a person does for the first time.
    """

    def __init__(
        self,
        home: Path,
        model: Path | None,
        *arguments: str,
        is_obedient: bool = False,
        prelude: str = "",
    ) -> None:
        self._log = home / "logs" / "runtime.log"
        self._num_loaded_before = self._log_text().count(_LOADED)
        entry = ["-c", prelude + _OBEDIENT] if is_obedient else ["-m", "app"]
        folder = [] if model is None else ["--no-demo", "--folder", str(model)]
        self.process = subprocess.Popen(
            [sys.executable, *entry, *folder, *arguments],
            stdin=subprocess.PIPE,
            cwd=ROOT,
            # The platform is that of the tests: offscreen, or the X server of their job.
            env={**os.environ, "LARDER_HOME": str(home)},
            text=True,
        )

    def wait_until_loaded(self) -> int:
        """Return the process id of the worker once it has loaded the model."""
        self.wait_until(lambda: self._log_text().count(_LOADED) > self._num_loaded_before)
        (worker,) = self.workers()
        return worker

    def workers(self) -> list[int]:
        """Return the process ids of the workers there are now."""
        window = psutil.Process(self.process.pid)
        return [child.pid for child in window.children() if child.status() != psutil.STATUS_ZOMBIE]

    def wait_until(self, is_true: Callable[[], bool]) -> None:
        """Look again and again until something holds; fail if the window ends before."""
        deadline_s = time.monotonic() + START_S
        while not is_true():
            assert time.monotonic() < deadline_s, self._log_text()
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = self.process.wait(_LOOK_S)
                raise AssertionError(f"the window ended with {status}\n{self._log_text()}")

    def tell(self, word: str) -> None:
        """Have it close, crash, begin a chat (``new``), ``ask TEXT`` or ``run CODE``."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()

    def _log_text(self) -> str:
        return self._log.read_text(encoding="utf-8") if self._log.exists() else ""


def kill_all(window: WindowProcess, chance: random.Random) -> None:
    """End the window and all that it has started by force, in any order, and see them gone."""
    program = psutil.Process(window.process.pid)
    processes = [program, *program.children(recursive=True)]
    chance.shuffle(processes)
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    window.process.wait(GONE_S)
    for process in processes:
        wait_until_gone(process.pid, GONE_S)


@contextlib.contextmanager
def running_window(
    home: Path,
    model: Path | None,
    *arguments: str,
    is_obedient: bool = False,
    prelude: str = "",
) -> Iterator[WindowProcess]:
    """Start the program and see that nothing of it is left.

    The prelude is code that an obedient window runs first.
    """
    window = WindowProcess(home, model, *arguments, is_obedient=is_obedient, prelude=prelude)
    try:
        yield window
    finally:
        left = [window.process.pid]
        with contextlib.suppress(psutil.NoSuchProcess):
            left += [child.pid for child in psutil.Process(window.process.pid).children()]
        for process_id in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process_id, signal.SIGKILL)
        window.process.wait()
        assert window.process.stdin is not None
        with contextlib.suppress(OSError):
            window.process.stdin.close()
