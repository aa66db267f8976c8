"""Slots and large pages: what is dropped really comes back to the system."""

import mmap
import sys
from pathlib import Path

import pytest

from runtime.memory.arena import Arena
from runtime.memory.large_pages import LARGE_PAGE_BYTES, gather
from runtime.memory.ledger import Ledger
from runtime.protocol.plan import MemoryPart

ROOM_BYTES = 64 * 1024 * 1024


def advised_large_pages(address: int) -> bool:
    """Return whether large pages are advised for the mapping around an address."""
    is_around = False
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines():
        name, _, rest = line.partition(" ")
        if name.endswith(":"):
            if is_around and name == "VmFlags:":
                return "hg" in rest.split()
        else:
            start, _, end = name.partition("-")
            is_around = int(start, 16) <= address < int(end, 16)
    raise AssertionError(f"nothing is mapped at {address:#x}")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux is asked for large pages")
@pytest.mark.parametrize(
    ("slot_bytes", "is_advised"), [(110 * 1024, False), (4 * LARGE_PAGE_BYTES, True)]
)
def test_arena_smaller_than_a_large_page_shares_none(slot_bytes: int, is_advised: bool) -> None:
    with Arena(Ledger(ROOM_BYTES), MemoryPart.EXPERTS, 1, slot_bytes) as arena:
        assert advised_large_pages(arena.address(0)) == is_advised


def large_bytes(start: int, end: int) -> int:
    """Return how much between two addresses lies in large pages."""
    found = 0
    is_within = False
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines():
        name, _, rest = line.partition(" ")
        if not name.endswith(":"):
            low, _, high = name.partition("-")
            is_within = int(low, 16) < end and start < int(high, 16)
        elif is_within and name == "AnonHugePages:":
            found += int(rest.split()[0]) * 1024
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux is asked for large pages")
def test_gather_keeps_the_bytes_of_a_filled_arena() -> None:
    with Arena(Ledger(ROOM_BYTES), MemoryPart.EXPERTS, 1, 8 * LARGE_PAGE_BYTES) as arena:
        arena._mapping.madvise(mmap.MADV_NOHUGEPAGE)
        content = bytes(range(256)) * (arena.slot_bytes // 256)
        arena.slot(0)[:] = content
        start, num_bytes = arena.span
        assert large_bytes(start, start + num_bytes) == 0
        arena._mapping.madvise(mmap.MADV_HUGEPAGE)
        num_large = gather([arena.span])
        # How many there are is the system's to say, and whether it can do it at all.
        assert large_bytes(start, start + num_bytes) >= num_large * LARGE_PAGE_BYTES
        assert arena.slot(0) == content
