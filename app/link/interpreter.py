"""How our own modules are started as processes."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]


def module_command(module: str) -> tuple[str, ...]:
    """Return the words that run a module with this interpreter.

    ``-P`` keeps the working folder out of the search for modules: nothing that lies in the folder
    the program was started from, which may be a model's, is ever imported.
    """
    return (sys.executable, "-P", "-m", module)


def module_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which our packages are found, installed or not."""
    known = environment.get("PYTHONPATH", "")
    path = os.pathsep.join(part for part in (str(_ROOT), known) if part)
    return {**environment, "PYTHONPATH": path}


def start_apart(module: str, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run a module as a process that goes on when this one has ended."""
    subprocess.Popen(
        [*module_command(module), *arguments],
        env=module_environment(environment),
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
