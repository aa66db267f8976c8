"""Slots in the memory of an accelerator that torch drives."""

from collections import deque
from collections.abc import Callable, Iterable

import torch

from runtime.device.base import Dropped
from runtime.errors import LarderError
from runtime.memory.ledger import Ledger
from runtime.protocol.errors import ErrorCode
from runtime.protocol.plan import MemoryPart

PIECE_BYTES = 64 * 1024 * 1024
"""What is asked for at once, where more than one slot fits. Torch gives what is larger than 10 MiB
a segment of its own, which alone it can give back to the system as soon as nobody uses it."""


class _Piece:
    """One allocation, cut into slots: their numbers by place, None where nobody lies."""

    def __init__(self, tensor: torch.Tensor, numbers: Iterable[int]) -> None:
        self.tensor = tensor
        self.places: list[int | None] = list(numbers)

    @property
    def num_taken(self) -> int:
        """How many places are taken."""
        return len(self.places) - self.places.count(None)


class TorchArena:
    """Slots in a device's memory, cut out of pieces that come and go whole.

    Slots that are dropped lie scattered over all pieces. Others move into their places, so that
    pieces become empty and what is dropped is free for other programs::

        | a . c d | . f . h | i . . l |    before
        | a i c d | l f h |                after

    Numbers of slots stay; numbers of dropped ones are given out again, the lowest first.
    """

    def __init__(
        self,
        ledger: Ledger,
        kind: MemoryPart,
        slot_bytes: int,
        torch_device: torch.device,
        trim: Callable[[], None],
    ) -> None:
        """Begin without slots; ``trim`` lets torch give back what it keeps for later."""
        self._ledger = ledger
        self._kind = kind
        self._slot_bytes = slot_bytes
        self._torch_device = torch_device
        self._trim = trim
        self._pieces: list[_Piece] = []
        self._where: dict[int, tuple[_Piece, int]] = {}
        self._dropped: list[int] = []

    @property
    def num_slots(self) -> int:
        """How many slots there are."""
        return len(self._where)

    def extend(self, num_slots: int) -> list[int]:
        """Make at most so many more slots, as many as one piece holds; return their numbers."""
        num_here = min(num_slots, max(1, PIECE_BYTES // self._slot_bytes))
        tensor = self._allocate(num_here)
        known = len(self._where) + len(self._dropped)
        fresh = num_here - len(self._dropped)
        numbers = [self._dropped.pop() for _ in range(min(num_here, len(self._dropped)))]
        numbers += range(known, known + max(0, fresh))
        self._hold(_Piece(tensor, numbers))
        return numbers

    def tensor(self, number: int) -> torch.Tensor:
        """Return the bytes of a slot."""
        piece, place = self._where[number]
        return piece.tensor[place * self._slot_bytes :][: self._slot_bytes]

    def drop(self, numbers: Iterable[int]) -> Dropped:
        """Give slots' memory back; if the card refuses room for the rest of a piece, it is lost."""
        for number in numbers:
            piece, place = self._where.pop(number)
            piece.places[place] = None
            self._dropped.append(number)
        self._dropped.sort(reverse=True)
        moved = self._fill_gaps()
        for piece in [each for each in self._pieces if not each.num_taken]:
            self._let_go(piece)
        lost: set[int] = set()
        for piece in [each for each in self._pieces if None in each.places]:
            kept = {number for number in piece.places if number is not None}
            moved |= kept
            if not self._cut_down(piece):
                lost |= kept
        return Dropped(sorted(moved - lost), sorted(lost))

    def close(self) -> None:
        """Drop all slots; may be called twice."""
        for piece in list(self._pieces):
            self._let_go(piece)
        self._where.clear()
        self._dropped.clear()

    def check(self) -> None:
        """Assert that slots are sound and counted, and that no piece has room that is unused."""
        assert self._ledger.by_kind()[self._kind] >= self.num_slots * self._slot_bytes
        numbers = sorted([*self._where, *self._dropped])
        assert numbers == list(range(len(numbers)))
        for piece in self._pieces:
            assert piece.tensor.numel() == len(piece.places) * self._slot_bytes
            assert piece.tensor.device.type == self._torch_device.type
            for place, number in enumerate(piece.places):
                assert number is not None
                assert self._where[number] == (piece, place)
        assert sum(len(piece.places) for piece in self._pieces) == self.num_slots

    def _allocate(self, num_slots: int) -> torch.Tensor:
        """Return memory for so many slots, counted; a refusal takes nothing."""
        num_bytes = num_slots * self._slot_bytes
        self._ledger.take(self._kind, num_bytes)
        try:
            return torch.empty(num_bytes, dtype=torch.uint8, device=self._torch_device)
        except torch.OutOfMemoryError as error:
            self._ledger.give_back(self._kind, num_bytes)
            raise LarderError(
                ErrorCode.VRAM_FULL, detail=str(error), device=str(self._torch_device)
            ) from error

    def _hold(self, piece: _Piece) -> None:
        self._pieces.append(piece)
        for place, number in enumerate(piece.places):
            if number is not None:
                self._where[number] = (piece, place)

    def _let_go(self, piece: _Piece) -> None:
        self._pieces.remove(piece)
        # Whoever still has the piece at hand does not hold its memory.
        del piece.tensor
        self._ledger.give_back(self._kind, len(piece.places) * self._slot_bytes)

    def _fill_gaps(self) -> set[int]:
        """Move slots out of the emptiest pieces into gaps of the fullest; return who moved."""
        moved: set[int] = set()
        order = sorted(self._pieces, key=lambda each: -each.num_taken)
        gaps = deque(
            (rank, place)
            for rank, piece in enumerate(order)
            for place, number in enumerate(piece.places)
            if number is None
        )
        for rank, source in reversed(list(enumerate(order))):
            for place, number in enumerate(source.places):
                if number is None:
                    continue
                if not gaps or gaps[0][0] >= rank:
                    return moved
                into, gap = gaps.popleft()
                target, left = order[into], self.tensor(number)
                target.places[gap], source.places[place] = number, None
                self._where[number] = (target, gap)
                self.tensor(number).copy_(left)
                moved.add(number)
        return moved

    def _cut_down(self, piece: _Piece) -> bool:
        """Put what lies in a piece into one of its size; return whether the card had that room.

        By way of the host, so that the two are never there together.
        """
        kept = [number for number in piece.places if number is not None]
        bytes_of = {number: self.tensor(number).to("cpu", copy=True) for number in kept}
        self._let_go(piece)
        for number in kept:
            del self._where[number]
        self._trim()
        try:
            tensor = self._allocate(len(kept))
        except LarderError:
            self._dropped = sorted([*self._dropped, *kept], reverse=True)
            return False
        self._hold(_Piece(tensor, kept))
        for number, data in bytes_of.items():
            self.tensor(number).copy_(data)
        return True
