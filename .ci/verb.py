"""The one door of all development commands: `python .ci/verb.py VERB`, for make and make.cmd."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import ahead
import environments
import jobs
import setup
import start
import torch_build
from console import ROOT, CommandError, say

_KINDS = {"win32": "windows", "darwin": "macos"}
_STARTS_MANY = ("check", "test", "deep")
_KEEPS_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
"""Where it is set, each of hundreds of programs compiles all that it imports, torch as well."""


def _setup() -> int:
    """Environment, packages, system libraries, demo model."""
    setup.everything()
    say("everything is set up")
    return 0


def _within(script: str, *arguments: str) -> int:
    """Run one of our scripts with the full environment's Python."""
    environments.prepare(environments.FULL)
    command = [str(environments.FULL.executable), str(ROOT / ".ci" / script), *arguments]
    return subprocess.call(command, cwd=ROOT)


def _test() -> int:
    """Every test job."""
    setup.everything()
    return _within("jobs.py", *sys.argv[2:])


def _check() -> int:
    """Every check of the source; in a run of checks and tests, what the tests need beside it."""
    if not os.environ.get(jobs.STARTED):
        return _within("check.py")
    with ahead.made_meanwhile() as has_full_environment:
        environments.prepare(environments.FULL)
        has_full_environment()
        return _within("check.py")


def _installer() -> int:
    """What a person downloads, for this platform or the named one."""
    python = setup.everything(window=False)
    kind = sys.argv[2:] or [_KINDS.get(sys.platform, "linux")]
    command: list[str | Path] = [python, "-m", "installers", *kind]
    source = torch_build.source_for("cpu", python, environments.CONSTRAINTS)
    return subprocess.call([*command, "--torch-source", source], cwd=ROOT)


def _clean() -> int:
    """Remove what the other commands made."""
    for path in [*ROOT.glob(".venv*"), ROOT / "build", ROOT / "dist"]:
        if path.exists():
            say(f"removing {path.name}")
            shutil.rmtree(path)
    return 0


def _bench(name: str) -> int:
    """One benchmark script."""
    folder = ROOT / "benchmarks"
    # A script with the name of a package that it needs would be imported in its place.
    script = folder / f"bench_{name}.py"
    script = script if script.exists() else folder / f"{name}.py"
    if not script.exists():
        stems = (path.stem.removeprefix("bench_") for path in folder.glob("*.py"))
        names = sorted(stems) or ["none"]
        raise CommandError(f"There is no benchmark {name}; there are: {', '.join(names)}.")
    python = setup.everything(window=False)
    return subprocess.call([str(python), str(script), *sys.argv[2:]], cwd=ROOT)


VERBS: dict[str, Callable[[], int]] = {
    "run": start.main,
    "setup": _setup,
    "test": _test,
    "check": _check,
    "fix": lambda: _within("check.py", "--fix"),
    "lab": lambda: _bench("lab"),
    "deep": lambda: _within("deep.py"),
    "installer": _installer,
    "clean": _clean,
}


def main(arguments: list[str]) -> int:
    """Run one verb; what goes wrong is one sentence on the error stream."""
    verb = arguments[0] if arguments else "run"
    if verb in _STARTS_MANY:
        os.environ.pop(_KEEPS_NO_BYTECODE, None)
    try:
        if verb.startswith("bench-"):
            return _bench(verb.removeprefix("bench-"))
        if verb not in VERBS:
            raise CommandError(f"There is no {verb}; there are {', '.join(VERBS)} and bench-NAME.")
        return VERBS[verb]()
    except CommandError as error:
        print(f"larder: {error}", file=sys.stderr, flush=True)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main(sys.argv[1:]))
