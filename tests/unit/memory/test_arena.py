import sys

import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import LarderError
from runtime.memory.arena import Arena
from runtime.memory.ledger import Ledger
from runtime.protocol.errors import ErrorCode
from runtime.protocol.plan import MemoryPart
from runtime.spec.tensors import PAGE_BYTES

ROOM_BYTES = 64 * 1024 * 1024


@given(num_slots=st.integers(1, 9), slot_bytes=st.integers(1, 3 * PAGE_BYTES + 1))
def test_arena_any_shape_slots_hold_their_own_bytes(num_slots: int, slot_bytes: int) -> None:
    ledger = Ledger(ROOM_BYTES)
    with Arena(ledger, MemoryPart.EXPERTS, num_slots, slot_bytes) as arena:
        arena.check()
        assert ledger.held_bytes == arena.num_bytes >= num_slots * slot_bytes
        for index in range(num_slots):
            arena.slot(index)[:] = bytes([index + 1]) * slot_bytes
        for index in range(num_slots):
            assert arena.slot(index) == bytes([index + 1]) * slot_bytes
    arena.check()
    assert ledger.held_bytes == 0


def test_arena_above_budget_refused_before_anything_is_mapped() -> None:
    ledger = Ledger(PAGE_BYTES * 10)

    with pytest.raises(LarderError) as refused:
        Arena(ledger, MemoryPart.KV_CACHE, 11, 1)

    assert refused.value.code is ErrorCode.RAM_BUDGET_TOO_SMALL
    assert ledger.held_bytes == 0


def test_arena_impossible_size_becomes_out_of_memory_and_is_given_back() -> None:
    ledger = Ledger(2**62)

    with pytest.raises(LarderError) as refused:
        Arena(ledger, MemoryPart.EXPERTS, 2**20, 2**40)

    assert refused.value.code is ErrorCode.OUT_OF_MEMORY
    assert ledger.held_bytes == 0


def test_arena_closed_twice_gives_back_once() -> None:
    ledger = Ledger(ROOM_BYTES)
    other = Arena(ledger, MemoryPart.DENSE, 1, PAGE_BYTES)
    arena = Arena(ledger, MemoryPart.DENSE, 2, PAGE_BYTES)

    arena.close()
    arena.close()

    assert ledger.held_bytes == other.num_bytes
    with pytest.raises(ValueError, match="closed"):
        arena.slot(0)
    other.close()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows frees pages with the last view")
def test_arena_closed_with_a_view_alive_frees_its_pages() -> None:
    num_bytes = 48 * 1024 * 1024
    arena = Arena(Ledger(ROOM_BYTES), MemoryPart.EXPERTS, 1, num_bytes)
    view = np.frombuffer(arena.slot(0), np.uint8)
    view[:] = 1
    before_bytes = psutil.Process().memory_info().rss

    arena.close()

    assert psutil.Process().memory_info().rss < before_bytes - num_bytes // 2
    assert len(view) == num_bytes


@pytest.mark.parametrize(("num_slots", "slot_bytes"), [(0, 1), (1, 0), (-1, 8)])
def test_arena_without_room_is_refused(num_slots: int, slot_bytes: int) -> None:
    with pytest.raises(ValueError, match="an arena of"):
        Arena(Ledger(ROOM_BYTES), MemoryPart.WORK, num_slots, slot_bytes)
