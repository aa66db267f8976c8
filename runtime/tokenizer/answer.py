"""The ids of one answer as thinking and answer, piece by piece."""

import dataclasses
from collections.abc import Iterable, Sequence

from runtime.tokenizer.channels import CHANNEL, CHANNEL_MARKS, MESSAGE, ChannelSeparator
from runtime.tokenizer.separation import Parted, Separator
from runtime.tokenizer.spoken import RESPONSE, THOUGHT, SpokenSeparator
from runtime.tokenizer.stream import DecodeStream, DecodeTable
from runtime.tokenizer.tags import TAGS, THINKING_TAGS, TagSeparator


def separator_of(
    *, has_channels: bool, opened_by: str = "", is_announced: bool = False
) -> Separator:
    """Return what parts one answer."""
    if is_announced:
        return SpokenSeparator()
    return ChannelSeparator() if has_channels else TagSeparator(opened_by)


def opening_tag(tail: str) -> str:
    """Return the tag that a prompt leaves open at its end, empty if it does not."""
    tail = tail.rstrip()
    return next((tag for tag in THINKING_TAGS if tail.endswith(tag)), "")


@dataclasses.dataclass(frozen=True, slots=True)
class AnswerMarks:
    """How a model marks its thinking: in channels or words if its template has them, or tags."""

    has_channels: bool
    shown_ids: frozenset[int]
    """Special tokens that are markers, or the beginning of one."""
    is_announced: bool = False

    @classmethod
    def of(cls, table: DecodeTable, template: str) -> "AnswerMarks":
        """Return the marks of a model."""
        has_channels = CHANNEL in template and MESSAGE in template
        marks = CHANNEL_MARKS if has_channels else TAGS
        shown = {
            token_id
            for token_id in table.special_ids
            if (name := table.tokenizer.id_to_token(token_id))
            and any(mark.startswith(name) for mark in marks)
        }
        return cls(has_channels, frozenset(shown), THOUGHT in template and RESPONSE in template)


class AnswerStream:
    """Parts one answer while its ids arrive. Threads: one thread at a time."""

    def __init__(self, stream: DecodeStream, separator: Separator) -> None:
        self._stream = stream
        self._separator = separator

    @property
    def is_thinking(self) -> bool:
        """Whether the text that comes next is thinking."""
        return self._separator.is_thinking

    def push(self, ids: Iterable[int]) -> Parted:
        """Return what became certain with these ids; may be empty."""
        return self._separator.feed(self._stream.push(ids))

    def finish(self) -> Parted:
        """Return the rest."""
        return self._separator.feed(self._stream.finish()) + self._separator.finish()


class MarkedText:
    """The text of an answer's ids with the markers in it, and where each id begins there."""

    def __init__(self, stream: DecodeStream, ids: Sequence[int]) -> None:
        pieces: list[str] = []
        self.starts: list[int] = []
        length = 0
        for token_id in ids:
            self.starts.append(length)
            pieces.append(stream.push((token_id,)))
            length += len(pieces[-1])
        self.text = "".join(pieces) + stream.finish()
