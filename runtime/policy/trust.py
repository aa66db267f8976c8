"""Whether expectations are believed: they have to hit no less than an even LRU would."""

import dataclasses
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True, slots=True)
class Doubt:
    """When expectations are doubted, and for how long; counted in steps of all layers.

    A step whose needs all missed while an LRU would have hit them all costs one.
    """

    max_loss: float = 1.5
    """So much less than an LRU hits in all ends the belief."""
    max_loss_alone: float = 1.5
    """So much more may be lost by one layer, by half of it two: few layers go up and down more."""
    max_credit: float = 16.0
    """So much of what was hit more before may be lost first."""
    pause_steps: int = 128
    """For so long the last use decides, after the first time."""
    pause_factor: int = 4
    """How much longer each pause is than the one before."""
    loss_factor: float = 0.5
    """How much less may be lost at each further chance, so that all losses have a bound."""


class Trust:
    """Runs an LRU of even slots beside the policies of all layers, and compares their hits.

    The LRU holds numbers alone. A step costs it some operations on a small dictionary.
    """

    def __init__(self, num_layers: int, doubt: Doubt | None = None) -> None:
        self._doubt = Doubt() if doubt is None else doubt
        self._recent: list[dict[int, None]] = [{} for _ in range(num_layers)]
        self._max_loss = self._doubt.max_loss + self._doubt.max_loss_alone / num_layers
        self._num_slots = 0
        self._num_needs = 0
        self._num_ahead = 0
        self.loss = 0.0
        """What was hit less than by the LRU, in steps; below zero if it was more."""
        self._pause_steps = self._doubt.pause_steps
        self._num_left = 0

    @property
    def is_believed(self) -> bool:
        """Whether expectations decide, and not the last use."""
        return not self._num_left

    def resize(self, total_slots: int) -> None:
        """Note how many slots all layers have together."""
        self._num_slots = total_slots // len(self._recent)

    def note(self, layer: int, row: Sequence[int], num_missing: int) -> None:
        """Note what a step of a layer needs, and how many of it were not resident."""
        recent, num_slots = self._recent[layer], self._num_slots
        num_hits = 0
        for expert in row:
            if expert in recent:
                num_hits += 1
                del recent[expert]
        for expert in row:
            recent[expert] = None
        num_over = len(recent) - num_slots
        if num_over > 0:
            for expert in list(recent)[:num_over]:
                del recent[expert]
        # Where a step needs more than fits, as in prefill, nothing is learnt of either.
        if len(row) <= num_slots:
            self._num_needs += len(row)
            self._num_ahead += len(row) - num_missing - num_hits

    def settle(self) -> bool:
        """End a step of all layers; return whether what is believed has changed.

        Where nothing was compared, as when slots are given up between steps, nothing ends.
        """
        if not self._num_needs:
            return False
        ahead = self._num_ahead / self._num_needs
        self._num_needs = self._num_ahead = 0
        if self._num_left:
            self._num_left -= 1
            return not self._num_left
        self.loss = max(-self._doubt.max_credit, self.loss - ahead)
        if self.loss <= self._max_loss:
            return False
        self.loss = 0.0
        self._num_left = self._pause_steps
        self._pause_steps *= self._doubt.pause_factor
        self._max_loss *= self._doubt.loss_factor
        return True
