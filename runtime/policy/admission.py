"""Admission filters: each stands around a policy, which still decides who leaves."""

from collections.abc import Container, Iterable

from runtime.policy.base import Policy


class SecondTouch:
    """Admits an expert only if it was refused before, not long ago.

    What a prompt needs once cannot push out what is needed again and again. Free slots are filled
    in the same way. Time is counted in steps: different values of ``now``.
    """

    def __init__(self, policy: Policy, memory_steps: int = 64) -> None:
        self._policy = policy
        self._memory_steps = memory_steps
        self._refused: dict[int, int] = {}
        self._now: int | None = None
        self._step = 0

    def admit(self, expert: int, now: int) -> bool:
        """Return whether the expert was refused lately and the policy admits it now."""
        self._advance(now)
        refused = self._refused.get(expert, -self._memory_steps)
        if 0 < self._step - refused < self._memory_steps and self._policy.admit(expert, now):
            del self._refused[expert]
            return True
        self._refused[expert] = self._step
        return False

    def insert(self, expert: int, now: int) -> None:
        """Note that an expert became resident."""
        self._policy.insert(expert, now)

    def touch(self, experts: Iterable[int], now: int) -> None:
        """Note that resident experts were used."""
        self._advance(now)
        self._policy.touch(experts, now)

    def victim(self, locked: Container[int], now: int) -> int | None:
        """Return who leaves next, as the policy says."""
        return self._policy.victim(locked, now)

    def remove(self, expert: int) -> None:
        """Note that an expert is no longer resident."""
        self._policy.remove(expert)

    def resize(self, num_slots: int) -> None:
        """Note that there are more or fewer slots now."""
        self._policy.resize(num_slots)

    def _advance(self, now: int) -> None:
        if now != self._now:
            self._now = now
            self._step += 1
