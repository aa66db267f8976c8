"""Pairs and cells of `make bench-drive` that are measured, so that a stopped run goes on.

They are kept below build/ until the result is written. A cell counts only for the same commit, the
same settings and the same machine since its start: figures of another day are not mixed in.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parent.parent
Rows = list[dict[str, object]]


class KeptCells:
    """Turns of measured pairs, and lines of whole cells, in a small file.

    Raises ``OSError`` where the file cannot be written.
    """

    def __init__(self, path: Path, settings: Mapping[str, object]) -> None:
        """Take what the file holds if it is of these settings, and nothing otherwise."""
        self._path = path
        self._settings = dict(settings)
        self._cells: dict[str, Rows] = {}
        try:
            content: Any = json.loads(path.read_text(encoding="utf-8"))
            if content["settings"] == self._settings:
                self._cells = content["cells"]
        except (OSError, ValueError, KeyError, TypeError):
            pass  # a file that is missing or torn holds nothing

    def rows(self, name: str) -> Rows | None:
        """Return the lines of a cell or the turns of a pair, None if it was not measured."""
        return self._cells.get(name)

    def keep(self, name: str, rows: Rows) -> None:
        """Write a cell or pair down, whole or not at all."""
        self._cells[name] = rows
        self._path.parent.mkdir(parents=True, exist_ok=True)
        part = self._path.with_suffix(".part")
        content = {"settings": self._settings, "cells": self._cells}
        part.write_text(json.dumps(content), encoding="utf-8")
        part.replace(self._path)

    def forget(self) -> None:
        """Take the file away."""
        self._path.unlink(missing_ok=True)


def circumstances() -> dict[str, object]:
    """Return what a kept figure depends on beside the settings: the commit, the machine's start."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=40"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return {"commit": done.stdout.strip(), "started": round(psutil.boot_time() / 60)}
