"""A store whose drive is made out to be slower than it is."""

import os
from collections.abc import Iterator, Mapping

from runtime.hardware.pace import Pace, PaceClock
from runtime.hardware.profile import profile_of
from runtime.spec.tensors import ExpertId, ExpertLayout, TensorEntry
from runtime.store.base import ExpertStore


class ThrottledStore:
    """A store of which all reads together are no faster than a drive of that speed.

    What is read, and every error, are those of the store within; see ``ExpertStore``.
    """

    def __init__(
        self, store: ExpertStore, bytes_per_s: float, clock: PaceClock | None = None
    ) -> None:
        self._store = store
        self._pace = Pace(bytes_per_s, clock)

    @property
    def layout(self) -> ExpertLayout:
        """How each expert lies in the buffers that ``read_expert`` fills."""
        return self._store.layout

    def layout_of(self, expert: ExpertId) -> ExpertLayout:
        """How one expert lies there."""
        return self._store.layout_of(expert)

    @property
    def dense_tensors(self) -> Mapping[str, TensorEntry]:
        """All tensors that are not routed experts."""
        return self._store.dense_tensors

    @property
    def num_bytes_read(self) -> int:
        """Bytes read from the drive so far."""
        return self._store.num_bytes_read

    @property
    def is_direct(self) -> bool:
        """Whether reads go past the system's cache."""
        return self._store.is_direct

    def place_of(self, expert: ExpertId) -> tuple[str, int]:
        """Return the file that an expert begins in, and at which byte."""
        return self._store.place_of(expert)

    def read_expert(self, expert: ExpertId, target: memoryview) -> None:
        """Fill ``target`` with one expert, no sooner than the drive's speed allows."""
        num_bytes = self._store.layout_of(expert).record_bytes
        self._pace.move(num_bytes, lambda: self._store.read_expert(expert, target))

    def read_tensor(self, entry: TensorEntry, target: memoryview) -> None:
        """Fill ``target`` with a dense tensor's bytes, no sooner than the drive's speed allows."""
        self._pace.move(entry.num_bytes, lambda: self._store.read_tensor(entry, target))

    def tensor_pieces(self, entry: TensorEntry, room: memoryview) -> Iterator[memoryview]:
        """Read a dense tensor in pieces, each no sooner than the drive's speed allows."""
        for piece in self._store.tensor_pieces(entry, room):
            self._pace.move(piece.nbytes, lambda: None)
            yield piece

    def close(self) -> None:
        """Close all files; may be called twice."""
        self._store.close()


def throttled(store: ExpertStore, env: Mapping[str, str] | None = None) -> ExpertStore:
    """Return a store as slow as the machine profile in force makes its drive, else itself."""
    profile = profile_of(os.environ if env is None else env)
    most = None if profile is None else profile.drive_most_bytes_per_s
    return store if most is None else ThrottledStore(store, most)
