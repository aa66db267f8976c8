"""One allocation cut into page-aligned slots of one size."""

import contextlib
import ctypes
import mmap
import sys
from types import TracebackType
from typing import Self

import torch

from runtime.errors import LarderError
from runtime.memory.large_pages import LARGE_PAGE_BYTES, Span
from runtime.memory.ledger import Ledger
from runtime.protocol.errors import ErrorCode
from runtime.protocol.plan import MemoryPart
from runtime.spec.tensors import PAGE_BYTES


class Arena:
    """``num_slots`` slots of ``slot_bytes`` each, rounded up to whole pages, in one mapping.

    The bytes are taken from the ledger before they are mapped and given back by ``close``. The
    mapping is private and anonymous: pages come into being when they are written first. Large
    pages are asked for where the system has them and a mapping could fill one: a large page that
    small neighbours share is not given back before the last of them is dropped::

        address            + slot_stride_bytes
        | slot 0 ......|pad| slot 1 ......|pad| ...

    Threads: made and closed by the engine thread; slots are filled by whoever was handed them.
    """

    def __init__(self, ledger: Ledger, kind: MemoryPart, num_slots: int, slot_bytes: int) -> None:
        if num_slots < 1 or slot_bytes < 1:
            raise ValueError(f"an arena of {num_slots} slots of {slot_bytes} bytes")
        self._ledger = ledger
        self._kind = kind
        self._num_slots = num_slots
        self._slot_bytes = slot_bytes
        self._stride_bytes = -(-slot_bytes // PAGE_BYTES) * PAGE_BYTES
        ledger.take(kind, self.num_bytes)
        try:
            self._mapping = _map_private(self.num_bytes)
        except OSError as error:
            ledger.give_back(kind, self.num_bytes)
            raise LarderError(ErrorCode.OUT_OF_MEMORY, detail=str(error)) from error
        whole = memoryview(self._mapping)
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._mapping))
        self._slots = [
            whole[start : start + slot_bytes]
            for start in range(0, self.num_bytes, self._stride_bytes)
        ]
        self._whole = whole
        self._is_open = True

    @property
    def num_slots(self) -> int:
        """How many slots there are."""
        return self._num_slots

    @property
    def slot_bytes(self) -> int:
        """Usable bytes of one slot."""
        return self._slot_bytes

    @property
    def num_bytes(self) -> int:
        """What the arena takes from its budget, padding included."""
        return self._num_slots * self._stride_bytes

    @property
    def span(self) -> Span:
        """Where all of it lies, or lay."""
        return self._address, self.num_bytes

    @property
    def is_open(self) -> bool:
        """Whether the slots may be used."""
        return self._is_open

    def slot(self, index: int) -> memoryview:
        """Return the writable bytes of a slot; valid until ``close``."""
        if not self._is_open:
            raise ValueError("the arena is closed")
        return self._slots[index]

    def tensor(self, index: int) -> torch.Tensor:
        """Return the same bytes as a tensor."""
        return torch.frombuffer(self.slot(index), dtype=torch.uint8)

    def address(self, index: int) -> int:
        """Return where a slot lies in memory, a multiple of ``PAGE_BYTES``."""
        if not (self._is_open and 0 <= index < self._num_slots):
            raise ValueError(f"slot {index} of {self._num_slots}, open: {self._is_open}")
        return self._address + index * self._stride_bytes

    def close(self) -> None:
        """Give the memory back to the system and the ledger; may be called twice.

        The pages are freed even where somebody still holds a view of a slot; such a view reads
        zeros from then on.
        """
        if not self._is_open:
            return
        self._is_open = False
        _free_pages(self._mapping)
        self._slots.clear()
        self._whole.release()
        with contextlib.suppress(BufferError):
            # A tensor over a slot may still be referenced; the empty mapping goes with it.
            self._mapping.close()
        self._ledger.give_back(self._kind, self.num_bytes)

    def check(self) -> None:
        """Assert that slots are aligned, disjoint, inside the mapping, and counted."""
        assert self._ledger.by_kind()[self._kind] >= (self.num_bytes if self._is_open else 0)
        if not self._is_open:
            assert not self._slots
            return
        assert len(self._slots) == self._num_slots
        assert len(self._mapping) == self.num_bytes
        end = self._address
        for index, view in enumerate(self._slots):
            start = ctypes.addressof(ctypes.c_char.from_buffer(view))
            assert start == self.address(index)
            assert start % PAGE_BYTES == 0
            assert start >= end
            assert len(view) == self._slot_bytes
            end = start + len(view)
        assert end <= self._address + self.num_bytes

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _map_private(num_bytes: int) -> mmap.mmap:
    """Return a private anonymous mapping, with large pages advised if it could fill one."""
    if sys.platform == "win32":
        return mmap.mmap(-1, num_bytes)
    mapping = mmap.mmap(-1, num_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if sys.platform == "linux" and num_bytes >= LARGE_PAGE_BYTES:
        with contextlib.suppress(OSError):
            # A kernel without large pages refuses: ordinary ones do.
            mapping.madvise(mmap.MADV_HUGEPAGE)
    return mapping


def _free_pages(mapping: mmap.mmap) -> None:
    """Return the pages of a mapping to the system now."""
    if sys.platform != "win32":
        mapping.madvise(mmap.MADV_DONTNEED)
