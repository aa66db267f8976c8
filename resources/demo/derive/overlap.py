"""Whether a text that measures was also a text that taught: runs of tokens that both have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from resources.demo.derive.measure import HeldOutRow

RUN_TOKENS = 32
"""More than what every chat begins with, and far more than two texts share by chance."""

Run = tuple[int, ...]


def overlapping_rows(
    training: Iterable[Sequence[int]], held_out: Iterable[HeldOutRow], run_tokens: int = RUN_TOKENS
) -> list[HeldOutRow]:
    """Return the held-out rows that have a run of tokens in common with a training text."""
    taught = {run for ids in training for run in _runs(ids, run_tokens)}
    return [row for row in held_out if any(run in taught for run in _runs(row.ids, run_tokens))]


def _runs(ids: Sequence[int], run_tokens: int) -> Iterator[Run]:
    """Every run of this length, at whatever place it begins."""
    for at in range(len(ids) - run_tokens + 1):
        yield tuple(ids[at : at + run_tokens])
