"""What every store of weights offers, and what its parts read files with."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from runtime.spec.tensors import ExpertId, ExpertLayout, TensorEntry


class ExpertStore(Protocol):
    """The weights of one model, readable expert by expert and tensor by tensor.

    Threads: ``read_expert`` and ``read_tensor`` may be called from several threads at once.
    """

    @property
    def layout(self) -> ExpertLayout:
        """How each expert lies in the buffers that ``read_expert`` fills, or the largest ones."""

    def layout_of(self, expert: ExpertId) -> ExpertLayout:
        """How one expert lies there: smaller than ``layout`` where some have fewer bits."""

    @property
    def dense_tensors(self) -> Mapping[str, TensorEntry]:
        """All tensors that are not routed experts, by their published name."""

    @property
    def num_bytes_read(self) -> int:
        """Bytes read from the drive so far, padding included."""

    @property
    def is_direct(self) -> bool:
        """Whether reads go past the system's cache, so that the drive really read every byte."""

    def place_of(self, expert: ExpertId) -> tuple[str, int]:
        """Return the file that an expert begins in, and at which byte."""

    def read_expert(self, expert: ExpertId, target: memoryview) -> None:
        """Fill ``target`` (at least its record's size, page-aligned) with one expert.

        Raises ``LarderError`` with ``DRIVE_READ_FAILED`` or ``STORE_DAMAGED`` naming file, offset
        and expert.
        """

    def read_tensor(self, entry: TensorEntry, target: memoryview) -> None:
        """Fill ``target`` (exactly ``entry.num_bytes`` long) with a dense tensor's bytes."""

    def tensor_pieces(self, entry: TensorEntry, room: memoryview) -> Iterator[memoryview]:
        """Read a dense tensor in pieces through ``room``; yield each as a part of it, in order.

        A piece is valid until the next. Damage is raised after the last one.
        """

    def close(self) -> None:
        """Close all files; may be called twice."""


class HalvedRead(Protocol):
    """One expert that is read in two halves, by two threads if two are there."""

    def read(self, half: int) -> None:
        """Read half 0 or half 1; raises as ``ExpertStore.read_expert`` does."""

    def check(self) -> None:
        """See, after both, that the expert is whole; raises as ``read_expert`` does."""


@runtime_checkable
class HalvingStore(Protocol):
    """A store whose experts lie in one piece each, so that they can be read in halves."""

    def halved(self, expert: ExpertId, target: memoryview) -> HalvedRead | None:
        """Return how to fill ``target`` as ``read_expert`` does; None for a small expert."""


class Reads(Protocol):
    """What reads ranges of files."""

    def read(self, path: str, offset_bytes: int, targets: list[memoryview]) -> None:
        """Fill ``targets`` with what begins at an offset."""


class LendingReads(Protocol):
    """What lends the bytes of files where they came to lie."""

    def lent(
        self, path: str, offset_bytes: int, num_bytes: int
    ) -> AbstractContextManager[memoryview]:
        """Read a range of at most ``MOST_LENT_BYTES`` for as long as the context lasts."""
