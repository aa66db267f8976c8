"""The manifest of a prepared copy: written last, so that a folder with one is complete."""

import dataclasses
import itertools
from pathlib import Path

import msgspec

from runtime.errors import LarderError
from runtime.inspect.files import read_small, shown
from runtime.inspect.shards import is_shard_name
from runtime.protocol.errors import ErrorCode
from runtime.protocol.values import WeightFormat
from runtime.spec.mix import layouts_of
from runtime.spec.ram_slots import Records
from runtime.spec.tensors import ExpertLayout

MANIFEST_NAME = "larder-manifest.json"
JOURNAL_NAME = "larder-unfinished.json"
"""Lies in a folder whose copy is not finished."""
MANIFEST_VERSION = 1
MIX_VERSION = 2
"""Of a copy whose records have different formats."""
MAX_MANIFEST_BYTES = 64_000_000


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PreparedFile:
    """One file of a prepared copy and the CRC-32 of each tensor in it, in the order of the file."""

    name: str
    size_bytes: int
    checksums: list[int]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DenseForm:
    """What a dense matrix became that is not kept as published."""

    format: WeightFormat
    shape: tuple[int, int]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a prepared copy was made from and consists of."""

    version: int
    source_name: str
    source_fingerprint: str
    expert_format: WeightFormat
    """Of all records, or of the most."""
    hidden_size: int
    expert_width: int
    record_bytes: int
    """Of the largest record."""
    num_experts: int
    dense: PreparedFile
    layers: dict[int, PreparedFile]
    """The file with the expert records of each MoE layer."""
    source_folder: str = ""
    """Where the published model lay; empty in copies of earlier versions."""
    formats: dict[int, list[WeightFormat]] = dataclasses.field(default_factory=dict)
    """Of a mix the format of each record of each MoE layer; else empty."""
    dense_formats: dict[str, DenseForm] = dataclasses.field(default_factory=dict)
    mix: str = ""
    """Of a mix the name that no other has."""
    dense_ram_bytes: int = 0
    """What the dense part of a mix takes in RAM."""

    @property
    def layouts(self) -> dict[WeightFormat, ExpertLayout]:
        """How records lie, by their format."""
        formats = {self.expert_format, *itertools.chain.from_iterable(self.formats.values())}
        return layouts_of(formats, self.hidden_size, self.expert_width)

    @property
    def records(self) -> Records:
        """What all records take."""
        if not self.formats:
            num_layers = len(self.layers)
            total_bytes = self.record_bytes * num_layers * self.num_experts
            return Records(total_bytes, (self.record_bytes,) * num_layers)
        layouts = self.layouts
        sizes = [
            [layouts[each].record_bytes for each in self.formats[layer]]
            for layer in sorted(self.formats)
        ]
        return Records(sum(map(sum, sizes)), tuple(max(each, default=0) for each in sizes))

    @property
    def mix_bits(self) -> float:
        """Mean bits of a weight of an expert, scales included; 0 of a copy in one format."""
        num_weights = 3 * self.hidden_size * self.expert_width
        num_experts = sum(map(len, self.formats.values()))
        return 8 * self.records.total_bytes / (num_weights * num_experts) if num_experts else 0.0

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
    if manifest.version != (MIX_VERSION if manifest.formats else MANIFEST_VERSION):
        raise _invalid(folder, f"its manifest has version {manifest.version}")
    for file in (manifest.dense, *manifest.layers.values()):
        if not is_shard_name(file.name):
            raise _invalid(folder, "its manifest names a file outside the folder")
    _require_mix(folder, manifest)
    return manifest


def _require_mix(folder: Path, manifest: Manifest) -> None:
    """Raise unless the formats of a mix are those of all its records."""
    if not manifest.formats:
        return
    is_whole = manifest.formats.keys() == manifest.layers.keys() and all(
        len(each) == manifest.num_experts for each in manifest.formats.values()
    )
    if not is_whole or manifest.records.largest_bytes != manifest.record_bytes:
        raise _invalid(folder, "its manifest names formats that do not fit its records")


def write_manifest(manifest: Manifest) -> bytes:
    """Return the bytes of the manifest file."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1)


def _invalid(folder: Path, reason: str) -> LarderError:
    return LarderError(ErrorCode.STORE_INVALID, folder=shown(str(folder)), reason=reason)
