"""The manifest of a prepared copy: written last, so that a folder with one is complete."""

import dataclasses
from pathlib import Path

import msgspec

from runtime.errors import LarderError
from runtime.inspect.files import read_small, shown
from runtime.inspect.shards import is_shard_name
from runtime.protocol.errors import ErrorCode
from runtime.protocol.values import WeightFormat

MANIFEST_NAME = "larder-manifest.json"
JOURNAL_NAME = "larder-unfinished.json"
"""Lies in a folder whose copy is not finished."""
MANIFEST_VERSION = 1
MAX_MANIFEST_BYTES = 64_000_000


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PreparedFile:
    """One file of a prepared copy and the CRC-32 of each tensor in it, in the order of the file."""

    name: str
    size_bytes: int
    checksums: list[int]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a prepared copy was made from and consists of."""

    version: int
    source_name: str
    source_fingerprint: str
    expert_format: WeightFormat
    hidden_size: int
    expert_width: int
    record_bytes: int
    num_experts: int
    dense: PreparedFile
    layers: dict[int, PreparedFile]
    """The file with the expert records of each MoE layer."""
    source_folder: str = ""
    """Where the published model lay; empty in copies of earlier versions."""

    @property
    def size_bytes(self) -> int:
        """Bytes of all weight files."""
        return self.dense.size_bytes + sum(file.size_bytes for file in self.layers.values())


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a folder.

    Raises ``FileNotFoundError``, or ``LarderError`` with ``STORE_INVALID`` or ``FILE_UNREADABLE``.
    """
    try:
        data = read_small(folder / MANIFEST_NAME, MAX_MANIFEST_BYTES)
    except LarderError as cause:
        if cause.code is not ErrorCode.FILE_INVALID:
            raise
        raise _invalid(folder, f"{MANIFEST_NAME}: {cause.parameters['reason']}") from cause
    try:
        manifest = msgspec.json.decode(data, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as cause:
        raise _invalid(folder, f"its manifest cannot be read: {cause}") from cause
    if manifest.version != MANIFEST_VERSION:
        raise _invalid(folder, f"its manifest has version {manifest.version}")
    for file in (manifest.dense, *manifest.layers.values()):
        if not is_shard_name(file.name):
            raise _invalid(folder, "its manifest names a file outside the folder")
    return manifest


def write_manifest(manifest: Manifest) -> bytes:
    """Return the bytes of the manifest file."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1)


def _invalid(folder: Path, reason: str) -> LarderError:
    return LarderError(ErrorCode.STORE_INVALID, folder=shown(str(folder)), reason=reason)
