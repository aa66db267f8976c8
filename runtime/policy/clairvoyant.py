"""The clairvoyant: knows every future use; the yardstick that no policy can beat."""

from bisect import bisect_right
from collections.abc import Collection, Iterable

from runtime.policy.ranked import RankedPolicy

_LATER = float("inf")


class ClairvoyantPolicy(RankedPolicy):
    """Lets the expert leave whose next use is the farthest away.

    Its steps must be the ones it was told: ``future`` lists what each step will need. Worths of
    the layers of one model compare if each knows its ``layer_index`` of ``num_layers``.
    """

    is_selective = True

    def __init__(
        self,
        num_slots: int,
        future: Iterable[Collection[int]],
        layer_index: int = 0,
        num_layers: int = 1,
    ) -> None:
        super().__init__(num_slots)
        self._layer_index = layer_index
        self._num_layers = num_layers
        self._uses: dict[int, list[int]] = {}
        for step, experts in enumerate(future, start=1):
            for expert in experts:
                self._uses.setdefault(expert, []).append(step)
        self._next: dict[int, float] = {expert: uses[0] for expert, uses in self._uses.items()}

    def worth(self, expert: int, now: int) -> float:
        """Return minus the time of the next use, in computations of all layers."""
        return -(self._next.get(expert, _LATER) * self._num_layers + self._layer_index)

    def _use(self, experts: list[int]) -> None:
        for expert in experts:
            uses = self._uses.get(expert, [])
            later = bisect_right(uses, self._step)
            self._next[expert] = uses[later] if later < len(uses) else _LATER
