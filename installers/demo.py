"""The demo model, which every package holds as it was built."""

from __future__ import annotations

import shutil
from pathlib import Path

from installers.description import RecipeError


def add(demo: Path, packages: Path) -> None:
    """Put the demo model where the program looks for it, below the folder of packages.

    Raises:
        RecipeError: it was not built.
    """
    if not (demo / "config.json").exists():
        raise RecipeError(f"There is no demo model in {demo}; make setup builds it.")
    place = packages / "resources" / "demo" / "larder-demo"
    shutil.copytree(demo, place)
    for path in place.iterdir():
        path.chmod(0o644)
