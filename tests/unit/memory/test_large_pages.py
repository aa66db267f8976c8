"""Slots and large pages: what is dropped really comes back to the system."""

import sys
from pathlib import Path

import pytest

from runtime.memory.arena import LARGE_PAGE_BYTES, Arena
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
