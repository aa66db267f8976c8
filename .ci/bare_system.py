"""A bare Debian 12, made for the occasion, in which `make run` must set up and answer.

It begins with Python, its venv, a C++ compiler and make, as a person's fresh machine does; all else
is for set-up to bring. What pip is told on this machine it is told there too, through its
variables; files and folders that it is told of are lent. All mounts live in a name space of their
own and go with it.
"""

from __future__ import annotations

import ast
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from console import ROOT, CommandError, output_of, run, say

RELEASE = "bookworm"
_PACKAGES = "python3,python3-venv,g++,make"
_PROGRAMS = ("debootstrap", "unshare", "mount", "chroot", "git", "tar")
_SEARCHED = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_APART = ("unshare", "--mount", "--propagation", "private")
_MAX_S = 3600
QUESTION = "What is the capital of France?"
ANSWER = "Paris"
NO_SCREEN = "there is no screen here"
OPENED = "the window was opened"
_OPEN = f"""
from PySide6.QtWidgets import QApplication, QLabel
application = QApplication([])
shown = QLabel("Larder")
shown.show()
application.processEvents()
print({OPENED!r} if shown.isVisible() else "nothing is seen")
"""
_SET_UP = ("make", "-C", "/src", "setup")
_RUN = ("make", "-C", "/src", "run")
_WINDOW = ("env", "QT_QPA_PLATFORM=offscreen", "/src/.venv/bin/python", "-c", _OPEN)


def reason_against() -> str | None:
    """Why no bare system can be made here, or None where one can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "a bare Debian can be made by root on Linux alone"
    missing = [name for name in _PROGRAMS if shutil.which(name) is None]
    return f"{', '.join(missing)} is not installed here" if missing else None


@dataclass
class Lent:
    """What set-up needs of this machine to reach its packages."""

    variables: dict[str, str] = field(default_factory=dict)
    files: set[Path] = field(default_factory=set)
    folders: set[Path] = field(default_factory=set)


def lent(settings: str) -> Lent:
    """Read off `pip config list` what pip is told, and what on the disk that names."""
    found = Lent()
    lines = [line.partition("=") for line in settings.splitlines() if "=" in line]
    # The environment has the last word with pip.
    for name, _, quoted in sorted(lines, key=lambda line: line[0].startswith(":env:")):
        option = name.rpartition(".")[2]
        value = str(ast.literal_eval(quoted))
        found.variables[f"PIP_{option.upper().replace('-', '_')}"] = value
    for value in found.variables.values():
        for word in value.split():
            path = Path(word.removeprefix("file://"))
            if not path.is_absolute() or not path.exists():
                continue
            if path.is_file():
                found.files.add(path)
            else:
                # The pages of an index name files that lie beside it.
                found.folders.add(path.parent if word.startswith("file://") else path)
    return found


def try_out() -> dict[str, object]:
    """Make the bare system, run the program there twice, open a window; tell what came of it."""
    against = reason_against()
    if against:
        return {"verdict": "nothing to run", "why": against}
    with tempfile.TemporaryDirectory(prefix="larder-bare-") as folder:
        root = Path(folder)
        say(f"making a bare Debian ({RELEASE}) ...")
        include = f"--include={_PACKAGES}"
        made, text = output_of(
            [*_APART, "debootstrap", "--variant=minbase", include, RELEASE, root]
        )
        if made != 0:
            raise CommandError(f"debootstrap failed: {' '.join(text.split()[-40:])}")
        _give_tree(root)
        needs = _give_needs(root)
        first, first_s = _run_there(root, needs, _RUN)
        second, second_s = _run_there(root, needs, _RUN)
        # Without a screen nothing of Qt was needed so far.
        closed, _ = _run_there(root, needs, _WINDOW)
        brought, _ = _run_there(root, needs, _SET_UP)
        opened, _ = _run_there(root, needs, _WINDOW)
        there = (root / "etc" / "debian_version").read_text(encoding="ascii").strip()
        has_window = brought[0] == 0 and is_opened(*opened)
        good = is_answered(*first) and is_answered(*second) and has_window
        return {
            "verdict": "passed" if good else "failed",
            "system": f"Debian {there} with {_PACKAGES.replace(',', ', ')}",
            "first_run_s": round(first_s),
            "second_run_s": round(second_s, 1),
            "has_extension": "has the native extension" in first[1],
            "answer": answer_in(first[1]),
            "window_before_setup": is_opened(*closed),
            "window_after_setup": has_window,
        }


def is_answered(status: int, text: str) -> bool:
    """Whether `make run` said that there is no screen, and then its chat gave the answer."""
    return status == 0 and ANSWER in answer_in(text)


def is_opened(status: int, text: str) -> bool:
    """Whether Qt found what it loads, and showed a window."""
    return status == 0 and OPENED in text


def answer_in(text: str) -> str:
    """What the chat said, up to the line of its figures; empty where it was not opened."""
    _before, _said, after = text.partition(NO_SCREEN)
    return after.partition("\n")[2].partition("[")[0].strip()


def _give_tree(root: Path) -> None:
    """Put the committed tree there, as a clone would."""
    tree, packed = root / "src", root / "tree.tar"
    tree.mkdir()
    run(["git", "archive", "--output", packed, "HEAD"], "The tree cannot be packed", cwd=ROOT)
    run(["tar", "-x", "-f", packed, "-C", tree], "The tree cannot be unpacked")
    packed.unlink()


def _give_needs(root: Path) -> Lent:
    """Copy the files that reaching the packages needs; make the places where folders are lent."""
    status, text = output_of([sys.executable, "-m", "pip", "config", "list"])
    needs = lent(text if status == 0 else "")
    names = Path("/etc/resolv.conf")
    for path in [*needs.files, *([names] if names.exists() else [])]:
        copy = root / path.relative_to("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    for path in needs.folders:
        (root / path.relative_to("/")).mkdir(parents=True, exist_ok=True)
    return needs


def inside(root: Path, needs: Lent, command: Sequence[str]) -> str:
    """The shell's lines that enter the bare system and run a command there."""
    mounts = [["mount", "-t", "proc", "proc", str(root / "proc")]]
    mounts += [["mount", "--rbind", "/dev", str(root / "dev")]]
    for path in sorted(needs.folders):
        there = str(root / path.relative_to("/"))
        mounts += [["mount", "--bind", str(path), there]]
        mounts += [["mount", "-o", "remount,ro,bind", there]]
    variables = {"HOME": "/root", "PATH": _SEARCHED, "LANG": "C.UTF-8", **needs.variables}
    told = [f"{name}={value}" for name, value in variables.items()]
    program = ["exec", "chroot", str(root), "env", "-i", *told, *command]
    return "\n".join(["set -e", *(shlex.join(words) for words in (*mounts, program))])


def _run_there(root: Path, needs: Lent, command: Sequence[str]) -> tuple[tuple[int, str], float]:
    """A command with the question on standard input; its status and words, and the seconds."""
    started_s = time.monotonic()
    done = subprocess.run(
        [*_APART, "sh", "-c", inside(root, needs, command)],
        input=f"{QUESTION}\n",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=_MAX_S,
        check=False,
    )
    print(done.stdout, flush=True)
    return (done.returncode, done.stdout), time.monotonic() - started_s
