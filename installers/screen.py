"""The screen that packages are tried on, with its keys."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Self

from installers.description import RecipeError


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
