"""Slots of a card cut out of pieces: what is dropped is free, what is kept keeps its bytes."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.multiprocessing.reductions import StorageWeakRef

from runtime.device import torch_arena
from runtime.device.torch_arena import TorchArena
from runtime.memory.ledger import Ledger
from runtime.protocol.plan import MemoryPart

SLOT_BYTES = 8
PER_PIECE = 4


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    # The one that tests use too: what another one had undone first would come back with it.
    monkeypatch.setattr(torch_arena, "PIECE_BYTES", PER_PIECE * SLOT_BYTES + 3)


class Bench:
    """An arena, and what has to lie in it."""

    def __init__(self, limit_bytes: int = 1 << 20) -> None:
        self.ledger = Ledger(limit_bytes)
        self.num_trims = 0
        self.arena = TorchArena(
            self.ledger, MemoryPart.EXPERTS, SLOT_BYTES, torch.device("cpu"), self._trim
        )
        self.values: dict[int, int] = {}
        self._last = 0

    def extend(self, num_slots: int) -> list[int]:
        """Make slots, each with bytes of its own."""
        numbers: list[int] = []
        while len(numbers) < num_slots:
            numbers += self.arena.extend(num_slots - len(numbers))
        for number in numbers:
            assert number not in self.values
            self._last = (self._last + 1) % 251
            self.values[number] = self._last
            self.arena.tensor(number).fill_(self._last)
        return numbers

    def drop(self, numbers: list[int]) -> list[int]:
        """Drop slots; those that are told to have moved, and no others, lie elsewhere."""
        before = {number: self.arena.tensor(number).data_ptr() for number in self.values}
        dropped = self.arena.drop(numbers)
        moved = dropped.moved
        assert not dropped.lost
        for number in numbers:
            del self.values[number]
        for number in set(self.values) - set(moved):
            assert self.arena.tensor(number).data_ptr() == before[number]
        return moved

    def check(self) -> None:
        """Assert that all bytes are there, and that nothing but them is held."""
        self.arena.check()
        assert self.arena.num_slots == len(self.values)
        assert self.ledger.held_bytes == len(self.values) * SLOT_BYTES
        for number, value in self.values.items():
            assert self.arena.tensor(number).tolist() == [value] * SLOT_BYTES

    def _trim(self) -> None:
        self.num_trims += 1


def test_scattered_slots_that_are_dropped_free_whole_pieces() -> None:
    bench = Bench()
    numbers = bench.extend(4 * PER_PIECE)
    assert len(bench.arena._pieces) == 4
    places = {number: bench.arena.tensor(number).data_ptr() for number in numbers}

    moved = bench.drop(numbers[::2])

    assert len(bench.arena._pieces) == 2
    assert bench.num_trims == 0, "whole pieces went"
    assert len(moved) == PER_PIECE, "no slot of the pieces that stay had to move"
    assert all(bench.arena.tensor(number).data_ptr() in places.values() for number in moved)
    bench.check()


def test_rest_of_a_piece_gets_a_piece_of_its_size() -> None:
    bench = Bench()
    numbers = bench.extend(2 * PER_PIECE)

    moved = bench.drop(numbers[1:4])

    assert sorted(len(piece.places) for piece in bench.arena._pieces) == [1, PER_PIECE]
    assert bench.num_trims == 1
    assert moved
    bench.check()
    assert bench.extend(5) == [1, 2, 3, 8, 9], "the lowest numbers come first"
    bench.check()
    assert bench.drop(list(bench.values)) == []
    assert bench.ledger.held_bytes == 0
    bench.check()


def test_slots_larger_than_a_piece_come_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_arena, "PIECE_BYTES", SLOT_BYTES - 1)
    bench = Bench()
    assert bench.arena.extend(3) == [0]
    bench.arena.close()
    assert bench.ledger.held_bytes == 0


def test_rest_that_the_card_refuses_is_lost_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    numbers = bench.extend(2 * PER_PIECE)

    def fail(*arguments: object, **more: object) -> torch.Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr("runtime.device.torch_arena.torch.empty", fail)
    dropped = bench.arena.drop(numbers[1:4])

    assert len(dropped.lost) == 1
    assert not set(dropped.lost) & set(dropped.moved)
    assert bench.arena.num_slots == PER_PIECE
    assert bench.ledger.held_bytes == PER_PIECE * SLOT_BYTES
    bench.arena.check()
    bench.arena.close()


def test_piece_and_the_one_for_its_rest_are_never_there_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench()
    numbers = bench.extend(2 * PER_PIECE)
    before = [StorageWeakRef(each.tensor.untyped_storage()) for each in bench.arena._pieces]
    empty, num_left = torch.empty, []

    def count(*arguments: Any, **more: Any) -> torch.Tensor:
        num_left.append(sum(not each.expired() for each in before))
        return empty(*arguments, **more)

    monkeypatch.setattr("runtime.device.torch_arena.torch.empty", count)
    bench.arena.drop(numbers[1:4])
    assert num_left == [1], "the piece that nobody left"


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 11), st.integers(0, 1 << 30)), max_size=12))
def test_slots_keep_their_bytes_whatever_comes_and_goes(
    steps: list[tuple[bool, int, int]],
) -> None:
    bench = Bench()
    for is_more, count, seed in steps:
        if is_more:
            bench.extend(count)
        else:
            order = torch.randperm(len(bench.values), generator=torch.Generator().manual_seed(seed))
            numbers = list(bench.values)
            bench.drop([numbers[index] for index in order[:count].tolist()])
        bench.check()
    bench.arena.close()
    assert bench.ledger.held_bytes == 0
