"""The package built and installed apart from the tree, as a person gets it."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

_MAX_S = 300.0


def run(
    command: Sequence[str | Path],
    cwd: Path,
    env: Mapping[str, str] | None = None,
    max_s: float = _MAX_S,
) -> str:
    """Output of a program that must succeed, and that finds modules only by itself."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**inherited, **(env or {})},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=max_s,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build_wheel(
    source: Path, folder: Path, build: Path, env: Mapping[str, str] | None = None
) -> Path:
    """The wheel of a tree, put into a folder, built with the tools of this environment."""
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    places: list[str | Path] = ["--config-settings", f"build-dir={build}", "--wheel-dir", folder]
    run([*command, *places, source], folder, env)
    (found,) = folder.glob("larder-*.whl")
    return found


def install_wheel(wheel: Path, folder: Path) -> Path:
    """The folder of programs of a new environment: the wheel in it and, by path, its needs."""
    venv.create(folder, with_pip=False)
    bin_folder = folder / ("Scripts" if os.name == "nt" else "bin")
    python = bin_folder / ("python.exe" if os.name == "nt" else "python")
    command: list[str | Path] = [sys.executable, "-m", "pip", f"--python={python}", "install"]
    run([*command, "-q", "--no-deps", wheel], folder)
    look = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(run([python, "-c", look], folder).strip())
    (site / "needs.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return bin_folder
