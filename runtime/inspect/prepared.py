"""Prepared copies of a model that already lie on this PC, and the way from a copy to its model."""

from pathlib import Path

from runtime.errors import LarderError
from runtime.inspect.files import shown
from runtime.inspect.listing import list_names
from runtime.inspect.manifest import MANIFEST_NAME, Manifest, read_manifest
from runtime.inspect.place import Place, find_model
from runtime.protocol.errors import ErrorCode
from runtime.protocol.model import PreparedCopy

MAX_COPIES = 1000
_NETWORK_STARTS = ("\\\\", "//")
"""A stranger's manifest must not make this PC log in at a server of the stranger's choice."""


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
            found.append(describe_copy(folder, manifest))
    return found


def describe_copy(folder: Path, manifest: Manifest) -> PreparedCopy:
    """Return what a report says of a copy."""
    return PreparedCopy(
        folder=shown(str(folder)),
        expert_format=manifest.expert_format,
        size_bytes=manifest.size_bytes,
        mix_bits=manifest.mix_bits,
        records_bytes=manifest.records.total_bytes if manifest.formats else 0,
        slot_bytes=list(manifest.records.slot_bytes) if manifest.formats else [],
        dense_ram_bytes=manifest.dense_ram_bytes,
    )


def model_of_copy(copy: Place) -> tuple[Place, Manifest]:
    """Return where the model lies that a copy was made from, as its manifest says.

    Raises ``LarderError`` with ``COPY_WITHOUT_MODEL`` if it is not there, or with what is wrong
    with the manifest.
    """
    manifest = read_manifest(copy.folder)
    if manifest.source_folder.startswith(_NETWORK_STARTS):
        raise copy_without_model(copy, manifest)
    try:
        place = find_model(manifest.source_folder)
    except LarderError as cause:
        raise copy_without_model(copy, manifest) from cause
    if MANIFEST_NAME in place.names:
        raise copy_without_model(copy, manifest)
    return place, manifest


def copy_without_model(copy: Place, manifest: Manifest) -> LarderError:
    """Return the error for a copy whose model is not there, or has changed."""
    return LarderError(
        ErrorCode.COPY_WITHOUT_MODEL,
        folder=shown(str(copy.folder)),
        name=manifest.source_name or "the model",
    )
