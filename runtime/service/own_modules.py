"""How our own modules are started as children of the runtime."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]


def module_command(module: str) -> tuple[str, ...]:
    """Return the words that run a module with this interpreter.

    ``-P`` keeps the working folder, which may be a model's, out of the search for modules.
    """
    return (sys.executable, "-P", "-m", module)


def module_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which our packages are found, installed or not."""
    known = environment.get("PYTHONPATH", "")
    path = os.pathsep.join(part for part in (str(_ROOT), known) if part)
    return {**environment, "PYTHONPATH": path}
