"""The screen that packages are tried on, with its keys."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from installers.description import RecipeError

_STEPS = 12
_STEP_S = 0.1


class Screen:
    """A virtual screen of this machine."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "screen.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.number = ""

    def __enter__(self) -> Self:
        reader, writer = os.pipe()
        command = ["Xvfb", "-displayfd", str(writer), "-screen", "0", "1280x900x24"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, "-nolisten", "tcp", "-ac"], pass_fds=[writer], stdout=log, stderr=log
            )
        os.close(writer)
        with os.fdopen(reader) as told:
            self.number = told.readline().strip()
        if not self.number:
            raise RecipeError("Xvfb does not start; see whether it is whole.")
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()

    def keys(self, *words: str) -> str:
        """Run xdotool on this screen; empty where it finds nothing."""
        environment = {**os.environ, "DISPLAY": f":{self.number}"}
        done = subprocess.run(
            ["xdotool", *words], env=environment, capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    @contextlib.contextmanager
    def drop(self, folder: str, window: str) -> Iterator[None]:
        """Drag a folder with the mouse onto the middle of a window, as a file manager would.

        The window asks for the folder's name later, so what was dragged is there until the end.
        """
        environment = {**os.environ, "DISPLAY": f":{self.number}", "QT_QPA_PLATFORM": "xcb"}
        command = [sys.executable, "-m", "installers.drag", folder]
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, text=True
        ) as source:
            try:
                told = source.stdout.readline().split() if source.stdout else []
                if len(told) != 2:
                    raise RecipeError("The window to drag from did not open; PySide6 is needed.")
                self._drag(int(told[0]), int(told[1]), window)
                yield
            finally:
                source.terminate()

    def _drag(self, x: int, y: int, window: str) -> None:
        """Move the pressed mouse in steps, so that both programs see it on its way."""
        lines = self.keys("getwindowgeometry", "--shell", window).splitlines()
        facts = dict(line.split("=", 1) for line in lines if "=" in line)
        goal_x = int(facts["X"]) + int(facts["WIDTH"]) // 2
        goal_y = int(facts["Y"]) + int(facts["HEIGHT"]) // 2
        self.keys("mousemove", str(x), str(y), "sleep", "0.5", "mousedown", "1")
        for step in range(1, _STEPS + 1):
            part = step / _STEPS
            place = (str(round(x + (goal_x - x) * part)), str(round(y + (goal_y - y) * part)))
            time.sleep(_STEP_S)
            self.keys("mousemove", *place)
        time.sleep(1)
        self.keys("mouseup", "1")
