"""Steps that are known before they come: all layers of a token learn in one go."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from runtime.policy.expected import MAX_UNIT, ExpectedUsePolicy, Floats

_Numbers = npt.NDArray[np.intp]


class ForetoldUse:
    """Learns for the ``ExpectedUsePolicy`` of each layer, and computes the same, to the last bit.

    An engine learns what a layer needs when it comes to that layer; whoever replays a trace knows
    it of all layers at once. Then one operation on the rows of all layers takes the place of as
    many as there are layers. What is decided does not change, and the policies decide it.

    Arrays are those of the policy with the layers before the experts; what depends on the number
    of steps alone is the same for all layers. A row of followers stands at ``layer * num_experts
    + expert``.
    """

    def __init__(self, policies: Sequence[ExpectedUsePolicy]) -> None:
        """Begin before the first step of all layers, which are made alike."""
        first = policies[0]
        expectation = first.expectation
        num_layers, num_experts = len(policies), first.num_experts
        num_paces = len(expectation.decays)
        self._policies = tuple(policies)
        self._num_experts = num_experts
        self._decays: Floats = np.array(expectation.decays, np.float32)
        self._follower_rate = expectation.follower_rate
        self._units: Floats = np.ones(num_paces, np.float32)
        self._grown: Floats = np.zeros((num_paces, num_layers, num_experts), np.float32)
        self._rows: Floats = np.zeros((num_layers * num_experts, num_experts), np.float32)
        self._flat_rows = self._rows.reshape(-1)
        self._row_units: Floats = np.ones(num_layers * num_experts, np.float32)
        self._step = 0
        self._last_steps = np.zeros((num_layers, num_experts), np.int64)
        self._num_seen = np.zeros(num_layers * num_experts, np.int64)
        self._absent: Floats = np.empty((num_layers, num_experts), np.float32)
        self._first_rows = np.arange(num_layers)[:, None] * num_experts
        self._layers = np.arange(num_layers)
        self._before: _Numbers | None = None
        self._ended: _Numbers | None = None
        for policy, absent in zip(policies, self._absent, strict=True):
            policy.expect(absent)

    def foretell(self, needs: npt.NDArray[np.integer]) -> None:
        """Tell each policy its next step; ``needs`` are distinct experts, [layers, experts]."""
        needed = needs.astype(np.intp)
        if 0 < needs.shape[1] <= self._num_experts // 2:
            if self._before is not None and self._ended is not None:
                self._learn(self._before, self._ended)
            self._before, self._ended = self._ended, needed
        self._units /= self._decays
        if self._units.max() > MAX_UNIT:
            self._grown /= self._units[:, None, None]
            self._units[:] = 1
        flat = self._grown.reshape(len(self._units), -1)
        flat[:, (self._first_rows + needed).reshape(-1)] += self._units[:, None]
        self._step += 1
        self._last_steps.put(self._first_rows + needed, self._step)
        worths = self._worths(needed)
        lowest = (worths + self._absent).argmin(axis=1)
        pairs = zip(worths[self._layers, lowest].tolist(), lowest.tolist(), strict=True)
        told = zip(self._policies, needs.tolist(), worths, pairs, strict=True)
        for policy, row, worth, pair in told:
            policy.foretell(row, worth, pair)

    def _worths(self, needed: _Numbers) -> Floats:
        """Return the worth of every expert of every layer."""
        weighing = self._policies[0].weighing
        scales = weighing.factors / self._units
        worths: Floats = np.add.reduce(self._grown * scales[:, None, None], axis=0)
        if weighing.is_by_last_use:
            worths += (self._last_steps - self._step).astype(np.float32)
        elif needed.size:
            # The needed ones first, so that their rows are added in order.
            rows = (self._first_rows + needed).T
            rates = weighing.follower_weight / len(rows) / self._row_units.take(rows)
            followers = self._rows.take(rows, axis=0)
            followers *= rates[:, :, None]
            worths += np.add.reduce(followers, axis=0)
        return worths

    def _learn(self, first: _Numbers, then: _Numbers) -> None:
        """Move the rows of ``first`` towards what came ``then``; quickly while they are new."""
        rows = self._first_rows + first
        seen = self._num_seen.take(rows) + 1
        self._num_seen.put(rows, seen)
        rates = np.maximum(self._follower_rate, 1 / (seen + 1))
        units = self._row_units.take(rows).astype(np.float64) / (1 - rates)
        if units.max() > MAX_UNIT:
            for place in zip(*np.nonzero(units > MAX_UNIT), strict=True):
                self._rows[rows[place]] /= np.float32(units[place])
                units[place] = 1.0
        self._row_units.put(rows, units)
        pairs = (rows * self._num_experts)[:, :, None] + then[:, None, :]
        gains = (units * rates).astype(np.float32)[:, :, None]
        self._flat_rows.put(pairs, self._flat_rows.take(pairs) + gains)
