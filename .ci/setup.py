"""Set-up: environment, packages, system libraries and the demo model, in that order.

Called by every verb that runs something. When nothing changed it does nothing and takes less than
a second.
"""

from __future__ import annotations

from pathlib import Path

import environments
import stamps
import system_packages
from console import ROOT, CommandError, run, timed

DEMO = ROOT / "build" / "demo" / "larder-demo"
_RECIPE = ROOT / "resources" / "demo"


def everything(*, window: bool = True) -> Path:
    """Make the full environment and the demo model; returns the environment's interpreter.

    `window` says whether a window will be opened, and so whether Qt's system libraries count.
    """
    environments.prepare(environments.FULL)
    python = environments.FULL.executable
    if window:
        system_packages.ensure_window(python)
    demo_model(python)
    return python


def demo_model(python: Path) -> None:
    """Build the demo model by its recipe where it is missing or the recipe changed."""
    files = [path for path in _RECIPE.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    stamp, value = DEMO.with_name("larder-demo.stamp"), stamps.digest(files)
    if (DEMO / "config.json").exists() and stamps.is_current(stamp, value):
        return
    if not (_RECIPE / "build.py").exists():
        raise CommandError("resources/demo/build.py is missing: no demo model can be built.")
    with timed("building the demo model"):
        command: list[str | Path] = [python, _RECIPE / "build.py", "--out", DEMO]
        run(command, "The demo model could not be built")
    stamps.write(stamp, value)
