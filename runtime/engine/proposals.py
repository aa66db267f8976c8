"""Placements that were proposed to an engine and wait for its next step."""

import collections
from collections.abc import Callable

from runtime.engine.base import Proposed
from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode
from runtime.protocol.model import LoadedModel
from runtime.protocol.plan import PlacementPlan


class Proposals:
    """Proposals on their way from any thread to the engine thread; the newest counts.

    Threads: any thread may ``put``; ``is_waiting`` and ``carry_out`` belong to the engine thread.
    No call waits for another thread.
    """

    def __init__(self) -> None:
        self._waiting: collections.deque[tuple[PlacementPlan, Proposed]] = collections.deque()

    def put(self, plan: PlacementPlan, done: Proposed) -> None:
        """Add a proposal, which replaces those that wait."""
        self._waiting.append((plan, done))

    @property
    def is_waiting(self) -> bool:
        """Whether there is something to carry out; cheap enough for every step."""
        return bool(self._waiting)

    def carry_out(self, change: Callable[[PlacementPlan], LoadedModel]) -> None:
        """Make the newest placement and tell all who wait; does nothing if nobody does.

        ``change`` leaves everything as it was when it raises. A ``LarderError`` of it is told;
        anything else is told as a bug and goes on to the caller.
        """
        dones: list[Proposed] = []
        newest: PlacementPlan | None = None
        while self._waiting:
            newest, done = self._waiting.popleft()
            dones.append(done)
        if newest is None:
            return
        outcome: LoadedModel | LarderError = LarderError(ErrorCode.INTERNAL)
        try:
            outcome = change(newest)
        except LarderError as error:
            outcome = error
        finally:
            for done in dones:
                done(newest, outcome)

    def forget(self) -> None:
        """Drop what waits without telling anybody."""
        self._waiting.clear()
