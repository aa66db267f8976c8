"""Choosing the format of each part of a model under a number of bytes."""

import dataclasses
import heapq
from collections.abc import Hashable, Mapping, Sequence
from typing import Generic, TypeVar

from runtime.protocol.values import WeightFormat

WORTH = 0.1
"""A mix that promises less than this is not told from one format by measuring."""
Name = TypeVar("Name", bound=Hashable)


@dataclasses.dataclass(frozen=True, slots=True)
class Choice:
    """One format that a part could have: what it takes, and what it spoils."""

    format: WeightFormat
    num_bytes: int
    error: float


@dataclasses.dataclass(frozen=True, slots=True)
class Part(Generic[Name]):
    """One part of a model with its choices, of which there is at least one."""

    name: Name
    choices: Sequence[Choice]


def choose_mix(
    parts: Sequence[Part[Name]], budget_bytes: int
) -> Mapping[Name, WeightFormat] | None:
    """Return a format for each part; None if the smallest ones take more than the budget.

    All begin with their smallest choice. Then whatever gains most for a byte comes next, until
    nothing that would gain has room. Errors are added up; of choices that are no use (another one
    takes no more and errs less, or lies on the way to one that gains more for a byte) nothing is
    taken. Equal gains are taken in the order of the parts, so that the same call always gives the
    same answer.
    """
    steps = [_steps(part.choices) for part in parts]
    left = budget_bytes - sum(each[0].num_bytes for each in steps)
    if left < 0:
        return None
    taken = [0] * len(parts)
    waiting = [_next(index, each, 0) for index, each in enumerate(steps) if len(each) > 1]
    heapq.heapify(waiting)
    while waiting:
        _, index, place = heapq.heappop(waiting)
        more = steps[index][place].num_bytes - steps[index][taken[index]].num_bytes
        if more > left:
            # It may be that a smaller part still has room.
            continue
        left -= more
        taken[index] = place
        if place + 1 < len(steps[index]):
            heapq.heappush(waiting, _next(index, steps[index], place))
    return {
        part.name: each[place].format for part, each, place in zip(parts, steps, taken, strict=True)
    }


def choose_formats(
    parts: Sequence[Part[Name]], budget_bytes: int, unavoidable: float
) -> Mapping[Name, WeightFormat] | None:
    """Return a format for each part, the same for all unless a mix is worth it.

    ``unavoidable`` is what even the smallest change brings, measured as errors are. A mix has to
    promise less than the best single format that has room, by ``WORTH`` of all that this one
    brings; so what is chosen is never worse than a single format, by the sum of errors. None if the
    smallest formats take more than the budget.
    """
    mix = choose_mix(parts, budget_bytes)
    alone = _best_alone(parts, budget_bytes)
    if mix is None or alone is None:
        return mix
    errors = {(part.name, one.format): one.error for part in parts for one in part.choices}
    mixed = sum(errors[part.name, mix[part.name]] for part in parts)
    best, best_error = alone
    if best_error - mixed > WORTH * (best_error + unavoidable):
        return mix
    return {part.name: best for part in parts}


def _best_alone(
    parts: Sequence[Part[Name]], budget_bytes: int
) -> tuple[WeightFormat, float] | None:
    """Return the one format for all that has room and errs least, and its error."""
    sums: dict[WeightFormat, tuple[int, int, float]] = {}
    for part in parts:
        for one in part.choices:
            count, num_bytes, error = sums.get(one.format, (0, 0, 0.0))
            sums[one.format] = count + 1, num_bytes + one.num_bytes, error + one.error
    fitting = [
        (error, num_bytes, each)
        for each, (count, num_bytes, error) in sums.items()
        if count == len(parts) and num_bytes <= budget_bytes
    ]
    if not fitting:
        return None
    error, _, best = min(fitting)
    return best, error


def _next(index: int, steps: Sequence[Choice], place: int) -> tuple[float, int, int]:
    """Return the next step of a part in the order in which steps are taken."""
    return -_gain(steps[place], steps[place + 1]), index, place + 1


def _steps(choices: Sequence[Choice]) -> list[Choice]:
    """Return the choices that are worth taking, growing; each gains less for a byte than before."""
    kept: list[Choice] = []
    for each in sorted(choices, key=lambda one: (one.num_bytes, one.error)):
        if kept and each.error >= kept[-1].error:
            continue
        while len(kept) > 1 and _gain(kept[-2], kept[-1]) <= _gain(kept[-1], each):
            kept.pop()
        kept.append(each)
    return kept


def _gain(before: Choice, after: Choice) -> float:
    return (before.error - after.error) / (after.num_bytes - before.num_bytes)
