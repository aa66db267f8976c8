"""Which Python makes the environments: the one that runs this, or one named by LARDER_PYTHON."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from console import CommandError, output_of

OLDEST = (3, 11)
NEWEST = (3, 13)
_ASK = "import sys; print(*sys.version_info[:2], sys.implementation.name)"


def version_of(program: str | Path) -> tuple[int, int] | None:
    """Major and minor version of a CPython program, or None where it is not a working one."""
    status, text = output_of([program, "-c", _ASK])
    words = text.split()
    if status != 0 or len(words) != 3 or words[2] != "cpython":
        return None
    return int(words[0]), int(words[1])


def is_usable(version: tuple[int, int] | None) -> bool:
    """Whether the package supports this version."""
    return version is not None and OLDEST <= version <= NEWEST


def base_python() -> str:
    """The interpreter to make environments with.

    Raises:
        CommandError: there is none of a supported version.
    """
    named = os.environ.get("LARDER_PYTHON")
    if named:
        if not is_usable(version_of(named)):
            raise CommandError(f"LARDER_PYTHON names {named}, which is no Python 3.11 to 3.13.")
        return shutil.which(named) or named
    if is_usable(sys.version_info[:2]):
        return os.path.realpath(sys.executable)
    raise CommandError(
        f"Larder needs Python 3.11, 3.12 or 3.13, and this is {sys.version.split()[0]}; "
        "install one of them, or name it with LARDER_PYTHON=/path/to/python3."
    )


def others() -> dict[str, str]:
    """Supported interpreters on this machine by version ("3.12"), the current one left out."""
    found: dict[str, str] = {}
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for minor in range(OLDEST[1], NEWEST[1] + 1):
        name = f"3.{minor}"
        if (3, minor) == sys.version_info[:2]:
            continue
        candidates = [shutil.which(f"python{name}"), *sorted(home.glob(f"{name}.*/bin/python3"))]
        for candidate in candidates:
            if candidate and version_of(candidate) == (3, minor):
                found[name] = str(candidate)
                break
    return found
