"""Which accelerators the installed torch was built for, told without importing it."""

import importlib.util
import re
from pathlib import Path

_KIND_LINE = re.compile(r"^(cuda|hip|xpu)\b[^=\n]*=\s*['\"]([\w.+-]+)['\"]", re.MULTILINE)
_KIND_OF = {"cuda": "cuda", "hip": "cuda", "xpu": "xpu"}
"""Torch drives ROCm's cards under CUDA's name."""
_MAX_FILE_BYTES = 64 * 1024


def torch_kinds() -> frozenset[str]:
    """Return the kinds of cards that the installed torch was built for, as devices are named.

    Whether the card's driver is new enough is known only once the engine starts; it then refuses
    with a sentence of its own.
    """
    return frozenset(_KIND_OF[build] for build in torch_builds())


def torch_builds() -> frozenset[str]:
    """Return what the installed torch was built with: ``cuda``, ``hip`` (ROCm), ``xpu``."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return frozenset()
    return builds_in(Path(spec.origin).with_name("version.py"))


def kinds_in(version_file: Path) -> frozenset[str]:
    """Return the kinds of cards that torch's ``version.py`` states, none if it states none."""
    return frozenset(_KIND_OF[build] for build in builds_in(version_file))


def builds_in(version_file: Path) -> frozenset[str]:
    """Return the names of builds in torch's ``version.py``."""
    try:
        with version_file.open("rb") as file:
            text = file.read(_MAX_FILE_BYTES).decode("utf-8", "replace")
    except OSError:
        return frozenset()
    return frozenset(name for name, _ in _KIND_LINE.findall(text))
