"""Swap a few experts at the end of each window, and nobody in between."""

from runtime.policy.ranked import RankedPolicy


class WindowSwapPolicy(RankedPolicy):
    """Counts uses over a window; at its end the best absent experts may replace the worst resident.

    At most ``max_swaps`` enter for each window, when they are needed next; free slots are open to
    everybody.
    """

    def __init__(self, num_slots: int, window_steps: int = 16, max_swaps: int = 2) -> None:
        super().__init__(num_slots)
        self._window_steps = window_steps
        self._max_swaps = max_swaps
        self._uses: dict[int, int] = {}
        self._of_window: dict[int, int] = {}
        self._incoming: set[int] = set()

    def admit(self, expert: int, now: int) -> bool:
        """Return whether the last window chose the expert, or a slot is free."""
        self.need((expert,), now)
        return len(self._residents) < self._num_slots or (
            self._num_slots > 0 and expert in self._incoming
        )

    def insert(self, expert: int, now: int) -> None:
        """Note that an expert became resident."""
        super().insert(expert, now)
        self._incoming.discard(expert)

    def worth(self, expert: int, now: int) -> float:
        """Return the uses in the last full window."""
        return float(self._of_window.get(expert, 0))

    def _begin_step(self) -> None:
        if self._step and self._step % self._window_steps == 0:
            self._end_window()
        super()._begin_step()

    def _end_window(self) -> None:
        """Choose who may enter during the next window."""
        self._of_window, self._uses = self._uses, {}
        absent = [expert for expert in self._of_window if expert not in self._residents]
        best = sorted(absent, key=lambda expert: (-self._of_window[expert], expert))
        worst = sorted(self._of_window.get(expert, 0) for expert in self._residents)
        pairs = zip(best[: self._max_swaps], worst, strict=False)
        self._incoming = {expert for expert, uses in pairs if self._of_window[expert] > uses}

    def _use(self, experts: list[int]) -> None:
        for expert in experts:
            self._uses[expert] = self._uses.get(expert, 0) + 1
