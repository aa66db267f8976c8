"""Prompt text to ids, with control tokens recognised only where the template wrote them."""

import dataclasses
import json
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode
from runtime.tokenizer.placing import Span

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

_CONTROL_CHARACTERS = re.compile(r"[<>\[\]|｜]")
_PLAIN_TAG = re.compile(r"</?\w+>")
_MAX_ROUNDS = 8
_BREAK = "\u200b"
_FILLERS = ("x", "q", "z", *map(chr, range(0xE000, 0xF8FF)))


@dataclasses.dataclass(frozen=True, slots=True)
class Words:
    """A stretch of a prompt that a person or a model wrote.

    With ``has_tags`` plain tags such as ``<think>`` keep their meaning there, as in answers.
    """

    span: Span
    has_tags: bool = False

    def overlap(self, start: int, end: int) -> Span | None:
        """Return the characters shared with ``start`` to ``end``."""
        shared = Span(max(start, self.span.start), min(end, self.span.end))
        return shared if shared.start < shared.end else None


class PromptEncoder:
    """Encodes pieces of a prompt so that typed control tokens stay ordinary text.

    A control token is an added token that is special, or holds a bracket or a bar; added words and
    runs of spaces are ordinary. A piece without typed control tokens, the usual case, gets the very
    ids that the tokenizer gives it. Threads: one thread at a time.
    """

    def __init__(self, tokenizer: "Tokenizer") -> None:
        self._tokenizer = tokenizer
        added = tokenizer.get_added_tokens_decoder()
        self._controls: set[int] = set()
        self._tags: set[int] = set()
        self._specials = {token_id for token_id, token in added.items() if token.special}
        self._anchor = ""
        for token_id, token in added.items():
            if not (token.special or _CONTROL_CHARACTERS.search(token.content)):
                continue
            self._controls.add(token_id)
            if not token.special and _PLAIN_TAG.fullmatch(token.content):
                self._tags.add(token_id)
            if token.special and not (token.lstrip or token.rstrip or token.single_word):
                self._anchor = self._anchor or token.content
        spelled = "".join(token.content for token in added.values())
        self._filler = next(filler for filler in _FILLERS if filler not in spelled.lower())
        """Stands for masked characters; part of no added token."""
        self._bare: _BareTokenizer | None = None

    def encode(
        self, text: str, words: Sequence[Words] = (), *, is_continuation: bool = False
    ) -> list[int]:
        """Return the ids of a piece of a prompt.

        ``is_continuation`` says that other ids go before it, so that tokenizers which put a space
        before the first word do not.
        """
        encoding, skip = self._encode(text, is_continuation)
        if self._typed(encoding, skip, text, words):
            return self._encode_guarded(text, words, is_continuation=is_continuation)
        return list(encoding.ids[1:] if skip else encoding.ids)

    def first_control(self, text: str) -> int | None:
        """Return the special token with which a text of the template begins, None for words."""
        encoding, skip = self._encode(text, is_continuation=True)
        ids = encoding.ids[1 if skip else 0 :]
        return ids[0] if ids and ids[0] in self._specials else None

    def broken(self, text: str, *, has_tags: bool) -> str:
        """Return the words with each control token in them broken by an invisible character.

        Where the tokenizer ignores that character, the token is left out.
        """
        num_rounds = 0
        while typed := self._typed_alone(text, has_tags):
            num_rounds += 1
            for span in reversed(typed):
                broken = text[span.start] + _BREAK + text[span.start + 1 : span.end]
                kept = broken if num_rounds < _MAX_ROUNDS else ""
                text = text[: span.start] + kept + text[span.end :]
        return text

    def _typed_alone(self, text: str, has_tags: bool) -> list[Span]:
        """Return what of words by themselves would be taken for control tokens."""
        encoding, skip = self._encode(text, is_continuation=False)
        return self._typed(encoding, skip, text, [Words(Span(0, len(text)), has_tags)])

    def _encode(self, text: str, is_continuation: bool) -> tuple["Encoding", int]:
        """Return an encoding, and how many characters of an anchor go before the text in it."""
        anchor = self._anchor if is_continuation else ""
        return self._tokenizer.encode(anchor + text, add_special_tokens=False), len(anchor)

    def _typed(
        self, encoding: "Encoding", skip: int, text: str, words: Sequence[Words]
    ) -> list[Span]:
        """Return what of the words was taken for control tokens."""
        found: list[Span] = []
        for token_id, start, end in self._control_positions(encoding, skip):
            core = text[start:end].strip()
            core_start = text.find(core, start)
            for stretch in words:
                if stretch.has_tags and token_id in self._tags:
                    continue
                if shared := stretch.overlap(core_start, core_start + len(core)):
                    found.append(shared)
        return found

    def _control_positions(self, encoding: "Encoding", skip: int) -> Iterator[tuple[int, int, int]]:
        ids, offsets = encoding.ids, encoding.offsets
        for index in range(1 if skip else 0, len(ids)):
            if ids[index] in self._controls:
                start, end = offsets[index]
                yield ids[index], start - skip, end - skip

    def _encode_guarded(
        self, text: str, words: Sequence[Words], *, is_continuation: bool
    ) -> list[int]:
        """Find the true control tokens in a masked copy, encode what lies between them bare.

        Raises ``LarderError`` with ``TOKENIZER_INVALID`` where even the filler is taken for one.
        """
        masked = text
        encoding, skip = self._encode(masked, is_continuation)
        while typed := self._typed(
            encoding, skip, masked, words
        ):  # each round leaves fewer characters that are not fillers
            before = masked
            for span in typed:
                filler = self._filler * (span.end - span.start)
                masked = masked[: span.start] + filler + masked[span.end :]
            if masked == before:
                raise LarderError(
                    ErrorCode.TOKENIZER_INVALID,
                    file="tokenizer.json",
                    reason="it takes ordinary characters for a control token",
                )
            encoding, skip = self._encode(masked, is_continuation)
        ids: list[int] = []
        position = 0
        for token_id, start, end in self._control_positions(encoding, skip):
            ids += self._encode_bare(text[position:start], has_prefix=skip == 0 and position == 0)
            ids.append(token_id)
            position = end
        return ids + self._encode_bare(text[position:], has_prefix=skip == 0 and position == 0)

    def _encode_bare(self, text: str, *, has_prefix: bool) -> list[int]:
        """Return the ids of text in which nothing is a control token."""
        if not text:
            return []
        if self._bare is None or self._bare.anchor in text:
            self._bare = _BareTokenizer(self._tokenizer, self._controls, text)
        return self._bare.encode(text, has_prefix=has_prefix)


class _BareTokenizer:
    """A copy of a tokenizer that knows no control tokens but its own ``anchor``.

    The anchor stands before text that is not the first of a prompt and is dropped again. Ids are
    found by the tokens' names, since removing added tokens moves the ids of the others.
    """

    def __init__(self, tokenizer: "Tokenizer", controls: set[int], text: str) -> None:
        from tokenizers import AddedToken, Tokenizer

        nonce = 0
        while (anchor := f"\ue0f4{nonce}\ue0f5") in text:
            nonce += 1
        self.anchor = anchor
        self._original = tokenizer
        self._controls = controls
        document = json.loads(tokenizer.to_str())
        document["added_tokens"] = [
            token for token in document["added_tokens"] if token["id"] not in controls
        ]
        self._tokenizer = Tokenizer.from_str(json.dumps(document))
        self._tokenizer.add_special_tokens([AddedToken(anchor, normalized=False)])

    def encode(self, text: str, *, has_prefix: bool) -> list[int]:
        ids: list[int] = []
        for token, (start, end) in self._tokens(text, has_prefix=has_prefix):
            token_id = self._original.token_to_id(token)
            if token_id is not None and token_id not in self._controls:
                ids.append(token_id)
            elif end - start > 1:
                # The vocabulary itself holds the control token: spell it.
                for character in text[start:end]:
                    ids += self.encode(character, has_prefix=False)
        return ids

    def _tokens(self, text: str, *, has_prefix: bool) -> list[tuple[str, tuple[int, int]]]:
        if has_prefix:
            encoding = self._tokenizer.encode(text, add_special_tokens=False)
            return list(zip(encoding.tokens, encoding.offsets, strict=True))
        skip = len(self.anchor)
        encoding = self._tokenizer.encode(self.anchor + text, add_special_tokens=False)
        offsets = [(start - skip, end - skip) for start, end in encoding.offsets]
        return list(zip(encoding.tokens, offsets, strict=True))[1:]
