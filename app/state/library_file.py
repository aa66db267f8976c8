"""The file of the known models, and what tells one model from another in it."""

import contextlib
import re
from pathlib import Path

import msgspec

from app.state.folders import plain_path
from app.state.json_file import pretty, set_aside, write_whole
from runtime.protocol.model import ModelReport, TierShare

_SNAPSHOT = re.compile(
    r"(?P<model>.*[\\/]models--[^\\/]+)[\\/]snapshots[\\/][^\\/]+"
    r"(?P<file>[\\/].+\.gguf)?[\\/]?",
    re.IGNORECASE,
)


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One model as it is kept in the file."""

    folder: str
    root: str = ""
    """The place below which it was found; empty if the person dropped it."""
    is_hidden: bool = False
    """The person took it off the list; a search finds it and does not show it."""
    is_missing: bool = False
    """It was not there when it was last looked for."""
    report: ModelReport | None = None
    tiers: list[TierShare] = []
    forecast_low: float = 0.0
    forecast_high: float = 0.0
    measured_tokens_per_s: float = 0.0

    @property
    def is_used(self) -> bool:
        """Whether there is something that a search would not find again."""
        return bool(self.measured_tokens_per_s or self.is_hidden)


def model_key(folder: str) -> str:
    """Return what is the same for all paths of a model; snapshots in a hub's cache are one."""
    snapshot = _SNAPSHOT.fullmatch(folder)
    return plain_path(snapshot["model"] + (snapshot["file"] or "") if snapshot else folder)


def read_entries(path: Path) -> dict[str, Entry]:
    """Return the kept entries by key; none if there is no list or it cannot be understood."""
    try:
        entries = msgspec.json.decode(path.read_bytes(), type=list[Entry])
    except OSError:
        return {}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        with contextlib.suppress(OSError):
            set_aside(path)
        return {}
    return {model_key(entry.folder): entry for entry in reversed(entries)}


def write_entries(path: Path, entries: dict[str, Entry]) -> None:
    """Write all entries; unwritten they are known until the program ends, which is no harm."""
    with contextlib.suppress(OSError):
        write_whole(path, pretty(list(reversed(entries.values()))))


def with_report(entry: Entry, report: ModelReport, *, is_missing: bool) -> Entry:
    """Return an entry with a new report; what was measured of other files is measured no more."""
    old = entry.report.fingerprint if entry.report is not None else ""
    if old and report.fingerprint and old != report.fingerprint:
        entry = Entry(folder=entry.folder, root=entry.root, is_hidden=entry.is_hidden)
    return msgspec.structs.replace(
        entry, folder=report.folder, report=report, is_missing=is_missing
    )
