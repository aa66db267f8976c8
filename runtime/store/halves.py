"""A record that two threads read half by half."""

from collections.abc import Callable

from runtime.spec.tensors import PAGE_BYTES
from runtime.store.files import WeightFiles


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
