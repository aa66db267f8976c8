"""How long trials still take, from those that were made; pure, seconds are arguments."""

from collections.abc import Iterable, Mapping


class TrialPace:
    """What one trial takes to read its tokens, and what rounding takes for a weight.

    Groups differ a hundredfold in weights, so a mean over trials would tell nothing.
    """

    def __init__(self, weights: Mapping[str, int]) -> None:
        """``weights`` are those of each group."""
        self._weights = weights
        self._num_tried = 0
        self._num_weights = 0
        self._reading_s = 0.0
        self._rounding_s = 0.0

    def note(self, group: str, seconds: float, rounding_s: float) -> None:
        """Take note of what the trial of a group took, and how much of that rounding did."""
        self._num_tried += 1
        self._num_weights += self._weights[group]
        self._reading_s += seconds - rounding_s
        self._rounding_s += rounding_s

    def seconds_left(self, groups: Iterable[str], spent_s: float) -> float | None:
        """Return what groups still take, the first of which has had so much already.

        None until a trial was made.
        """
        if not self._num_tried:
            return None
        weights = [self._weights[group] for group in groups]
        reading_s = len(weights) * self._reading_s / self._num_tried
        rounding_s = sum(weights) * self._rounding_s / max(1, self._num_weights)
        return max(0.0, reading_s + rounding_s - spent_s)
