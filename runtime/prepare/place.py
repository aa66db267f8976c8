"""Where prepared copies lie."""

import re
from pathlib import Path

from runtime.protocol.model import ModelReport
from runtime.protocol.values import WeightFormat

_UNSAFE = re.compile(r"[^\w.-]+")
_MAX_NAME_BYTES = 80


def prepared_root(data_folder: str) -> str:
    """Return the folder below which all prepared copies lie by default."""
    return str(Path(data_folder) / "prepared")


def default_prepared_folder(
    data_folder: str, report: ModelReport, expert_format: WeightFormat, mix_bytes: int = 0
) -> str:
    """Return where the copy of one checkpoint in one format goes unless a person says otherwise.

    The name tells a person what it is; the fingerprint in it keeps versions of a model apart.
    """
    kind = f"mix-{mix_bytes >> 20}" if mix_bytes else expert_format.replace("_", "-")
    parts = [safe_name(report.name), kind, report.fingerprint[:12]]
    return str(Path(prepared_root(data_folder)) / "-".join(parts))


def safe_name(name: str) -> str:
    """Return a model's name as a part of the name of a file."""
    words = _UNSAFE.sub("-", name).strip("-.")
    while len(words.encode()) > _MAX_NAME_BYTES:
        words = words[:-1]
    return words or "model"
