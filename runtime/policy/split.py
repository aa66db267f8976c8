"""Splitting slots between layers before anything runs."""

from collections.abc import Sequence


def even_split(num_layers: int, total_slots: int, max_slots: int) -> tuple[int, ...]:
    """Return the same number for every layer; what is left over goes to the first ones."""
    total_slots = min(total_slots, num_layers * max_slots)
    each, rest = divmod(total_slots, num_layers)
    return tuple(each + (layer < rest) for layer in range(num_layers))


def split_by_gain(
    hits: Sequence[Sequence[float]], total_slots: int, min_slots: int = 0
) -> tuple[int, ...]:
    """Return slots per layer, each next slot going where it adds the most hits.

    ``hits[layer][n]`` is what a layer hits with ``n`` slots; it does not fall with ``n``. Steps
    are taken as far as they pay best on average, so that a curve that starts flat is no trap.
    The best split where every curve bends down only, a good one otherwise.
    """
    slots = [min(min_slots, len(curve) - 1) for curve in hits]
    left = total_slots - sum(slots)
    if left < 0:
        raise ValueError(f"{total_slots} slots for {len(hits)} layers of at least {min_slots}")
    steps = [_best_step(curve, at, left) for curve, at in zip(hits, slots, strict=True)]
    while left > 0:
        layer = max(range(len(hits)), key=lambda index: (steps[index][0], -index))
        size = steps[layer][1]
        if not size:
            break
        slots[layer] += size
        left -= size
        for index, curve in enumerate(hits):
            if index == layer or steps[index][1] > left:
                steps[index] = _best_step(curve, slots[index], left)
    return tuple(slots)


def _best_step(curve: Sequence[float], at: int, max_step: int) -> tuple[float, int]:
    """Return the gain per slot and the size of the step that gains most per slot."""
    last = min(len(curve) - 1, at + max_step)
    choices = [((curve[to] - curve[at]) / (to - at), to - at) for to in range(at + 1, last + 1)]
    return max(choices, key=lambda choice: (choice[0], -choice[1]), default=(-1.0, 0))
