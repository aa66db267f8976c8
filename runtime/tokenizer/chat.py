"""A model's tokenizer as the engine uses it: conversations in, ids out, and back."""

import contextlib
import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.errors import LarderError
from runtime.protocol.chat import ChatMessage, Role
from runtime.tokenizer.answer import AnswerMarks, AnswerStream, opening_tag, separator_of
from runtime.tokenizer.encoder import PromptEncoder, Words
from runtime.tokenizer.files import TokenizerFiles
from runtime.tokenizer.keeping import IdKeeper, Kept
from runtime.tokenizer.placing import PlacedPrompt, Span, place_texts
from runtime.tokenizer.source import tokenizer_files
from runtime.tokenizer.stream import DecodeStream, DecodeTable
from runtime.tokenizer.template import TOO_LONG, ChatTemplate, Clock, local_time
from runtime.tokenizer.turns import are_answers, as_template_sees, named, words_of
from runtime.tokenizer.vocabulary import panics_as_errors, read_tokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer


_SAMPLE = ((Role.USER, "Hello"), (Role.ASSISTANT, "Welcome"))


@dataclasses.dataclass(frozen=True, slots=True)
class Begun:
    """The beginning of an answer, which is the end of its prompt."""

    ids: list[int]
    """Those that an ``AnswerStream`` has to see first."""
    thinking: str = ""
    """What had been thought before ``ids``."""


@dataclasses.dataclass(frozen=True, slots=True)
class Prompt:
    """A conversation as the model reads it."""

    ids: list[int]
    opened_by: str = ""
    """The tag that the prompt leaves open at its end, so that the answer begins with thinking."""
    begun: Begun | None = None
    """The answer that goes on, where the conversation ends with one."""


class ChatTokenizer:
    """Vocabulary and chat template of one model. Threads: one thread at a time.

    Ids that the engine generated are put into later prompts as they are; words that people typed
    never become control tokens.
    """

    def __init__(
        self, tokenizer: "Tokenizer", files: TokenizerFiles, clock: Clock = local_time
    ) -> None:
        self._path = files.tokenizer_path
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self._template = ChatTemplate(files.template, files.special_tokens, clock)
        self._encoder = PromptEncoder(tokenizer)
        self._table = DecodeTable(tokenizer)
        added = tokenizer.get_added_tokens_decoder()
        self.vocabulary_size: int = max(
            tokenizer.get_vocab_size(with_added_tokens=False), *(item + 1 for item in added), 0
        )
        """Highest id that can be encoded or decoded, plus one."""
        bos = files.special_tokens.get("bos_token", "")
        self.bos_id: int | None = tokenizer.token_to_id(bos) if bos else None
        self._marks = AnswerMarks.of(self._table, files.template)
        eos = files.special_tokens.get("eos_token", "")
        eos_ids = [*files.eos_ids, tokenizer.token_to_id(eos) if eos else None, self._turn_end()]
        self.eos_ids: tuple[int, ...] = tuple(
            dict.fromkeys(
                item for item in eos_ids if item is not None and item < self.vocabulary_size
            )
        )
        """Ids that end an answer: of the generation settings, the config, the tokenizer and the
        token that the template writes behind an answer."""
        self._keeper = IdKeeper(self._table, self._marks, self.eos_ids, self.vocabulary_size)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], clock: Clock = local_time) -> "ChatTokenizer":
        """Return the tokenizer of a model folder or of a GGUF file.

        Raises ``LarderError`` with ``TOKENIZER_MISSING``, ``TOKENIZER_INVALID``,
        ``CHAT_TEMPLATE_MISSING`` or ``CHAT_TEMPLATE_INVALID``.
        """
        files = tokenizer_files(Path(folder))
        return cls(read_tokenizer(files), files, clock)

    def prompt(self, messages: Sequence[ChatMessage], add_generation_prompt: bool = True) -> Prompt:
        """Return the prompt of a conversation.

        The ids of an assistant message are put in verbatim where the template left its text
        unchanged. Raises ``LarderError`` with ``CONVERSATION_INVALID`` where the template refuses,
        ``CHAT_TEMPLATE_INVALID`` where it fails; both name the turn.
        """
        with panics_as_errors(self._path):
            return self._prompt(messages, add_generation_prompt)

    def continued(self, messages: Sequence[ChatMessage]) -> Prompt:
        """Return the prompt that ends with the last message, an answer, as far as it was written.

        Its own ids follow the prompt of its question, so that it goes on as if it had never been
        cut. Without them its text stands where the template puts answers. Raises as ``prompt``.
        """
        *before, answer = messages
        with panics_as_errors(self._path):
            asked = self._prompt(before, add_generation_prompt=True)
            ids = self._keeper.usable(answer)
            if ids and self._are_ids_of(ids, answer, asked.opened_by):
                return dataclasses.replace(asked, ids=asked.ids + ids, begun=Begun(ids))
            if not answer.text.strip():
                return asked
            placed = self._place(messages, add_generation_prompt=False)
            span = placed.spans[len(before)]
            shown = self._encoder.encode(answer.text, [Words(Span(0, len(answer.text)), True)])
            begun = Begun(shown, answer.thinking)
            if span is None:
                return Prompt(asked.ids + shown, begun=begun)
            cut = PlacedPrompt(placed.text[: span.end], placed.spans)
            return Prompt(self._ids_of(messages, cut), begun=begun)

    def _are_ids_of(self, ids: Sequence[int], answer: ChatMessage, opened_by: str) -> bool:
        """Whether ids say what an answer says, or more that was still held back."""
        stream = self.answer_stream(opened_by)
        said = stream.push(ids) + stream.finish()
        return said.thinking.startswith(answer.thinking) and said.answer.startswith(answer.text)

    def _prompt(self, messages: Sequence[ChatMessage], add_generation_prompt: bool) -> Prompt:
        placed = self._place(messages, add_generation_prompt)
        tail = placed.text[max((span.end for span in placed.spans if span), default=0) :]
        opened_by = opening_tag(tail) if add_generation_prompt else ""
        return Prompt(self._ids_of(messages, placed), opened_by)

    def _ids_of(self, messages: Sequence[ChatMessage], placed: PlacedPrompt) -> list[int]:
        kept = self._keeper.kept(messages, placed)
        words = [
            Words(span, is_answer)
            for span, is_answer in zip(placed.spans, are_answers(messages), strict=True)
            if span is not None and not any(each.span.covers(span) for each in kept)
        ]
        return self._assemble(placed.text, words, kept)

    def encode_conversation(
        self, messages: Sequence[ChatMessage], add_generation_prompt: bool = True
    ) -> list[int]:
        """Return the ids of the prompt of a conversation; see ``prompt``."""
        return self.prompt(messages, add_generation_prompt).ids

    def encode_text(self, text: str) -> list[int]:
        """Return the ids of plain text: nothing is added, nothing in it is a control token."""
        with panics_as_errors(self._path):
            return self._encoder.encode(text, [Words(Span(0, len(text)))])

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without special tokens."""
        stream = self.stream()
        return stream.push(ids) + stream.finish()

    def stream(self) -> DecodeStream:
        """Return a new stream that turns ids into text."""
        return self._table.stream()

    def answer_stream(self, opened_by: str = "") -> AnswerStream:
        """Return a new stream that parts the ids of one answer; see ``Prompt.opened_by``."""
        return AnswerStream(
            self._table.stream(self._marks.shown_ids, frozenset(self.eos_ids)),
            separator_of(
                has_channels=self._marks.has_channels,
                opened_by=opened_by,
                is_announced=self._marks.is_announced,
            ),
        )

    def _place(self, messages: Sequence[ChatMessage], add_generation_prompt: bool) -> PlacedPrompt:
        """Render and find the words; break control tokens in those that cannot be found.

        An error names the turn that it begins with.
        """

        def render(words: Sequence[str]) -> str:
            return self._render(messages, words, add_generation_prompt)

        is_answer = are_answers(messages)
        words = words_of(messages)
        try:
            prompt = place_texts(render, words, is_answer)
            safe = [
                text if span is not None else self._encoder.broken(text, has_tags=answer)
                for text, span, answer in zip(words, prompt.spans, is_answer, strict=True)
            ]
            return prompt if safe == words else place_texts(render, safe, is_answer)
        except LarderError as error:
            if error.detail == TOO_LONG:
                raise
            raise named(
                error,
                messages,
                lambda first: self._render(first, words_of(first), add_generation_prompt),
            ) from error

    def _turn_end(self) -> int | None:
        """Return the control token that the template writes right behind an answer, if any does."""
        with contextlib.suppress(LarderError), panics_as_errors(self._path):
            talk = [ChatMessage(role=role, text=text) for role, text in _SAMPLE]
            placed = self._place(talk, add_generation_prompt=False)
            span = placed.spans[-1]
            if span is not None:
                return self._encoder.first_control(placed.text[span.end :].lstrip())
        return None

    def _render(
        self, messages: Sequence[ChatMessage], words: Sequence[str], add_generation_prompt: bool
    ) -> str:
        return self._template.render(as_template_sees(messages, words), add_generation_prompt)

    def _assemble(self, text: str, words: Sequence[Words], kept: Sequence[Kept]) -> list[int]:
        """Encode the pieces between kept ids and put everything together."""
        ids: list[int] = []
        position = 0
        for each in [*kept, Kept(Span(len(text), len(text)), [])]:
            ids += self._encode_piece(text, position, each.span.start, words)
            ids += each.ids
            position = each.span.end
        return ids

    def _encode_piece(self, text: str, start: int, end: int, words: Sequence[Words]) -> list[int]:
        """Return the ids of one piece of the prompt."""
        if start == end:
            return []
        inside = [
            Words(Span(shared.start - start, shared.end - start), stretch.has_tags)
            for stretch in words
            if (shared := stretch.overlap(start, end))
        ]
        return self._encoder.encode(text[start:end], inside, is_continuation=start > 0)
