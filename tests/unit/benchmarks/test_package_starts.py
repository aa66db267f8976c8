"""A packaged program is started to see its window; what shows none is ended all the same."""

import sys
import time
from pathlib import Path
from typing import Self

import packages
import pytest


class Blind:
    """A watch that sees no window."""

    def __init__(self, _display: str, _name: str) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def wait(self, _seconds: float) -> None:
        raise SystemExit("no window Larder was seen")


@pytest.mark.skipif(sys.platform == "win32", reason="packages are started on Linux alone")
def test_program_that_shows_no_window_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages, "Watch", Blind)
    program = tmp_path / "larder"
    program.write_text("#!/bin/sh\nexec sleep 30\n")
    program.chmod(0o755)
    begun_s = time.perf_counter()
    with pytest.raises(SystemExit, match="no window Larder was seen"):
        packages.one_start(program, {"DISPLAY": ":0", "PATH": "/usr/bin:/bin"})
    assert time.perf_counter() - begun_s < 20
