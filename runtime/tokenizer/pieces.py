"""Merges of a byte-pair vocabulary, found again from its pieces and their order."""

from collections.abc import Callable, Mapping
from typing import TypeVar

MAX_PIECE_LENGTH = 512
"""A longer piece is none; finding merges takes time with the square of it."""

_Piece = TypeVar("_Piece", str, bytes)


def merges_of(ranks: Mapping[_Piece, int], spell: Callable[[_Piece], str]) -> list[tuple[str, str]]:
    """Return all pairs of pieces that make another, the lowest rank of what they make first.

    Of pairs that make the same the one with the lower ranks comes first. ``spell`` writes a piece
    as the tokenizers library does.
    """
    found: list[tuple[int, int, int, _Piece, _Piece]] = []
    for piece, rank in ranks.items():
        for cut in range(1, len(piece)):
            left, right = piece[:cut], piece[cut:]
            left_rank, right_rank = ranks.get(left), ranks.get(right)
            if left_rank is not None and right_rank is not None:
                found.append((rank, left_rank, right_rank, left, right))
    found.sort()
    return [(spell(left), spell(right)) for _, _, _, left, right in found]
