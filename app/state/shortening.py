"""Having the loaded model sum up the beginning of a chat, to be told in its place."""

import dataclasses
from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal

from app.state.chat_values import Message
from app.state.session import Session
from runtime.protocol.chat import ChatMessage, Role, SamplingSettings
from runtime.protocol.messages import (
    CommandFailed,
    GenerationCancelled,
    GenerationFinished,
    Reply,
    TokensGenerated,
)

_FILLED_RATIO = 0.6
"""Of the context, at most, for what is summed up; the rest is for the summary and its thinking."""
_ANSWER_RATIO = 0.3
_ASKED = (
    "Sum up the conversation below for yourself, so that you can go on with it without its words:"
    " what the person wants, what was found out and decided, names, numbers and open questions."
    " At most 200 words, in the language of the conversation, without any preface."
)
_NAMES = {Role.USER: "Person", Role.ASSISTANT: "You", Role.SYSTEM: "Instructions"}
_CUT = "\n[…]\n"


@dataclasses.dataclass(frozen=True, slots=True)
class Shortened:
    """What stands for the beginning of a chat."""

    chat_id: int
    first_id: int
    """Messages from this id on are told as they are."""
    summary: str


def transcript_of(messages: Sequence[Message], before: str, max_characters: int) -> str:
    """Return a conversation as one text; of one that is too long, the middle is left out."""
    parts = [f"{_NAMES[message.role]}: {message.text}" for message in messages]
    text = "\n\n".join([*([f"Before that: {before}"] if before else []), *parts])
    if len(text) <= max_characters:
        return text
    half = max(0, max_characters - len(_CUT)) // 2
    return text[:half] + _CUT + text[len(text) - half :]


class Shortening(QObject):
    """One summary at a time, written like an answer that nobody sees. Threads: window thread."""

    changed = Signal()
    done = Signal(object)
    """A ``Shortened``."""
    failed = Signal(object)
    """An ``ErrorReport``; None if the model wrote nothing."""

    def __init__(self, session: Session, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._asked: Shortened | None = None
        self._text = ""
        session.answer_lost.connect(self._end)

    @property
    def is_running(self) -> bool:
        """Whether a summary is being written."""
        return self._asked is not None

    def begin(
        self, asked: Shortened, messages: Sequence[Message], characters_per_token: float
    ) -> bool:
        """Have messages summed up, with the summary before them; False if nobody can do that."""
        loaded = self._session.loaded
        if loaded is None or self.is_running:
            return False
        room = int(loaded.context_tokens * _FILLED_RATIO * characters_per_token)
        text = transcript_of(messages, asked.summary, room)
        question = ChatMessage(role=Role.USER, text=f"{_ASKED}\n\n{text}")
        sampling = SamplingSettings(
            temperature=0.0, max_tokens=max(1, int(loaded.context_tokens * _ANSWER_RATIO))
        )
        self._asked, self._text = asked, ""
        if not self._session.start_answer([question], sampling, self._on_event):
            self._asked = None
            return False
        self.changed.emit()
        return True

    def _on_event(self, event: Reply) -> None:
        asked = self._asked
        if asked is None:
            return
        if isinstance(event, TokensGenerated):
            self._text += event.text
            return
        if isinstance(event, GenerationFinished):
            self._end()
            text = self._text.strip()
            if text:
                self.done.emit(dataclasses.replace(asked, summary=text))
            else:
                self.failed.emit(None)
        elif isinstance(event, CommandFailed):
            self._end()
            self.failed.emit(event.error)
        elif isinstance(event, GenerationCancelled):
            self._end()

    def _end(self) -> None:
        if self._asked is not None:
            self._asked = None
            self.changed.emit()
