"""Which accelerators the installed torch was built for, told without importing it."""

import importlib.util
import re
from pathlib import Path

_CUDA_LINE = re.compile(r"^cuda\b[^=\n]*=\s*['\"]([\d.]+)['\"]", re.MULTILINE)
_MAX_FILE_BYTES = 64 * 1024


def torch_cuda_version() -> str:
    """Return the CUDA version that the installed torch was built for, empty without one.

    Whether the card's driver is new enough is known only once the engine starts; it then refuses
    with a sentence of its own.
    """
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return ""
    return cuda_version_in(Path(spec.origin).with_name("version.py"))


def cuda_version_in(version_file: Path) -> str:
    """Return the CUDA version that torch's ``version.py`` states, empty if it states none."""
    try:
        with version_file.open("rb") as file:
            text = file.read(_MAX_FILE_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    found = _CUDA_LINE.search(text)
    return found.group(1) if found else ""
