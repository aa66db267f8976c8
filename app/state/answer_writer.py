"""The answer that is being written, from the request to its end."""

import time
from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, Signal

from app.state.chat_store import ChatStore
from app.state.chat_values import AnswerEnd
from app.state.growing_answer import GrowingAnswer, end_of
from app.state.session import Session
from app.timers import single_shot
from runtime.protocol.chat import ChatMessage, GenerationStats, SamplingSettings
from runtime.protocol.messages import (
    CommandFailed,
    GenerationCancelled,
    GenerationFinished,
    GenerationStarted,
    PrefillProgressed,
    Reply,
    TokensGenerated,
)

SHOW_INTERVAL_MS = 30
"""New text reaches the view at most this often."""
SAVE_INTERVAL_MS = 500
"""A growing answer is saved this often, so that a kill costs less than a second of it."""


class AnswerWriter(QObject):
    """Writes one answer at a time into the store, and shows it in good time.

    Threads: window thread.
    """

    changed = Signal()
    """``answer`` or ``prompt_progress``."""
    grew = Signal(object)
    """``answer`` has more text; at most once in 30 ms."""
    saved = Signal()
    """What had arrived of ``answer`` is in the store."""
    ended = Signal(object, object)
    """A ``GrowingAnswer`` that is no more, and the ``Message`` it became."""
    measured = Signal(object)
    """The ``GenerationStats`` of an answer that was kept, after ``ended``; once for each."""
    removed = Signal(object)
    """A ``GrowingAnswer`` of which nothing came; the store has it no more."""
    failed = Signal(object)
    """An ``ErrorReport``: the question could not be answered."""

    def __init__(
        self,
        store: ChatStore,
        session: Session,
        parent: QObject | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(parent)
        self._store = store
        self._session = session
        self._clock = clock
        self._answer: GrowingAnswer | None = None
        self._prompt_progress: tuple[int, int] | None = None
        self._prompt_began_s = 0.0
        self._prompt_left_s: float | None = None
        self._show_timer = single_shot(self, SHOW_INTERVAL_MS, self._show)
        self._save_timer = single_shot(self, SAVE_INTERVAL_MS, self.save)
        session.answer_lost.connect(self.cut_off)

    @property
    def answer(self) -> GrowingAnswer | None:
        """What is being written; None while nothing is."""
        return self._answer

    @property
    def prompt_progress(self) -> tuple[int, int] | None:
        """Prompt tokens done and in all, while the prompt is being read."""
        return self._prompt_progress

    @property
    def prompt_left_s(self) -> float | None:
        """How long reading the rest of the prompt takes at the rate so far; None if unknown."""
        return self._prompt_left_s

    def begin(
        self,
        answer: GrowingAnswer,
        conversation: Sequence[ChatMessage],
        sampling: SamplingSettings,
    ) -> None:
        """Have an answer written; it ends at once if nobody can write it."""
        self._answer = answer
        if not self._session.start_answer(conversation, sampling, self._on_event):
            self.cut_off()

    def stop(self) -> None:
        """End the answer as the person wishes."""
        self._session.stop_answer()

    def cut_off(self) -> None:
        """End an answer of which no more will come."""
        self._end(AnswerEnd.CUT_OFF)

    def save(self) -> None:
        """Keep what has arrived."""
        answer = self._answer
        if answer is not None:
            self._store.grow(answer.chat_id, answer.message, answer.token_ids)
            self.saved.emit()

    def _on_event(self, event: Reply) -> None:
        answer = self._answer
        if answer is None:
            return
        if isinstance(event, TokensGenerated):
            self._end_prompt()
            answer.add(event.text, event.token_ids, event.thinking)
            for timer in (self._show_timer, self._save_timer):
                if not timer.isActive():
                    timer.start()
        elif isinstance(event, GenerationStarted):
            self._prompt_began_s = self._clock()
            self._show_prompt(0, event.prompt_tokens - event.reused_tokens)
        elif isinstance(event, PrefillProgressed):
            self._show_prompt(event.done_tokens, event.total_tokens)
        elif isinstance(event, GenerationFinished):
            self._keep(answer, end_of(event.reason), event.stats)
        elif isinstance(event, GenerationCancelled):
            self._end(AnswerEnd.STOPPED, event.stats)
        elif isinstance(event, CommandFailed):
            self.cut_off()
            self.failed.emit(event.error)

    def _show_prompt(self, done_tokens: int, total_tokens: int) -> None:
        self._prompt_progress = (done_tokens, total_tokens)
        taken_s = self._clock() - self._prompt_began_s
        left = (total_tokens - done_tokens) * taken_s / done_tokens if done_tokens else None
        self._prompt_left_s = left
        self.changed.emit()

    def _end_prompt(self) -> None:
        """The first token is there: the prompt has been read."""
        if self._prompt_progress is not None:
            self._prompt_progress = None
            self.changed.emit()

    def _end(self, end: AnswerEnd, stats: GenerationStats | None = None) -> None:
        """End an answer that did not end by itself; one of which nothing came is removed.

        The answer that it was to replace is shown again.
        """
        answer = self._answer
        if answer is None:
            return
        if not answer.is_empty:
            self._keep(answer, end, stats)
            return
        self._store.remove_message(answer.chat_id, answer.message_id, answer.replaced_id)
        self._forget()
        self.removed.emit(answer)

    def _keep(self, answer: GrowingAnswer, end: AnswerEnd, stats: GenerationStats | None) -> None:
        message = answer.ended(end, stats)
        self._store.settle(answer.chat_id, message)
        self._forget()
        self.ended.emit(answer, message)
        if stats is not None:
            self.measured.emit(stats)

    def _forget(self) -> None:
        self._answer = None
        self._prompt_progress = None
        self._show_timer.stop()
        self._save_timer.stop()
        self.changed.emit()

    def _show(self) -> None:
        self.grew.emit(self._answer)
