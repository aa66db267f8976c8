"""The stamp of a built demo folder: what it was made from and what it holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from resources.demo.package import file_sha256

STAMP_NAME = "larder-demo.json"


def recipe_stamp(inputs: dict[str, Path], wheel_sha256: str, recipe_version: int) -> dict[str, Any]:
    """Return the part of a stamp that is known before building."""
    return {
        "recipe_version": recipe_version,
        "package_sha256": wheel_sha256,
        "inputs": {name: file_sha256(path) for name, path in sorted(inputs.items())},
    }


def write_stamp(folder: Path, recipe: dict[str, Any]) -> None:
    """Write the stamp of a finished folder, with every other file's size and hash."""
    files = {
        path.name: {"size_bytes": path.stat().st_size, "sha256": file_sha256(path)}
        for path in sorted(folder.iterdir())
        if path.name != STAMP_NAME
    }
    text = json.dumps({"recipe": recipe, "files": files}, indent=1) + "\n"
    (folder / STAMP_NAME).write_text(text, "utf-8")


def is_current(folder: Path, recipe: dict[str, Any], *, with_hashes: bool) -> bool:
    """Tell whether a folder was built by this recipe and is whole.

    Without hashes only names and sizes are compared, which takes no noticeable time.
    """
    try:
        stamp = json.loads((folder / STAMP_NAME).read_text("utf-8"))
        if stamp["recipe"] != recipe:
            return False
        for name, facts in stamp["files"].items():
            path = folder / name
            if path.stat().st_size != facts["size_bytes"]:
                return False
            if with_hashes and file_sha256(path) != facts["sha256"]:
                return False
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False
    return True
