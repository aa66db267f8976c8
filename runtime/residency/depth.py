"""How many reads a drive wants to have in flight at once, by its own curve. Pure."""

import statistics

DEPTHS = (1, 2, 4, 8)
USUAL_DEPTH = 4
"""What most drives want; taken until the curve is known."""
MIN_LAPS = 2
"""Laps of each depth before the curve counts."""
_ENOUGH_RATIO = 0.95
"""A smaller depth is chosen if it gives so much of the best rate: whoever comes next waits less."""


class DepthCurve:
    """Rates of laps of reads at several depths, and the depth to choose by them."""

    def __init__(self) -> None:
        self._rates: dict[int, list[float]] = {depth: [] for depth in DEPTHS}

    @property
    def next_depth(self) -> int:
        """The depth of which least is known."""
        return min(DEPTHS, key=lambda depth: len(self._rates[depth]))

    @property
    def best_depth(self) -> int:
        """The smallest depth that gives nearly the best rate, ``USUAL_DEPTH`` where unknown."""
        if any(len(rates) < MIN_LAPS for rates in self._rates.values()):
            return USUAL_DEPTH
        medians = {depth: statistics.median(rates) for depth, rates in self._rates.items()}
        enough = _ENOUGH_RATIO * max(medians.values())
        return min(depth for depth, rate in medians.items() if rate >= enough)

    def note(self, depth: int, num_bytes: int, seconds: float) -> None:
        """Take a lap into account; one that took no time tells nothing."""
        if seconds > 0:
            self._rates[depth].append(num_bytes / seconds)
