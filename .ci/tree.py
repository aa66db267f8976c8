"""Checks over the files of the tree: lengths, links, changelog, words that must not be there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from console import ROOT

MAX_LINES = 500
# A longer file stands here with the reason why it is one thing.
LONG_FILES: dict[str, str] = {}
_CODE = (".py", ".cpp", ".cc", ".h", ".hpp", ".cmake")
_TEXT = (*_CODE, ".md", ".toml", ".txt", ".cmd", ".sh", ".json", ".svg", ".qss", ".yml", ".cfg", "")
_LINK = re.compile(r"(?<!`)\[[^\]\n]*\]\(([^)\s]+)\)")


def _pattern(text: str) -> re.Pattern[str]:
    """A pattern from a text with `~` inside its words, so that this file does not find itself."""
    return re.compile(text.replace("~", ""))


_SOURCES = _pattern("(index~-url|find~-links|registry~=)")
_HOSTS = _pattern(r"(py~pi|python~hosted|npm~js|deb\.deb~ian)\.org")
_MACHINE = _pattern(r"(?<![\w.])(/ro~ot/|/wo~rk/|/ho~me/\w+/)|C:\\+Us~ers\\")
_UNFINISHED = _pattern(r"\b(TO~DO|FIX~ME|XX~X|NotImplemented~Error)\b")
_EMPTY = _pattern(r"except Exception:~\s*pass|except:~\s*$|pytest\.mark\.~skip\b|assert ~True\b")
_SOURCES_FILE = "installers/sources.toml"


def tracked_files(root: Path = ROOT) -> list[Path]:
    """What git knows or would add; every file outside build folders where there is no git."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=root, capture_output=True, check=False)
    if done.returncode == 0:
        names = [name for name in done.stdout.decode("utf-8").split("\0") if name]
        return sorted({root / name for name in names if (root / name).is_file()})
    return sorted(
        path
        for path in root.rglob("*")
        if path.is_file()
        and not any(part.startswith(".venv") or part == "build" for part in path.parts)
    )


def lengths(files: list[Path], root: Path = ROOT) -> list[str]:
    """Code files over the limit, and listed exceptions that are none any more."""
    texts = []
    for path in files:
        name = path.relative_to(root).as_posix()
        if path.suffix not in _CODE:
            continue
        count = len(path.read_text(encoding="utf-8").splitlines())
        if count > MAX_LINES and name not in LONG_FILES:
            texts.append(f"{name}: {count} lines; which two things is it? (limit {MAX_LINES})")
        if count <= MAX_LINES and name in LONG_FILES:
            texts.append(f"{name}: is short enough now; take it off the list in .ci/tree.py")
    return texts


def links(files: list[Path], root: Path = ROOT) -> list[str]:
    """Relative links in Markdown files that lead nowhere."""
    texts = []
    for path in files:
        if path.suffix != ".md" or "tests" in path.relative_to(root).parts:
            continue
        for number, line in _lines_outside_code(path):
            for target in _LINK.findall(line):
                if re.match(r"[a-z]+:|#", target):
                    continue
                aim = (path.parent / target.partition("#")[0]).resolve()
                if not aim.exists():
                    name = path.relative_to(root).as_posix()
                    texts.append(f"{name}:{number}: the link to {target} leads nowhere")
    return texts


def _lines_outside_code(path: Path) -> list[tuple[int, str]]:
    """Numbered lines of a Markdown file, without fenced blocks."""
    kept, fenced = [], False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            kept.append((number, line))
    return kept


def changelog(root: Path = ROOT) -> list[str]:
    """The changelog has something to say about what is not released yet."""
    path = root / "CHANGELOG.md"
    if not path.exists():
        return ["CHANGELOG.md: is missing"]
    part = re.search(
        r"^## Unreleased\s*\n(.*?)(?=^## |\Z)",
        path.read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    if part is None or not re.search(r"^- \S", part[1], re.MULTILINE):
        return ["CHANGELOG.md: has no entry under '## Unreleased'"]
    return []


def words(files: list[Path], root: Path = ROOT) -> list[str]:
    """Machine paths, package sources, unfinished places and swallowed errors."""
    texts = []
    for path in files:
        name = path.relative_to(root).as_posix()
        if path.suffix not in _TEXT or name == "LICENSE" or path.stat().st_size > 1 << 20:
            continue
        rules = [(_MACHINE, "a path of one machine")]
        if name != _SOURCES_FILE:
            rules += [(_SOURCES, "a package source"), (_HOSTS, "a registry's host")]
        if name.startswith(("app/", "runtime/", "installers/", "resources/", ".ci/")):
            rules += [(_UNFINISHED, "an unfinished place")]
        if path.suffix == ".py":
            rules += [(_EMPTY, "a swallowed error or an empty test")]
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            texts += [f"{name}:{number}: has {what}" for rule, what in rules if rule.search(line)]
    return texts


def sizes(files: list[Path], root: Path = ROOT) -> list[str]:
    """Files that are too big for the repository."""
    return [
        f"{path.relative_to(root).as_posix()}: is over 1 MiB"
        for path in files
        if path.stat().st_size > 1 << 20
    ]
