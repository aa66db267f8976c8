"""Importing a module changes nothing in the world: no file, thread, process, signal, log handler.

Run with no argument it starts one process per group of modules; with names it imports them.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import signal
import sys
import tempfile
import threading
from pathlib import Path

import imports
from console import ROOT, output_of

# Modules that are programs: running them is their import.
PROGRAMS = ("app.__main__", "runtime.__main__", "runtime.cli.__main__")
# Modules that are imported where a package is that few machines have.
NEEDS = {"runtime.kernels.triton_matvec": "triton"}
_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM") if hasattr(signal, name)]


def check() -> list[str]:
    """One sentence for each module whose import leaves something behind."""
    texts: list[str] = []
    for folder in ("app", "runtime"):
        files = imports.python_files(folder)
        found = [name for path in files if (name := imports.module_name(path)) not in PROGRAMS]
        names = [name for name in found if importlib.util.find_spec(NEEDS.get(name, "sys"))]
        with tempfile.TemporaryDirectory() as scratch:
            home = dict.fromkeys(("HOME", "USERPROFILE", "XDG_CACHE_HOME", "TMPDIR"), scratch)
            env = {**home, "LARDER_HOME": scratch, "QT_QPA_PLATFORM": "offscreen"}
            env |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(ROOT)}
            command = [sys.executable, __file__, *names]
            status, text = output_of(command, env=env, cwd=Path(scratch))
        if status != 0:
            texts += [line for line in text.strip().splitlines() if line.strip()]
    return texts


def observe(names: list[str]) -> list[str]:
    """Import modules one by one and say what each left behind."""
    texts = []
    for name in names:
        before = _world()
        try:
            importlib.import_module(name)
        except ImportError as error:
            texts.append(f"{name}: cannot be imported: {error}")
            continue
        texts += [
            f"{name}: importing it changed {what}"
            for what, value in _world().items()
            if value != before[what]
        ]
    return texts


def _world() -> dict[str, object]:
    """What an import could have changed; threads of libraries are not ours to judge."""
    ours = [thread.name for thread in threading.enumerate()]
    return {
        "files": sorted(path.name for path in Path.cwd().rglob("*")),
        "threads": ours,
        "child processes": _children(),
        "the working folder": Path.cwd(),
        "signal handlers": [signal.getsignal(number) for number in _SIGNALS],
        "the log": (len(logging.getLogger().handlers), logging.getLogger().level),
        "the environment": _variables(),
    }


def _variables() -> dict[str, str]:
    """Environment variables, without the one that PySide6 sets for itself."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYSIDE6_")}


def _children() -> str:
    """The kernel's list of our child processes; empty where there is none."""
    path = Path(f"/proc/self/task/{os.getpid()}/children")
    return path.read_text(encoding="ascii") if path.exists() else ""


if __name__ == "__main__":
    left = observe(sys.argv[1:])
    print("\n".join(left))
    sys.exit(1 if left else 0)
