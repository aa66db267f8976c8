"""Slow, plain models of ranking policies: every worth computed anew from the whole history."""

import itertools
import math
from collections.abc import Callable, Sequence

Step = Sequence[int]
Worth = Callable[[Sequence[Step], int], float]
"""From all steps so far, the present one last, and an expert."""


def last_use(history: Sequence[Step], expert: int, before: int = 0) -> int:
    """Return the number of the last step that needed an expert, from 1; 0 for none."""
    times = [number for number, step in enumerate(history, start=1) if expert in step]
    return times[-1 - before] if len(times) > before else 0


def lru_2(history: Sequence[Step], expert: int) -> float:
    return last_use(history, expert, 1) * (1 << 26) + last_use(history, expert)


def lfru(history: Sequence[Step], expert: int) -> float:
    uses = sum(expert in step for step in history)
    return uses / (len(history) - last_use(history, expert) + 1)


def lfu(halving_steps: int) -> Worth:
    def worth(history: Sequence[Step], expert: int) -> float:
        now = (len(history) - 1) // halving_steps
        return sum(
            0.5 ** (now - index // halving_steps)
            for index, step in enumerate(history)
            if expert in step
        )

    return worth


def decayed(decay: float) -> Worth:
    def worth(history: Sequence[Step], expert: int) -> float:
        age = len(history) - 1
        return math.fsum(
            (1 - decay) * decay ** (age - index)
            for index, step in enumerate(history)
            if expert in step
        )

    return worth


def followers(history: Sequence[Step], num_experts: int, rate: float) -> list[list[float]]:
    """Return the table of who follows whom that all steps but the present one taught."""
    table = [[0.0] * num_experts for _ in range(num_experts)]
    seen = [0] * num_experts
    for first, then in itertools.pairwise(history[:-1]):
        if max(len(first), len(then)) > num_experts // 2:
            continue
        for expert in first:
            seen[expert] += 1
            step = max(rate, 1 / (seen[expert] + 1))
            for other in range(num_experts):
                table[expert][other] += step * ((other in then) - table[expert][other])
    return table


def expected_use(
    num_experts: int,
    decays: Sequence[float] = (0.5, 0.9, 0.99),
    weights: Sequence[float] = (0.15, 0.25, 0.6),
    follower_weight: float = 2.0,
    rate: float = 0.03,
) -> Worth:
    def worth(history: Sequence[Step], expert: int) -> float:
        shares = sum(
            weight * decayed(decay)(history, expert)
            for decay, weight in zip(decays, weights, strict=True)
        )
        table = followers(history, num_experts, rate)
        follow = sum(table[first][expert] for first in history[-1])
        return shares + follower_weight * follow / len(history[-1])

    return worth
