"""What is read for one expert, and where it goes. Pure."""

import dataclasses
from collections.abc import Mapping

from runtime.spec.tensors import (
    ExpertLayout,
    ExpertPart,
    MatrixLayout,
    TensorEntry,
    matrix_bytes,
)
from runtime.store.coalesce import Extent, coalesce

_PARTS = tuple(ExpertPart)
GAP = -1
"""Stands for the begin of bytes that are read and thrown away."""


@dataclasses.dataclass(frozen=True, slots=True)
class PlannedRead:
    """One read of a file; its bytes go to places one after the other.

    A place is where it begins in the target, or ``GAP``, and its size.
    """

    file: str
    offset_bytes: int
    places: tuple[tuple[int, int], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class ExpertPlan:
    """Everything that one expert takes."""

    reads: tuple[PlannedRead, ...]
    """Of parts that lie in the file as they lie in the target."""
    woven: tuple[tuple[TensorEntry, MatrixLayout], ...]
    """Parts that are picked out of a block."""
    converted: tuple[tuple[TensorEntry, MatrixLayout], ...]
    """Parts that are published in another way than kernels take and put right."""
    widened: tuple[tuple[TensorEntry, MatrixLayout], ...]
    """Parts of 16 bits that lie in the second half of their place, until they are made f32."""


def is_converted(entry: TensorEntry) -> bool:
    """Whether a matrix is published in another way than kernels take and put right when read."""
    return entry.blocks is not None or entry.levels is not None or entry.gguf is not None


def plan_expert(entries: Mapping[ExpertPart, TensorEntry], layout: ExpertLayout) -> ExpertPlan:
    """Return how an expert with these parts is read into a target of a layout."""
    plain = [
        Extent(entry.file, entry.offset_bytes, entry.num_bytes, key)
        for key, entry in enumerate(entries[part] for part in _PARTS)
        if entry.weave is None and not is_converted(entry)
    ]
    reads = []
    for run in coalesce(plain):
        places: list[tuple[int, int]] = []
        for extent, gap_bytes in zip(run.extents, (*run.gaps_bytes, 0), strict=True):
            part = _PARTS[extent.key]
            places.append((_read_place(entries[part], layout[part]).offset_bytes, extent.num_bytes))
            if gap_bytes:
                places.append((GAP, gap_bytes))
        reads.append(PlannedRead(run.file, run.offset_bytes, tuple(places)))
    placed = [(entries[part], layout[part]) for part in _PARTS]
    return ExpertPlan(
        reads=tuple(reads),
        woven=tuple(
            (entry, _read_place(entry, place)) for entry, place in placed if entry.weave is not None
        ),
        converted=tuple(pair for pair in placed if is_converted(pair[0])),
        widened=tuple(
            (entry, place)
            for entry, place in placed
            if not is_converted(entry) and entry.format is not place.format
        ),
    )


def _read_place(entry: TensorEntry, place: MatrixLayout) -> MatrixLayout:
    """Return where a part is put as it was published: at the end of its place."""
    num_bytes = matrix_bytes(entry.format, place.rows, place.columns)
    begin = place.offset_bytes + place.num_bytes - num_bytes
    return MatrixLayout(entry.format, place.rows, place.columns, begin, num_bytes)
