"""Experts that two threads read half by half."""

from collections.abc import Callable, Sequence

from runtime.spec.tensors import PAGE_BYTES, ROW_BLOCK, MatrixLayout, TensorEntry
from runtime.store.files import WeightFiles
from runtime.store.gguf_rows import repack_into

MIN_HALVED_BYTES = 1 << 20
"""Smaller experts are not read in halves: a request costs as much as what it reads."""


class HalvedRecord:
    """One record of whole pages; see ``HalvedRead``.

    Threads: each half may be read in its own, and ``check`` by whoever ended last.
    """

    def __init__(
        self,
        files: WeightFiles,
        path: str,
        offset_bytes: int,
        target: memoryview,
        verify: Callable[[], None],
    ) -> None:
        self._files = files
        self._path = path
        self._offset_bytes = offset_bytes
        middle = target.nbytes // 2 // PAGE_BYTES * PAGE_BYTES
        self._halves = ((0, target[:middle]), (middle, target[middle:]))
        self._verify = verify

    def read(self, half: int) -> None:
        """Read half 0 or half 1."""
        begin, target = self._halves[half]
        self._files.read(self._path, self._offset_bytes + begin, [target])

    def check(self) -> None:
        """See that the whole is what was written."""
        self._verify()


class HalvedMatrices:
    """An expert whose matrices the extension puts right: half of the rows of each in a half.

    Threads: each half may be read in its own, and ``check`` by whoever ended last.
    """

    def __init__(
        self,
        files: WeightFiles,
        placed: Sequence[tuple[TensorEntry, MatrixLayout]],
        target: memoryview,
        read_whole: Callable[[], None],
    ) -> None:
        """``read_whole`` reads what the extension refused, and says what is wrong with it."""
        self._files = files
        self._placed = placed
        self._target = target
        self._read_whole = read_whole
        self._is_right = [False, False]

    def read(self, half: int) -> None:
        """Read half 0 or half 1."""
        self._is_right[half] = all(
            repack_into(
                self._files,
                entry,
                place.format,
                self._target[place.offset_bytes :],
                _half_of(place.rows, half),
            )
            for entry, place in self._placed
        )

    def check(self) -> None:
        """See that both halves were put right, or do so plainly."""
        if not all(self._is_right):
            self._read_whole()


def _half_of(rows: int, half: int) -> range:
    middle = rows // 2 // ROW_BLOCK * ROW_BLOCK
    return range(rows)[:middle] if half == 0 else range(rows)[middle:]
