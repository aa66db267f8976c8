"""How many tokens a question would have, counted by the loaded model before it is sent."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, Signal

from app.state.session import Session
from app.timers import single_shot
from runtime.protocol.chat import ChatMessage
from runtime.protocol.messages import Reply, TokensCounted

REST_MS = 400
"""A question is counted when nothing was typed for so long."""


class PromptCount(QObject):
    """The count of the question that is being written; one is asked for at a time.

    ``conversation`` returns what would be sent now, nothing if there is nothing to send. Threads:
    window thread.
    """

    changed = Signal()

    def __init__(
        self,
        session: Session,
        conversation: Callable[[], Sequence[ChatMessage]],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._session = session
        self._conversation = conversation
        self._num_tokens: int | None = None
        self._is_asking = False
        self._is_stale = False
        self._is_wanted = False
        self._timer = single_shot(self, REST_MS, self._ask)
        session.model_loaded.connect(self.note_change)
        session.changed.connect(self._on_session_changed)

    @property
    def num_tokens(self) -> int | None:
        """Tokens of the whole prompt with the question; None while they are not known."""
        return self._num_tokens

    def note_change(self, _: object = None) -> None:
        """The question is another one now; it is counted again when it rests."""
        self._is_wanted = self._is_stale = True
        self._timer.start()

    def forget(self) -> None:
        """There is no question any more."""
        self._is_wanted = self._is_stale = False
        self._timer.stop()
        self._show(None)

    def _ask(self) -> None:
        if self._is_asking:
            return
        conversation = self._conversation()
        self._is_stale = False
        if not conversation:
            self._show(None)
            return
        self._is_asking = self._session.count_tokens(conversation, self._on_reply)

    def _on_reply(self, event: Reply) -> None:
        self._is_asking = False
        if self._is_stale:
            self._timer.start()
        elif self._is_wanted:
            self._show(event.prompt_tokens if isinstance(event, TokensCounted) else None)

    def _on_session_changed(self) -> None:
        """A runtime that is gone answers no more, and another model counts otherwise."""
        if self._session.loaded is None:
            self._is_asking = False
            self._show(None)

    def _show(self, num_tokens: int | None) -> None:
        if num_tokens != self._num_tokens:
            self._num_tokens = num_tokens
            self.changed.emit()
