"""Prepared copies of a model that already lie on this PC."""

from pathlib import Path

from runtime.errors import LarderError
from runtime.inspect.files import shown
from runtime.inspect.manifest import read_manifest
from runtime.inspect.place import list_names
from runtime.protocol.model import PreparedCopy

MAX_COPIES = 1000


def find_prepared(prepared_folder: str, fingerprint: str) -> list[PreparedCopy]:
    """Return the complete copies below ``prepared_folder`` of the checkpoint with this fingerprint.

    A copy that is unfinished, unreadable or of another checkpoint is passed over.
    """
    if not prepared_folder:
        return []
    root = Path(prepared_folder)
    try:
        names = list_names(root)[:MAX_COPIES]
    except (LarderError, ValueError):
        return []
    found: list[PreparedCopy] = []
    for name in names:
        folder = root / name
        try:
            manifest = read_manifest(folder)
        except (FileNotFoundError, LarderError):
            continue
        if manifest.source_fingerprint == fingerprint:
            found.append(
                PreparedCopy(
                    folder=shown(str(folder)),
                    expert_format=manifest.expert_format,
                    size_bytes=manifest.size_bytes,
                )
            )
    return found
