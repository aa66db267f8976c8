"""Joining wanted extents that lie close together into fewer, larger reads. Pure."""

import dataclasses
from collections.abc import Sequence

MAX_GAP_BYTES = 64 * 1024
"""Bytes between two extents that are read and thrown away rather than asked for separately."""
MAX_RUN_BYTES = 64 * 1024 * 1024
"""Largest read; an extent that is larger stays one read."""


@dataclasses.dataclass(frozen=True, slots=True)
class Extent:
    """A wanted range of a file; ``key`` is the caller's own name for it."""

    file: str
    offset_bytes: int
    num_bytes: int
    key: int

    @property
    def end_bytes(self) -> int:
        """First byte after the range."""
        return self.offset_bytes + self.num_bytes


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
    """One read that covers ``extents``, which ascend and do not overlap.

    ::

        | extent 0 | gap | extent 1 | extent 2 |
    """

    extents: tuple[Extent, ...]

    @property
    def file(self) -> str:
        """The file to read."""
        return self.extents[0].file

    @property
    def offset_bytes(self) -> int:
        """Where the read begins."""
        return self.extents[0].offset_bytes

    @property
    def num_bytes(self) -> int:
        """What the read takes, gaps included."""
        return self.extents[-1].end_bytes - self.offset_bytes

    @property
    def gaps_bytes(self) -> tuple[int, ...]:
        """Bytes between each extent and the next."""
        pairs = zip(self.extents, self.extents[1:], strict=False)
        return tuple(after.offset_bytes - before.end_bytes for before, after in pairs)


def coalesce(
    extents: Sequence[Extent],
    max_gap_bytes: int = MAX_GAP_BYTES,
    max_run_bytes: int = MAX_RUN_BYTES,
) -> list[Run]:
    """Return runs that cover every extent exactly once, in the order of files and offsets.

    Two neighbours of one file share a run if no more than ``max_gap_bytes`` lie between them and
    the run stays within ``max_run_bytes``. Extents that overlap are read separately.
    """
    groups: list[list[Extent]] = []
    for extent in sorted(extents, key=lambda item: (item.file, item.offset_bytes, item.key)):
        if groups and _fits(groups[-1], extent, max_gap_bytes, max_run_bytes):
            groups[-1].append(extent)
        else:
            groups.append([extent])
    return [Run(tuple(group)) for group in groups]


def _fits(group: list[Extent], extent: Extent, max_gap_bytes: int, max_run_bytes: int) -> bool:
    last = group[-1]
    return (
        last.file == extent.file
        and 0 <= extent.offset_bytes - last.end_bytes <= max_gap_bytes
        and extent.end_bytes - group[0].offset_bytes <= max_run_bytes
    )
