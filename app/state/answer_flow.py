"""One answer of the model at a time, and counts of questions, as requests to the runtime."""

from collections.abc import Callable, Sequence

from app.link.client import is_closing
from app.state.candidate_flow import Send
from runtime.protocol.chat import ChatMessage, SamplingSettings
from runtime.protocol.framing import FrameError
from runtime.protocol.messages import CancelRequest, CountTokens, Reply, StartGeneration


def ignore(event: Reply) -> None:
    """Listen to the closing of a command that nobody waits for."""


class AnswerFlow:
    """Starts and stops answers; ``ended`` is told the last event before the listener is."""

    def __init__(self, send: Send, ended: Callable[[Reply], None]) -> None:
        self._send = send
        self._ended = ended
        self._request_id: int | None = None

    @property
    def is_running(self) -> bool:
        """Whether an answer is being written."""
        return self._request_id is not None

    def start(
        self,
        conversation: Sequence[ChatMessage],
        sampling: SamplingSettings,
        listener: Callable[[Reply], None],
    ) -> bool:
        """Ask for an answer; False if there is no runtime that listens.

        Raises ``FrameError`` if the conversation is longer than a frame.
        """

        def on_event(event: Reply) -> None:
            if event.request_id != self._request_id:
                return
            if is_closing(event):
                self._request_id = None
                self._ended(event)
            listener(event)

        self._request_id = self._send(
            lambda request_id: StartGeneration(
                request_id=request_id, conversation=list(conversation), sampling=sampling
            ),
            on_event,
        )
        return self.is_running

    def count(self, conversation: Sequence[ChatMessage], listener: Callable[[Reply], None]) -> bool:
        """Ask how many tokens a conversation has; False if nobody can be asked that."""
        try:
            request_id = self._send(
                lambda request_id: CountTokens(
                    request_id=request_id, conversation=list(conversation)
                ),
                listener,
            )
        except FrameError:
            return False
        return request_id is not None

    def stop(self) -> None:
        """Ask for the end of the answer; what has arrived stays valid."""
        target = self._request_id
        if target is not None:
            self._send(
                lambda request_id: CancelRequest(request_id=request_id, target_request_id=target),
                ignore,
            )

    def lose_runtime(self) -> bool:
        """Take note that no more will come; return whether an answer was being written."""
        was_running = self.is_running
        self._request_id = None
        return was_running
