"""The default: keep the experts that are most likely to be needed next."""

import dataclasses
from collections.abc import Container, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from runtime.policy.ranked import RankedPolicy

Floats = npt.NDArray[np.float32]
_Places = npt.NDArray[np.intp]
MAX_UNIT = 1e12
SAME_AGE = 0.5
"""What shares count where the last use decides: between those that were used at the same time."""


@dataclasses.dataclass(frozen=True, slots=True)
class Expectation:
    """How uses of the past become an expectation; one set of numbers for all models."""

    decays: tuple[float, ...] = (0.5, 0.9, 0.99)
    """Paces, quick to slow: what is left of the share of recent uses after a step."""
    weights: tuple[float, ...] = (0.15, 0.25, 0.6)
    """What each pace counts."""
    follower_weight: float = 2.0
    """What it counts that an expert often follows those that are needed now."""
    follower_rate: float = 0.03
    """How much of what is known of followers a step replaces, once enough is known."""


@dataclasses.dataclass(frozen=True, slots=True)
class Weighing:
    """What makes a worth of shares and followers."""

    factors: Floats
    """Of the share of each pace, not yet made one."""
    follower_weight: float
    is_by_last_use: bool = False
    """Whether the steps since the last use come before all that."""


@dataclasses.dataclass(slots=True)
class Foretold:
    """What a policy was told of its next step; of no step if there are no needs."""

    needs: list[int] | None = None
    worths: Floats | None = None
    lowest: tuple[float, int] | None = None
    """Worth and number of the resident that would leave then, while that is known."""


class ExpectedUsePolicy(RankedPolicy):
    """Ranks by expected use: shares of recent steps at several paces, and learnt followers.

    The table of followers holds, for each pair of experts, how often the second was needed in
    the step after one that needed the first. It has ``num_experts`` squared entries of 4 bytes.
    Steps that need more than half of the experts, as in prefill, teach nothing about followers.

    Shares and rows of the table are kept in units that grow instead of fading themselves, so that
    a step writes only where something was needed::

        share of a pace  =  _grown[pace] / _units[pace] * (1 - decay)
        row of followers =  _followers[first] / _row_units[first]
    """

    is_selective = True

    def __init__(
        self, num_slots: int, num_experts: int, expectation: Expectation | None = None
    ) -> None:
        super().__init__(num_slots)
        chosen = Expectation() if expectation is None else expectation
        num_paces = len(chosen.decays)
        self.num_experts = num_experts
        self.expectation = chosen
        self._decays: Floats = np.array(chosen.decays, np.float32)
        # What counts now; the same for all layers.
        self.weighing = self._weigh(chosen.weights, chosen.follower_weight)
        self._follower_rate = chosen.follower_rate
        # From so many times on an expert is not new: 1 / (times + 1) is below the rate.
        self._num_new = 1 / chosen.follower_rate - 1
        self._max_to_learn = num_experts // 2
        # Its unit grows fastest, so it is the largest of all.
        self._quickest_pace = int(self._decays.argmin())
        self._last_steps: npt.NDArray[np.int64] = np.zeros(num_experts, np.int64)
        self._units: Floats = np.ones(num_paces, np.float32)
        self._grown: Floats = np.zeros((num_paces, num_experts), np.float32)
        self._row_units: Floats = np.ones(num_experts, np.float32)
        self._followers: Floats = np.zeros((num_experts, num_experts), np.float32)
        # The same bytes in one dimension, where places are found faster.
        self._flat_grown = self._grown.reshape(-1)
        self._flat_followers = self._followers.reshape(-1)
        # And where single numbers are, which are rounded when they are written.
        self._row_unit_of = self._row_units.data
        self._first_of_pace = np.arange(num_paces)[:, None] * num_experts
        self._num_seen = [0] * num_experts
        self._absent: Floats = np.full(num_experts, np.inf, np.float32)
        self._before: _Places = np.empty(0, np.intp)
        """What the step before the present one needed, if anything is to be learnt from it."""
        self._places: _Places | None = None
        """What the present step needs, as an array, while that is known."""
        self._worths: Floats | None = None
        self._foretold: Foretold | None = None

    def worth(self, expert: int, now: int) -> float:
        """Return the expected use; it has no unit, but the same meaning in every layer."""
        return self._all_worths().item(expert)

    def believe(self, *, is_believed: bool) -> None:
        """Rank by expectations from the next step on, or by the last use alone."""
        # What this step's worths are does not depend on whether anybody asked before.
        self._all_worths()
        chosen = self.expectation
        if is_believed:
            self.weighing = self._weigh(chosen.weights, chosen.follower_weight)
        else:
            scale = SAME_AGE / max(1.0, sum(chosen.weights))
            ties = [scale * weight for weight in chosen.weights]
            self.weighing = dataclasses.replace(self._weigh(ties, 0.0), is_by_last_use=True)

    def _weigh(self, weights: Sequence[float], follower_weight: float) -> Weighing:
        return Weighing(np.array(weights, np.float32) * (1 - self._decays), follower_weight)

    def expect(self, absent: Floats) -> None:
        """Hear that the worths of each step will come with it, by ``foretell``.

        ``absent`` is where the policy keeps from now on who is absent: infinity for these, else 0.
        Nothing must have been needed yet.
        """
        if self._step:
            raise ValueError("what was needed before cannot be foretold any more")
        absent[:] = self._absent
        self._absent = absent
        self._foretold = Foretold()

    def foretell(self, needs: list[int], worths: Floats, lowest: tuple[float, int]) -> None:
        """Hear what the next step will need, and worths and the lowest of the residents then."""
        foretold = self._foretold
        assert foretold is not None, "a policy that expects to be told"
        foretold.needs = needs
        foretold.worths = worths
        foretold.lowest = lowest if self._residents else None

    def preload(self, expert: int) -> None:
        """Note that an expert became resident that nobody needed yet."""
        super().preload(expert)
        if self._foretold is not None:
            self._foretold.lowest = None

    def remove(self, expert: int) -> None:
        """Note that an expert is no longer resident."""
        super().remove(expert)
        self._absent[expert] = np.inf
        foretold = self._foretold
        if foretold is not None and foretold.lowest is not None and foretold.lowest[1] == expert:
            foretold.lowest = None

    def need(self, experts: Iterable[int], now: int) -> None:
        """Note distinct experts that a computation needs, resident or not."""
        if self._foretold is None or now == self._now:
            super().need(experts, now)
        else:
            self._begin_foretold(self._foretold, list(experts), now)

    def _take_slot(self, expert: int) -> None:
        super()._take_slot(expert)
        self._absent[expert] = 0

    def _find_lowest(self, locked: Container[int], now: int) -> tuple[float, int] | None:
        """Look up worth and number of the unlocked expert of the lowest worth."""
        worths = self._all_worths()
        ranks = worths + self._absent
        for number in range(len(self._residents)):
            expert = int(ranks.argmin())
            if expert not in locked:
                lowest = (worths.item(expert), expert)
                if not number:
                    self._lowest = lowest
                return lowest
            ranks[expert] = np.inf
        return None

    def _all_worths(self) -> Floats:
        """Return the worth of every expert, computed once after each change."""
        if self._worths is None:
            # Sums of fixed order, so that every machine decides alike.
            scales = self.weighing.factors / self._units
            worths: Floats = np.add.reduce(self._grown * scales[:, None], axis=0)
            if self.weighing.is_by_last_use:
                worths += (self._last_steps - self._step).astype(np.float32)
            elif self._needed:
                needed = self._needed_places()
                rates = self.weighing.follower_weight / len(needed) / self._row_units.take(needed)
                followers = self._followers.take(needed, axis=0)
                followers *= rates[:, None]
                worths += np.add.reduce(followers, axis=0)
            self._worths = worths
        return self._worths

    def _begin_foretold(self, foretold: Foretold, experts: list[int], now: int) -> None:
        """Begin a step that was computed before."""
        if experts != foretold.needs:
            raise ValueError(f"a step needs {experts}, and {foretold.needs} was foretold")
        self._now = now
        self._step += 1
        self._needed = dict.fromkeys(experts)
        self._places = None
        self._worths = foretold.worths
        self._lowest = foretold.lowest
        foretold.needs = None

    def _begin_step(self) -> None:
        """Learn who followed whom, and let the past fade."""
        ended = self._needed_places()
        if len(ended) > self._max_to_learn:
            ended = ended[:0]
        if len(self._before) and len(ended):
            self._learn(self._before, ended)
        self._before = ended
        self._places = None
        self._units /= self._decays
        self._worths = None
        if self._units.item(self._quickest_pace) > MAX_UNIT:
            self._grown /= self._units[:, None]
            self._units[:] = 1
        super()._begin_step()

    def _learn(self, first: _Places, then: _Places) -> None:
        """Move the rows of ``first`` towards what came ``then``; quickly while they are new."""
        unit_of, num_seen, slowest = self._row_unit_of, self._num_seen, self._follower_rate
        added = []
        for expert in first.tolist():
            seen = num_seen[expert] + 1
            num_seen[expert] = seen
            rate = slowest if seen >= self._num_new else 1 / (seen + 1)
            unit = unit_of[expert] / (1 - rate)
            if unit > MAX_UNIT:
                self._followers[expert] /= unit
                unit = 1.0
            unit_of[expert] = unit
            added.append(unit * rate)
        pairs = (first * self.num_experts)[:, None] + then
        gains = np.array(added, np.float32)[:, None]
        self._flat_followers.put(pairs, self._flat_followers.take(pairs) + gains)

    def _use(self, experts: list[int]) -> None:
        if self._foretold is not None:
            raise ValueError(f"a step needs {experts} too, which was not foretold")
        places = np.array(experts, np.intp)
        self._places = places if len(experts) == len(self._needed) else None
        self._flat_grown[self._first_of_pace + places] += self._units[:, None]
        self._last_steps[places] = self._step
        self._worths = None

    def _needed_places(self) -> _Places:
        """Return what the present step needs, in the order in which it was told."""
        if self._places is None:
            self._places = np.array(list(self._needed), np.intp)
        return self._places
