"""Which experts of a prompt are copied to the card for once, and which the processor computes."""

import dataclasses
from collections.abc import Collection, Sequence


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CopyCosts:
    """Seconds of the pieces of a layer while a prompt is read."""

    expert_s: float = 0.0
    """The processor's part of an expert that does not depend on its rows."""
    row_s: float
    """The processor computes one row of an expert."""
    copy_s: float
    """An expert goes over the link."""
    card_s: float = 0.0
    """The card computes an expert, its rows all at once."""


def lasts_s(rows: Sequence[int], copied: Collection[int], costs: CopyCosts) -> float:
    """Return what a layer takes whose experts have so many rows each and of which some are copied.

    The processor computes the others meanwhile. Copies go one after the other, and the card
    computes each when it is there.
    """
    here_s = sum(
        costs.expert_s + number * costs.row_s
        for index, number in enumerate(rows)
        if index not in copied
    )
    if not copied:
        return here_s
    slower_s, faster_s = max(costs.copy_s, costs.card_s), min(costs.copy_s, costs.card_s)
    return max(here_s, len(copied) * slower_s + faster_s)


def choose_copied(rows: Sequence[int], costs: CopyCosts) -> frozenset[int]:
    """Return those whose copies let the layer end soonest; of equal choices the fewest copies.

    What copies take depends on their number alone, so that of each number those with the most rows
    are the best.
    """
    order = sorted(range(len(rows)), key=lambda index: (-rows[index], index))
    choices = [order[:number] for number in range(len(order) + 1)]
    best = min(choices, key=lambda copied: (lasts_s(rows, frozenset(copied), costs), len(copied)))
    return frozenset(best)
