"""Policies that count how much the router wanted an expert, and how soon its layer comes."""

import dataclasses
from collections.abc import Container, Sequence

from runtime.policy.frequency import DecayedPolicy


@dataclasses.dataclass(slots=True)
class LayerPosition:
    """Which layer of a model computes now; one for the policies of all layers."""

    layer_index: int = 0


class ScoreAveragePolicy(DecayedPolicy):
    """Ranks by a moving average of the router's weights, ``rate`` being the part of the newest.

    Where weights are not told, every needed expert weighs 1. With a ``distance_weight``, experts of
    a layer are worth the more the sooner it computes: that much for the next layer, nothing for the
    present one, whose turn comes last.
    """

    def __init__(
        self,
        num_slots: int,
        rate: float = 0.5,
        layer_index: int = 0,
        num_layers: int = 1,
        position: LayerPosition | None = None,
        distance_weight: float = 0.0,
    ) -> None:
        super().__init__(num_slots, 1 - rate)
        self._layer_index = layer_index
        self._num_layers = num_layers
        self._position = LayerPosition() if position is None else position
        self._distance_weight = distance_weight
        self._weights: dict[int, float] = {}
        self._next_weights: dict[int, float] = {}

    def weigh(self, experts: Sequence[int], weights: Sequence[float]) -> None:
        """Hear the router's weights of the experts that the next step needs."""
        self._next_weights = dict(zip(experts, weights, strict=True))

    def worth(self, expert: int, now: int) -> float:
        """Return the average weight, and what the distance of the layer adds."""
        steps = (self._layer_index - self._position.layer_index - 1) % self._num_layers
        nearness = 1 - (steps + 1) / self._num_layers
        return super().worth(expert, now) + self._distance_weight * nearness

    def lowest(self, locked: Container[int], now: int) -> tuple[float, int] | None:
        """Return worth and number of the unlocked expert of the lowest worth, or None."""
        lowest = super().lowest(locked, now)
        # Distance changes between the steps of this layer, and who is lowest does not.
        return None if lowest is None else (self.worth(lowest[1], now), lowest[1])

    def _begin_step(self) -> None:
        super()._begin_step()
        self._position.layer_index = self._layer_index
        self._weights, self._next_weights = self._next_weights, {}

    def _use(self, experts: list[int]) -> None:
        for expert in experts:
            weight = self._weights.get(expert, 1.0)
            self._grown[expert] = self._grown.get(expert, 0.0) + self._unit * weight
