"""The engine for graphics cards beside the program: which there is, and having it used."""

import os
import shutil
from collections.abc import MutableMapping
from pathlib import Path

import msgspec

from runtime.protocol.engine_messages import EnginePart

LIST = Path(__file__).resolve().parents[2] / "resources" / "engine.json"
"""Written by the recipes of installers, where they reach what they take the engine from."""
READY = ".ready"
_UNWANTED = ".unwanted"
"""The person gave it back: it goes at the next start, when nothing uses it."""


class EngineList(msgspec.Struct, frozen=True, kw_only=True):
    """The engine that fits this version of the program."""

    name: str
    """For example ``torch-2.13.0-cu130``; its folder is called so."""
    source: str
    """Where it comes from, as a person reads it."""
    parts: list[EnginePart]

    @property
    def size_bytes(self) -> int:
        """What has to be downloaded."""
        return sum(part.size_bytes for part in self.parts)


def read_engine_list(path: Path = LIST) -> EngineList | None:
    """Return the list; None where there is none, or it cannot be understood."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=EngineList)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if Path(found.name).name == found.name and found.parts else None


def engine_folder(data: Path, listed: EngineList) -> Path:
    """Return where the engine lies, if it was fetched."""
    return data / "engine" / listed.name


def is_there(folder: Path) -> bool:
    """Whether an engine is whole and wanted."""
    return (folder / READY).exists() and not (folder / _UNWANTED).exists()


def give_back(folder: Path) -> None:
    """Have an engine deleted at the next start; raises ``OSError``."""
    (folder / _UNWANTED).touch()


def take_engine(
    data: Path, listed: EngineList | None, environment: MutableMapping[str, str]
) -> str:
    """Have processes started from now on use the engine; return its folder, empty for none.

    Called at the start of the program, before any of them runs. What belongs to another version of
    the program, or was given back, is deleted.
    """
    place = data / "engine"
    wanted = engine_folder(data, listed) if listed is not None else None
    for folder in sorted(place.iterdir()) if place.is_dir() else []:
        is_ours = wanted is not None and folder.name.startswith(wanted.name)
        if not is_ours or (folder / _UNWANTED).exists():
            shutil.rmtree(folder, ignore_errors=True)
    if wanted is None or not is_there(wanted):
        return ""
    known = environment.get("PYTHONPATH", "")
    environment["PYTHONPATH"] = os.pathsep.join(part for part in (str(wanted), known) if part)
    return str(wanted)
