"""The one place that chooses between published files and a prepared copy."""

from pathlib import Path

from runtime.inspect.inspection import Inspection
from runtime.store.base import ExpertStore
from runtime.store.checkpoint import CheckpointStore
from runtime.store.prepared import PreparedStore


def open_store(
    inspection: Inspection, store_folder: str, *, prefers_direct: bool = True
) -> ExpertStore:
    """Return the store of an inspected model: the model's own files, or the copy in another folder.

    Files are read past the system's cache where that is possible, unless that is not preferred.
    Raises ``LarderError`` if the copy is missing, incomplete or of another checkpoint.
    """
    if not store_folder or Path(store_folder).absolute() == Path(inspection.report.folder):
        return CheckpointStore(inspection, prefers_direct=prefers_direct)
    return PreparedStore(
        Path(store_folder).absolute(),
        inspection.report.fingerprint,
        prefers_direct=prefers_direct,
    )
