"""What a packaged program knows of itself: its system, its place, and where newer versions are."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path

from installers.description import ROOT, RecipeError

SOURCES = ROOT / "installers" / "sources.toml"
FILE = "resources/package.json"
"""Below the folder of packages; `app.state.package` reads it."""


def write(tree: Path, packages: Path, system: str, sources: Path = SOURCES) -> None:
    """Write the file into a tree.

    Raises:
        RecipeError: an address without a key, or the other way round.
    """
    known = tomllib.loads(sources.read_text(encoding="utf-8"))["updates"]
    address, key = known["source"], known["key"]
    if bool(address) != bool(key):
        raise RecipeError(
            f"[updates] in {sources.name} has a source or a key, and each needs the other; a newer "
            "version is believed by its signature alone."
        )
    place = packages / FILE
    place.parent.mkdir(parents=True, exist_ok=True)
    root = Path(os.path.relpath(tree, place.parent)).as_posix()
    told = {"system": system, "root": root, "address": address, "key": key}
    place.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
