"""An answer while it is being written."""

import dataclasses
from collections.abc import Sequence

import msgspec

from app.state.chat_values import AnswerEnd, Message
from runtime.protocol.chat import FinishReason, GenerationStats

_ENDS = {
    FinishReason.STOP: AnswerEnd.FINISHED,
    FinishReason.LENGTH: AnswerEnd.LENGTH,
    FinishReason.CONTEXT_FULL: AnswerEnd.CONTEXT_FULL,
}


class GrowingAnswer:
    """Collects the pieces of one answer; ``message`` is what has arrived.

    ``begun`` is the message as it was, where it goes on after it had ended: the runtime tells such
    an answer from its beginning again. ``keeps_ids`` says that the model goes on from its ids;
    otherwise ids of its end alone would stand for all of it, so none are kept.
    """

    def __init__(
        self,
        chat_id: int,
        message: Message,
        replaced_id: int | None = None,
        *,
        begun: Message | None = None,
        keeps_ids: bool = True,
    ) -> None:
        self.chat_id = chat_id
        self.replaced_id = replaced_id
        """The answer that was shown in its place before, if there was one."""
        self._message = message
        self._begun = begun
        self._is_untold = begun is not None
        """Nothing was told yet of an answer that goes on."""
        self._keeps_ids = keeps_ids
        self._pieces: list[str] = []
        self._thoughts: list[str] = []
        self._token_ids = list(begun.token_ids) if begun is not None and keeps_ids else []

    @property
    def message_id(self) -> int:
        """The message that grows."""
        return self._message.message_id

    @property
    def token_ids(self) -> Sequence[int]:
        """All ids so far."""
        return self._token_ids

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing of it."""
        message = self._message
        has_text = message.text or message.thinking or self._pieces or self._thoughts
        return self._begun is None and not self._token_ids and not has_text

    @property
    def message(self) -> Message:
        """The message with all text so far."""
        if self._pieces or self._thoughts:
            self._message = dataclasses.replace(
                self._message,
                text=self._message.text + "".join(self._pieces),
                thinking=self._message.thinking + "".join(self._thoughts),
            )
            self._pieces.clear()
            self._thoughts.clear()
        return self._message

    def add(self, text: str, token_ids: Sequence[int], thinking: str = "") -> None:
        """Take a piece of the answer and one of its thinking."""
        if self._is_untold:
            self._is_untold = False
            self._message = dataclasses.replace(self._message, text="", thinking="")
        if text:
            self._pieces.append(text)
        if thinking:
            self._thoughts.append(thinking)
        if self._keeps_ids:
            self._token_ids.extend(token_ids)

    def ended(self, end: AnswerEnd, stats: GenerationStats | None = None) -> Message:
        """Return the whole answer with how it ended; as it was if it did not go on."""
        begun = self._begun
        if begun is not None and self._is_untold:
            return begun
        if begun is not None and begun.stats is not None and stats is not None:
            thinking_s = begun.stats.thinking_s + stats.thinking_s
            stats = msgspec.structs.replace(stats, thinking_s=thinking_s)
        return dataclasses.replace(
            self.message, end=end, stats=stats, token_ids=tuple(self._token_ids)
        )


def end_of(reason: FinishReason) -> AnswerEnd:
    """Return how an answer ended that ended by itself."""
    return _ENDS[reason]
