"""The store of our own prepared copy: one page-aligned record for each expert, with a checksum."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from runtime.errors import LarderError
from runtime.inspect.files import shown
from runtime.inspect.header import ShardHeader, read_header
from runtime.inspect.manifest import Manifest, PreparedFile, read_manifest
from runtime.inspect.roles import FORMATS
from runtime.protocol.errors import ErrorCode
from runtime.spec.tensors import (
    PAGE_BYTES,
    ExpertId,
    ExpertLayout,
    ExpertPart,
    TensorEntry,
    matrix_bytes,
)
from runtime.store import checksum
from runtime.store.base import HalvedRead
from runtime.store.files import WeightFiles
from runtime.store.halves import MIN_HALVED_BYTES, HalvedRecord

SAMPLE_EVERY = 64
"""Of the later reads of records and matrices, how many pass between two that are checked."""


class PreparedStore:
    """A complete prepared copy.

    Every record is checked against its checksum when it is first read, and every ``SAMPLE_EVERY``th
    of all later reads; one that is wrong is read once more and then refused with ``STORE_DAMAGED``.

    Threads: ``read_expert`` and ``read_tensor`` may be called from several threads at once.
    """

    def __init__(
        self, folder: Path, source_fingerprint: str = "", *, prefers_direct: bool = True
    ) -> None:
        """Open ``folder``, made from the checkpoint of that fingerprint, if one is given.

        Raises ``LarderError`` with ``NOT_PREPARED``, ``STORE_INVALID`` or ``FILE_UNREADABLE``.
        """
        try:
            manifest = read_manifest(folder)
        except FileNotFoundError as cause:
            raise LarderError(ErrorCode.NOT_PREPARED, folder=shown(str(folder))) from cause
        if source_fingerprint and manifest.source_fingerprint != source_fingerprint:
            raise _invalid(folder, "it was made from another version of the model")
        self._layouts = manifest.layouts
        self._layout = max(self._layouts.values(), key=lambda each: each.record_bytes)
        self._formats = manifest.formats
        self._common = self._layouts[manifest.expert_format]
        if self._layout.record_bytes != manifest.record_bytes:
            raise _invalid(folder, "its records have another size")
        self._records: dict[ExpertId, tuple[TensorEntry, int]] = {}
        for layer, file in manifest.layers.items():
            self._add_layer(folder, manifest, layer, file)
        self._dense, self._dense_checksums = _dense_tensors(folder, manifest)
        self._verified: set[ExpertId | str] = set()
        # Taking a number from it is one step that no other thread can come between.
        self._later_reads = itertools.count(1)
        paths = {entry.file for entry, _ in self._records.values()}
        self._files = WeightFiles(
            sorted({*paths, str(folder / manifest.dense.name)}), prefers_direct=prefers_direct
        )

    @property
    def layout(self) -> ExpertLayout:
        """How each expert lies in the buffers that ``read_expert`` fills, or the largest ones."""
        return self._layout

    def layout_of(self, expert: ExpertId) -> ExpertLayout:
        """How one expert lies there."""
        formats = self._formats.get(expert.layer)
        return self._common if formats is None else self._layouts[formats[expert.expert]]

    @property
    def dense_tensors(self) -> Mapping[str, TensorEntry]:
        """All tensors that are not routed experts, by their published name."""
        return self._dense

    @property
    def num_bytes_read(self) -> int:
        """Bytes read so far, padding and repeated reads included."""
        return self._files.num_bytes_read

    @property
    def is_direct(self) -> bool:
        """Whether every file is read past the cache."""
        return self._files.is_direct

    def place_of(self, expert: ExpertId) -> tuple[str, int]:
        """Return the file that holds an expert, and at which byte its record begins."""
        entry, _ = self._records[expert]
        return entry.file, entry.offset_bytes

    def read_expert(self, expert: ExpertId, target: memoryview) -> None:
        """Fill ``target`` with one record."""
        entry, expected = self._records[expert]
        place = target.cast("B")[: entry.num_bytes]
        self._read_verified(expert, entry, place, expected, lambda: _record_damaged(expert, entry))

    def halved(self, expert: ExpertId, target: memoryview) -> HalvedRead | None:
        """Return how to fill ``target`` with one record in halves, None for a small one."""
        entry, expected = self._records[expert]
        if entry.num_bytes < MIN_HALVED_BYTES:
            return None
        place = target.cast("B")[: entry.num_bytes]

        def verify() -> None:
            self._verify(expert, entry, place, expected, lambda: _record_damaged(expert, entry))

        return HalvedRecord(self._files, entry.file, entry.offset_bytes, place, verify)

    def read_tensor(self, entry: TensorEntry, target: memoryview) -> None:
        """Fill ``target`` with a dense tensor's bytes."""
        expected = self._dense_checksums[entry.name]
        self._read_verified(
            entry.name, entry, target.cast("B"), expected, lambda: _dense_damaged(entry)
        )

    def tensor_pieces(self, entry: TensorEntry, room: memoryview) -> Iterator[memoryview]:
        """Read a dense tensor in pieces through ``room``; yield each as a part of it.

        The checksum is compared after the last piece.
        """
        found = 0
        for piece in self._files.pieces(entry.file, entry.offset_bytes, entry.num_bytes, room):
            found = checksum.crc32(piece, found)
            yield piece
        if found != self._dense_checksums[entry.name]:
            raise _dense_damaged(entry)
        self._verified.add(entry.name)

    def close(self) -> None:
        """Close all files; may be called twice."""
        self._files.close()

    def _read_verified(
        self,
        key: ExpertId | str,
        entry: TensorEntry,
        target: memoryview,
        expected: int,
        damaged: Callable[[], LarderError],
    ) -> None:
        self._files.read(entry.file, entry.offset_bytes, [target])
        self._verify(key, entry, target, expected, damaged)

    def _verify(
        self,
        key: ExpertId | str,
        entry: TensorEntry,
        target: memoryview,
        expected: int,
        damaged: Callable[[], LarderError],
    ) -> None:
        """Compare what was read with its checksum, the first time and some of the later ones."""
        if key in self._verified and next(self._later_reads) % SAMPLE_EVERY:
            return
        if checksum.crc32(target) != expected:
            self._files.read(entry.file, entry.offset_bytes, [target])
            if checksum.crc32(target) != expected:
                self._verified.discard(key)
                raise damaged()
        self._verified.add(key)

    def _add_layer(self, folder: Path, manifest: Manifest, layer: int, file: PreparedFile) -> None:
        header = _checked_header(folder, file)
        records = sorted(header.tensors.values(), key=lambda tensor: tensor.offset_bytes)
        if len(records) != manifest.num_experts or len(file.checksums) != len(records):
            raise _invalid(folder, f"{file.name} holds another number of experts")
        for number, (record, expected) in enumerate(zip(records, file.checksums, strict=True)):
            layout = self.layout_of(ExpertId(layer, number))
            is_record = (
                record.name == record_name(layer, number)
                and record.num_bytes == layout.record_bytes
                and record.offset_bytes % PAGE_BYTES == 0
            )
            if not is_record:
                raise _invalid(folder, f"{file.name} holds something else than records")
            entry = TensorEntry(
                record.name,
                str(header.path),
                record.offset_bytes,
                record.num_bytes,
                layout[ExpertPart.GATE].format,
                record.shape,
            )
            self._records[ExpertId(layer, number)] = (entry, expected)


def _record_damaged(expert: ExpertId, entry: TensorEntry) -> LarderError:
    return LarderError(
        ErrorCode.STORE_DAMAGED,
        file=shown(entry.file),
        offset_bytes=entry.offset_bytes,
        part=f"layer {expert.layer}, expert {expert.expert}",
    )


def _dense_damaged(entry: TensorEntry) -> LarderError:
    return LarderError(
        ErrorCode.STORE_DAMAGED,
        file=shown(entry.file),
        offset_bytes=entry.offset_bytes,
        part=f"the matrix {entry.name}",
    )


def record_name(layer: int, expert: int) -> str:
    """Return the name of a record's tensor in its file."""
    return f"layers.{layer}.experts.{expert}"


def _dense_tensors(
    folder: Path, manifest: Manifest
) -> tuple[dict[str, TensorEntry], dict[str, int]]:
    file = manifest.dense
    header = _checked_header(folder, file)
    tensors = sorted(header.tensors.values(), key=lambda item: (item.offset_bytes, item.num_bytes))
    if len(tensors) != len(file.checksums):
        raise _invalid(folder, f"{file.name} holds another number of tensors")
    entries: dict[str, TensorEntry] = {}
    for name, dtype, shape, offset_bytes, num_bytes in tensors:
        form = manifest.dense_formats.get(name)
        if form is not None:
            if dtype != "U8" or num_bytes != matrix_bytes(form.format, *form.shape):
                raise _invalid(folder, f"{file.name} holds something else than {name[:80]}")
            entries[name] = TensorEntry(
                name, str(header.path), offset_bytes, num_bytes, form.format, form.shape
            )
            continue
        if dtype not in FORMATS:
            raise _invalid(folder, f"{file.name} holds numbers of type {dtype[:20]}")
        entries[name] = TensorEntry(
            name, str(header.path), offset_bytes, num_bytes, FORMATS[dtype], shape
        )
    return entries, dict(zip(entries, file.checksums, strict=True))


def _checked_header(folder: Path, file: PreparedFile) -> ShardHeader:
    try:
        header = read_header(folder / file.name)
    except FileNotFoundError as cause:
        raise _invalid(folder, f"{file.name} is missing") from cause
    except LarderError as cause:
        if cause.code is ErrorCode.FILE_UNREADABLE:
            raise
        if cause.code is ErrorCode.SHARD_TRUNCATED:
            raise _invalid(folder, f"{file.name} is not complete") from cause
        raise _invalid(folder, f"{file.name}: {cause.parameters['reason']}") from cause
    if header.file_bytes != file.size_bytes:
        raise _invalid(folder, f"{file.name} has another size than its manifest says")
    return header


def _invalid(folder: Path, reason: str) -> LarderError:
    return LarderError(ErrorCode.STORE_INVALID, folder=shown(str(folder)), reason=reason)
