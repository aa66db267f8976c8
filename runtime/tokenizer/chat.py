"""A model's tokenizer as the engine uses it: conversations in, ids out, and back."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.errors import LarderError
from runtime.protocol.chat import ChatMessage, Role
from runtime.protocol.errors import ErrorCode
from runtime.tokenizer.encoder import PromptEncoder, Words
from runtime.tokenizer.files import TokenizerFiles, read_tokenizer_files
from runtime.tokenizer.placing import PlacedPrompt, Span, place_texts
from runtime.tokenizer.stream import DecodeStream, DecodeTable
from runtime.tokenizer.template import ChatTemplate, Clock, local_time

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class ChatTokenizer:
    """Vocabulary and chat template of one model. Threads: one thread at a time.

    Ids that the engine generated are put into later prompts as they are; words that people typed
    never become control tokens.
    """

    def __init__(
        self, tokenizer: "Tokenizer", files: TokenizerFiles, clock: Clock = local_time
    ) -> None:
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
        eos = files.special_tokens.get("eos_token", "")
        eos_id = tokenizer.token_to_id(eos) if eos else None
        named = [item for item in files.eos_ids if item < self.vocabulary_size]
        self.eos_ids: tuple[int, ...] = tuple(
            dict.fromkeys(named + ([eos_id] if eos_id is not None else []))
        )
        """Ids that end an answer: of the generation settings, the config and the tokenizer."""

    @classmethod
    def load(cls, folder: str | os.PathLike[str], clock: Clock = local_time) -> "ChatTokenizer":
        """Return the tokenizer of a model folder.

        Raises ``LarderError`` with ``TOKENIZER_MISSING``, ``TOKENIZER_INVALID``,
        ``CHAT_TEMPLATE_MISSING`` or ``CHAT_TEMPLATE_INVALID``.
        """
        from tokenizers import Tokenizer

        files = read_tokenizer_files(Path(folder))
        try:
            tokenizer = Tokenizer.from_file(str(files.tokenizer_path))
        # The library raises plain Exception for every kind of bad file.
        except Exception as error:
            raise LarderError(
                ErrorCode.TOKENIZER_INVALID, file=str(files.tokenizer_path), reason=str(error)
            ) from error
        return cls(tokenizer, files, clock)

    def encode_conversation(
        self, messages: Sequence[ChatMessage], add_generation_prompt: bool = True
    ) -> list[int]:
        """Return the prompt of a conversation.

        An assistant message with ``token_ids`` is put in verbatim where the template left its text
        unchanged. Raises ``LarderError`` with ``CONVERSATION_INVALID`` where the template refuses,
        ``CHAT_TEMPLATE_INVALID`` where it fails.
        """
        prompt = self._place(messages, add_generation_prompt)
        words: list[Words] = []
        kept: list[tuple[Span, list[int]]] = []
        for message, span in zip(messages, prompt.spans, strict=True):
            if span is None:
                continue
            ids = self._kept_ids(message, prompt.text[span.start : span.end])
            if ids:
                kept.append((span, ids))
            else:
                words.append(Words(span, message.role is Role.ASSISTANT))
        return self._assemble(prompt.text, words, sorted(kept, key=lambda item: item[0].start))

    def encode_text(self, text: str) -> list[int]:
        """Return the ids of plain text: nothing is added, nothing in it is a control token."""
        return self._encoder.encode(text, [Words(Span(0, len(text)))])

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without special tokens."""
        stream = self.stream()
        return stream.push(ids) + stream.finish()

    def stream(self) -> DecodeStream:
        """Return a new stream that turns the ids of one answer into text."""
        return self._table.stream()

    def _place(self, messages: Sequence[ChatMessage], add_generation_prompt: bool) -> PlacedPrompt:
        """Render and find the messages; break control tokens in words that cannot be found."""
        roles = [message.role for message in messages]

        def render(texts: Sequence[str]) -> str:
            return self._template.render(
                [
                    {"role": role.value, "content": text}
                    for role, text in zip(roles, texts, strict=True)
                ],
                add_generation_prompt,
            )

        is_answer = [role is Role.ASSISTANT for role in roles]
        texts = [message.text for message in messages]
        prompt = place_texts(render, texts, is_answer)
        safe = [
            text if span is not None else self._encoder.broken(text, has_tags=answer)
            for text, span, answer in zip(texts, prompt.spans, is_answer, strict=True)
        ]
        return prompt if safe == texts else place_texts(render, safe, is_answer)

    def _kept_ids(self, message: ChatMessage, shown: str) -> list[int]:
        """Return the generated ids that may stand for the shown text, empty if none may."""
        ids = list(message.token_ids)
        while ids and ids[-1] in self.eos_ids:
            ids.pop()  # the template writes the end of the turn itself
        if message.role is not Role.ASSISTANT or not ids or shown != message.text:
            return []
        if not all(0 <= token_id < self.vocabulary_size for token_id in ids):
            return []
        # A stop string may have ended the text before its ids.
        return ids if self.decode(ids).startswith(shown) else []

    def _assemble(
        self, text: str, words: Sequence[Words], kept: Sequence[tuple[Span, list[int]]]
    ) -> list[int]:
        """Encode the pieces between kept ids and put everything together."""
        ids: list[int] = []
        position = 0
        for span, inserted in [*kept, (Span(len(text), len(text)), [])]:
            ids += self._encode_piece(text, position, span.start, words)
            ids += inserted
            position = span.end
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
