"""Policies that count uses: halved from time to time, fading step by step, or by windows."""

from runtime.policy.ranked import RankedPolicy


class LfuPolicy(RankedPolicy):
    """Lets the least used expert leave; all counts are halved every ``halving_steps``."""

    def __init__(self, num_slots: int, halving_steps: int = 2048) -> None:
        super().__init__(num_slots)
        self._halving_steps = halving_steps
        self._uses: dict[int, float] = {}

    def worth(self, expert: int, now: int) -> float:
        """Return how often an expert was used, old uses counting less."""
        return self._uses.get(expert, 0.0)

    def _begin_step(self) -> None:
        if self._step and self._step % self._halving_steps == 0:
            self._uses = {expert: uses / 2 for expert, uses in self._uses.items()}
        super()._begin_step()

    def _use(self, experts: list[int]) -> None:
        for expert in experts:
            self._uses[expert] = self._uses.get(expert, 0.0) + 1


class DecayedPolicy(RankedPolicy):
    """Ranks by uses that fade: each step multiplies what an old use counts by ``decay``.

    Scores grow with time instead of fading, which is the same order for less work; before they
    become too big, all are scaled down.
    """

    is_selective = True

    def __init__(self, num_slots: int, decay: float = 0.98) -> None:
        super().__init__(num_slots)
        if not 0 < decay < 1:
            raise ValueError(f"a decay between 0 and 1, not {decay}")
        self._decay = decay
        self._unit = 1.0 - decay
        self._grown: dict[int, float] = {}

    def worth(self, expert: int, now: int) -> float:
        """Return the share of recent steps that used an expert."""
        return self._grown.get(expert, 0.0) / self._unit * (1.0 - self._decay)

    def _begin_step(self) -> None:
        self._unit /= self._decay
        if self._unit > 1e100:
            self._grown = {
                expert: grown / self._unit * (1.0 - self._decay)
                for expert, grown in self._grown.items()
            }
            self._unit = 1.0 - self._decay
        super()._begin_step()

    def _use(self, experts: list[int]) -> None:
        for expert in experts:
            self._grown[expert] = self._grown.get(expert, 0.0) + self._unit
