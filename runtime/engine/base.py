"""What every engine offers to the service: load, count, start, close."""

import collections
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from runtime.errors import CancelledError, LarderError
from runtime.protocol.chat import ChatMessage, SamplingSettings
from runtime.protocol.errors import ErrorCode
from runtime.protocol.messages import (
    GenerationCancelled,
    GenerationFinished,
    GenerationStarted,
    PrefillProgressed,
    TokensGenerated,
)
from runtime.protocol.model import LoadedModel, LoadStage
from runtime.protocol.plan import PlacementPlan
from runtime.protocol.telemetry import TelemetrySample

EngineEvent = (
    GenerationStarted
    | PrefillProgressed
    | TokensGenerated
    | GenerationFinished
    | GenerationCancelled
)
LoadProgress = Callable[[LoadStage, int, int], None]
"""Called with the stage, bytes done and bytes in total."""
Proposed = Callable[[PlacementPlan, LoadedModel | LarderError], None]
"""Called once with the plan that was tried last, and the model as it lies under it or why nothing
has changed."""


class CancelToken:
    """A wish to stop, set by one thread and tested by another at named points.

    Threads: any thread may call any method.
    """

    def __init__(self) -> None:
        self._event = threading.Event()

    def cancel(self) -> None:
        """Ask for the end."""
        self._event.set()

    @property
    def is_cancelled(self) -> bool:
        """Whether the end was asked for."""
        return self._event.is_set()

    def check(self) -> None:
        """Raise ``CancelledError`` if the end was asked for."""
        if self._event.is_set():
            raise CancelledError

    def wait(self, timeout_s: float) -> bool:
        """Sleep until cancelled or timed out; return whether cancelled."""
        return self._event.wait(timeout_s)


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

        ``change`` leaves everything as it was when it raises, but for what a card refuses to hold
        again. A ``LarderError`` of it is told; anything else is told as a bug and goes on to the
        caller.
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


class Engine(Protocol):
    """Something that answers conversations with one model.

    Threads: all methods but ``sample``, ``count_tokens`` and ``propose`` are called by one thread,
    the engine thread. ``sample`` is called by the telemetry thread at any time after ``load``
    returned; ``count_tokens`` by the thread that answers questions, also during an answer, but
    never while the engine thread is in ``start`` or waits for its first event; ``propose`` by any
    thread at any time after ``load`` returned.
    """

    def load(self, plan: PlacementPlan, progress: LoadProgress, cancel: CancelToken) -> LoadedModel:
        """Make the planned model ready.

        Raises ``CancelledError`` after giving everything back, ``LarderError`` for what a person
        can change.
        """

    def count_tokens(self, conversation: Sequence[ChatMessage]) -> int:
        """Return the prompt tokens that this conversation would take."""

    def start(
        self,
        request_id: int,
        conversation: Sequence[ChatMessage],
        sampling: SamplingSettings,
        cancel: CancelToken,
    ) -> Iterator[EngineEvent]:
        """Yield the events of one answer, the last being finished or cancelled.

        Cancel is tested at least once per layer of prefill and once per token, and ends in
        ``GenerationCancelled``. Raises ``LarderError`` before the first token or not at all, except
        for a failing drive.
        """

    def propose(self, plan: PlacementPlan, done: Proposed) -> None:
        """Ask for another placement of the loaded model; returns at once.

        The plan is of the same model, copy and context as the one in force; where it wants the
        dense part on another device, the engine may refuse it. It takes effect at
        the next step boundary (before a token or a prefill chunk) of the answer being written, or
        in ``apply``. Of several proposals that wait the newest is carried out and the others with
        it. ``done`` is called by the engine thread when the new placement is in force, though
        experts may still be on their way; or with the error after which everything lies as before.
        Proposals that wait when the engine is closed are forgotten. The tokens of an answer do not
        depend on any of this. ``Proposals`` keeps all of it but the change itself.
        """

    def apply(self) -> None:
        """Carry out what was proposed, if anything waits; called while no answer is written."""

    def sample(self, interval_s: float) -> TelemetrySample:
        """Return what happened since the previous call, ``interval_s`` ago.

        The expert map is complete in every sample; the channel leaves out what has not changed.
        """

    def close(self) -> None:
        """Give back memory and files; the engine cannot be used any more."""
