"""Which generated ids may stand in a later prompt for the words that they made."""

import dataclasses
from collections.abc import Sequence

from runtime.protocol.chat import ChatMessage, Role
from runtime.tokenizer.answer import AnswerMarks, MarkedText
from runtime.tokenizer.placing import PlacedPrompt, Span
from runtime.tokenizer.stream import DecodeTable
from runtime.tokenizer.turns import thinkers


@dataclasses.dataclass(frozen=True, slots=True)
class Kept:
    """Ids that stand for a stretch of a prompt."""

    span: Span
    ids: list[int]


class IdKeeper:
    """Finds the ids of earlier answers that can be put into a prompt as they are.

    Of an answer with thinking all ids are kept where the template tells the thinking again as it
    was, and those of the answer alone where it leaves the thinking out.
    """

    def __init__(
        self,
        table: DecodeTable,
        marks: AnswerMarks,
        eos_ids: Sequence[int],
        vocabulary_size: int,
    ) -> None:
        self._table = table
        self._marks = marks
        self._eos_ids = eos_ids
        self._vocabulary_size = vocabulary_size

    def usable(self, message: ChatMessage) -> list[int]:
        """Return the ids of an answer without those that end it; none that are not the model's."""
        ids = list(message.token_ids)
        while ids and ids[-1] in self._eos_ids:
            ids.pop()  # the template writes the end of the turn itself
        return ids if all(0 <= item < self._vocabulary_size for item in ids) else []

    def kept(self, messages: Sequence[ChatMessage], prompt: PlacedPrompt) -> list[Kept]:
        """Return what is kept of a conversation, in the order of the prompt."""
        thoughts = dict(zip(thinkers(messages), prompt.spans[len(messages) :], strict=True))
        found: list[Kept] = []
        for index, message in enumerate(messages):
            span = prompt.spans[index]
            if span is None or message.role is not Role.ASSISTANT:
                continue
            if prompt.text[span.start : span.end] != message.text:
                continue
            if each := self._keep(message, prompt, span, thoughts.get(index)):
                found.append(each)
        return sorted(found, key=lambda each: each.span.start)

    def _keep(
        self, message: ChatMessage, prompt: PlacedPrompt, span: Span, thought: Span | None
    ) -> Kept | None:
        ids = self.usable(message)
        if not ids:
            return None
        marked = MarkedText(self._table.stream(self._marks.shown_ids), ids)
        if thought is not None:
            whole = Span(thought.start - max(marked.text.find(message.thinking), 0), span.end)
            ends = [other.end for other in prompt.spans if other and other.end <= thought.start]
            is_clear = max(ends, default=0) <= whole.start
            if is_clear and marked.text.startswith(prompt.text[whole.start : whole.end]):
                return Kept(whole, ids)
        first = self._first_of_answer(marked, ids, message)
        return None if first is None else Kept(span, ids[first:])

    def _first_of_answer(
        self, marked: MarkedText, ids: Sequence[int], message: ChatMessage
    ) -> int | None:
        """Return the position of the id that the text of an answer begins with."""
        # A stop string may have ended the text before its ids.
        if marked.text.startswith(message.text):
            return 0
        after = marked.text.find(message.thinking) + len(message.thinking)
        hidden = self._table.special_ids
        for position, start in enumerate(marked.starts):
            if start < after or ids[position] in hidden:
                continue
            is_clean = self._marks.shown_ids.isdisjoint(ids[position:])
            if is_clean and marked.text.startswith(message.text, start):
                return position
        return None
