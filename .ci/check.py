"""`make check` and `make fix`: every check of the source, all run before the verdict."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import contracts
import jobs
import side_effects
import tree
from console import ROOT, output_of, say

_CODE = ("app", "runtime", "resources", "installers", ".ci", "tests", "benchmarks")
_PACKAGES = ("app", "runtime", "resources", "installers", "tests")
_SCRIPTS = (".ci", "benchmarks")
_ON_ALL_CORES = {"MYPY_NUM_WORKERS": str(os.cpu_count() or 1)}


def _existing(names: tuple[str, ...]) -> list[str]:
    """Those of the folders that hold Python files."""
    return [name for name in names if any((ROOT / name).rglob("*.py"))]


def _program(*arguments: str, env: Mapping[str, str] | None = None) -> list[str]:
    """A tool's complaints, one a line; nothing where it is content."""
    status, text = output_of([sys.executable, "-m", *arguments], env=env)
    return text.strip().splitlines() if status else []


def lint(*, fix: bool = False) -> list[str]:
    """Style rules of ruff; with `fix`, what can be mended is."""
    how = ["--fix"] if fix else ["--output-format", "concise"]
    return _program("ruff", "check", "--quiet", *how, *_existing(_CODE))


def layout(*, fix: bool = False) -> list[str]:
    """Layout of the source by ruff; with `fix`, it is rewritten."""
    how = [] if fix else ["--check", "--output-format", "concise"]
    return _program("ruff", "format", "--quiet", *how, *_existing(_CODE))


def types() -> list[str]:
    """mypy, strict; scripts apart, since they are no package and import their neighbours."""
    folders = [ROOT / name for name in _SCRIPTS]
    scripts = sorted(str(path.relative_to(ROOT)) for top in folders for path in top.glob("*.py"))
    options = ("mypy", "--no-error-summary", "--cache-dir", "build/mypy")
    packages = _program(*options, *_existing(_PACKAGES), env=_ON_ALL_CORES)
    return [*packages, *_program(*options, *scripts)]


def _steps(files: list[Path]) -> dict[str, Callable[[], list[str]]]:
    """Every check by name, the cheap ones first."""
    return {
        "import contracts": lambda: contracts.check(ROOT),
        "file lengths": lambda: tree.lengths(files),
        "file sizes": lambda: tree.sizes(files),
        "docs links": lambda: tree.links(files),
        "changelog": tree.changelog,
        "words": lambda: tree.words(files),
        "test jobs": jobs.unassigned,
        "lint": lint,
        "layout": layout,
        "side effects of imports": side_effects.check,
        "types": types,
    }


def main(arguments: list[str]) -> int:
    """Run everything; the status is 1 where a check has complaints."""
    if "--fix" in arguments:
        left = [*lint(fix=True), *layout(fix=True)]
        print("\n".join(left))
        return 1 if left else 0
    failed = []
    for name, step in _steps(tree.tracked_files()).items():
        started_s = time.monotonic()
        complaints = step()
        verdict = f"{len(complaints)} lines of complaints" if complaints else "ok"
        say(f"check {name}: {verdict} ({time.monotonic() - started_s:.1f} s)")
        if complaints:
            failed.append(name)
            print("\n".join(f"  {line}" for line in complaints), flush=True)
    say(f"check failed: {', '.join(failed)}" if failed else "check passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
