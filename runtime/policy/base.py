"""What every policy of an expert cache decides.

A policy is pure: it holds plain data, and time comes in as an argument. The engine and the replay
laboratory run the same objects.
"""

from collections.abc import Callable, Collection, Container, Iterable, Sequence
from typing import Protocol, runtime_checkable


class Policy(Protocol):
    """Decides for the slots of one layer on one device who may enter and who leaves.

    Experts are numbers within the layer. ``now`` is a step count that never goes back.
    """

    def admit(self, expert: int, now: int) -> bool:
        """Return whether a candidate that was needed and not resident may take a slot."""

    def insert(self, expert: int, now: int) -> None:
        """Note that an expert became resident."""

    def touch(self, experts: Iterable[int], now: int) -> None:
        """Note that resident experts were used."""

    def victim(self, locked: Container[int], now: int) -> int | None:
        """Return the resident expert that would leave, never a locked one; None if all are locked.

        The answer stays the same until the next call of another method.
        """

    def remove(self, expert: int) -> None:
        """Note that an expert is no longer resident."""

    def resize(self, num_slots: int) -> None:
        """Note that there are more or fewer slots now, never fewer than resident experts."""


@runtime_checkable
class RankingPolicy(Policy, Protocol):
    """A policy that can say how much each expert is worth, resident or not.

    Worths of layers of one model may be compared with each other.
    """

    def need(self, experts: Collection[int], now: int) -> None:
        """Note all experts that a computation needs, before anything else is said of this step.

        A caller that never calls this loses accuracy and nothing else. After it, ``touch`` says
        nothing new and may be left out.
        """

    def preload(self, expert: int) -> None:
        """Note that an expert became resident that nobody needed yet."""

    def worth(self, expert: int, now: int) -> float:
        """Return what it is worth that an expert is resident; higher stays longer."""

    def lowest(self, locked: Container[int], now: int) -> tuple[float, int] | None:
        """Return worth and number of the ``victim``; None if all are locked."""


@runtime_checkable
class WeighingPolicy(Policy, Protocol):
    """A policy that looks at the router's weights too."""

    def weigh(self, experts: Sequence[int], weights: Sequence[float]) -> None:
        """Hear the router's weights of the experts that the next step needs, before it begins.

        A caller that never calls this loses accuracy and nothing else.
        """


@runtime_checkable
class DoubtedPolicy(RankingPolicy, Protocol):
    """A policy whose ranks are expectations, which may be wrong of some text."""

    def believe(self, *, is_believed: bool) -> None:
        """Rank by expectations from the next step on, or by the last use alone."""


PolicyFactory = Callable[[int], Policy]
"""Makes the policy of one layer from its number of slots."""
