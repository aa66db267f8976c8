"""The licence a model folder states about itself."""

import re
from pathlib import Path

from runtime.errors import LarderError
from runtime.inspect.files import read_start

_FRONT = re.compile(rb"\A\xef?\xbb?\xbf?\s*---\r?\n(.*?)\r?\n---", re.DOTALL)
_LICENCE = re.compile(r"^license:[ \t]*[\"']?([^\r\n\"'#]+)", re.MULTILINE)
_NAMED = re.compile(r"^license_name:[ \t]*[\"']?([^\r\n\"'#]+)", re.MULTILINE)
_MAX_README_BYTES = 64_000
_MAX_LINE = 100


def read_licence(folder: Path, names: list[str]) -> str:
    """Return the licence of the model card, else the first line of a licence file, else nothing."""
    front = _FRONT.search(_start(folder, "README.md", names))
    if front:
        text = front[1].decode("utf-8", "replace")
        stated = _LICENCE.search(text)
        named = _NAMED.search(text)
        if stated and stated[1].strip() == "other" and named:
            return named[1].strip()[:_MAX_LINE]
        if stated:
            return stated[1].strip()[:_MAX_LINE]
    for name in names:
        if name.upper().startswith(("LICENSE", "LICENCE")):
            lines = _start(folder, name, names).decode("utf-8", "replace").splitlines()
            return next((line.strip() for line in lines if line.strip()), "")[:_MAX_LINE]
    return ""


def _start(folder: Path, name: str, names: list[str]) -> bytes:
    if name not in names:
        return b""
    try:
        return read_start(folder / name, _MAX_README_BYTES)
    except (FileNotFoundError, LarderError):
        return b""
