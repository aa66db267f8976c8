"""What a chat is made of, as plain values."""

import dataclasses
import enum

from runtime.protocol.chat import GenerationStats, Role


class AnswerEnd(enum.StrEnum):
    """How an answer came to its end."""

    GROWING = "growing"
    """It is being written now."""
    FINISHED = "finished"
    LENGTH = "length"
    """The limit of tokens per answer was reached."""
    CONTEXT_FULL = "context_full"
    STOPPED = "stopped"
    """By the person."""
    CUT_OFF = "cut_off"
    """The runtime or the window ended first; what had arrived is kept."""


CUT_ENDS = frozenset(
    {AnswerEnd.LENGTH, AnswerEnd.CONTEXT_FULL, AnswerEnd.STOPPED, AnswerEnd.CUT_OFF}
)
"""Ends after which an answer can go on."""


@dataclasses.dataclass(frozen=True, slots=True)
class ChatHeading:
    """One line of the list of chats."""

    chat_id: int
    title: str
    changed_at_s: float
    """Seconds since 1970."""
    is_pinned: bool = False
    """It stays at the top of the list."""
    folder: str = ""
    """The name of the folder it lies in; empty for none."""


@dataclasses.dataclass(frozen=True, slots=True)
class ChatDetails:
    """What a chat has beside its messages."""

    title: str
    changed_at_s: float = 0.0
    """Seconds since 1970; 0 if nobody knows."""
    is_pinned: bool = False
    folder: str = ""
    preset: str = ""
    summary: str = ""
    """What the model is told in place of the oldest messages."""
    told_from_id: int = 0
    """Messages from this id on are told to the model; 0 tells all."""


@dataclasses.dataclass(frozen=True, slots=True)
class Message:
    """One question or answer as it is shown."""

    message_id: int
    role: Role
    text: str
    token_ids: tuple[int, ...] = ()
    end: AnswerEnd = AnswerEnd.FINISHED
    stats: GenerationStats | None = None
    model_name: str = ""
    variant_index: int = 0
    """Which of the answers to the same question (or wordings of it) this is, from 0."""
    num_variants: int = 1
    thinking: str = ""
    """What an answer thought before its text."""


class ChatNotice(enum.Enum):
    """What a person has to know about how chats are kept."""

    DAMAGED_SET_ASIDE = "damaged_set_aside"
    """The parameter is the path of the damaged file."""
    RESTORED = "restored"
    """It was set aside and the copy put in its place; the parameter is the copy's time."""
    NOT_SAVED = "not_saved"
    """Chats are kept in memory only; the parameter is the reason."""
    SAVED_AGAIN = "saved_again"
    """What was kept in memory has been written."""
