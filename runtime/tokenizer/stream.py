"""Ids to text piece by piece: only text that no later id can change."""

import codecs
import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_REPLACEMENT = "\ufffd"
_MAX_HELD_IDS = 16
"""Ids held back while their text ends in a broken character; no character takes more."""


class DecodeStream(Protocol):
    """The text of one answer while its ids arrive. Threads: one thread at a time.

    All pieces together are the decoded text of all ids, however these are divided. Special tokens
    are not shown. The work per id does not grow with the answer.
    """

    def push(self, ids: Iterable[int]) -> str:
        """Return the text that became certain with these ids; may be empty."""

    def finish(self) -> str:
        """Return the rest; bytes that never became a character show as U+FFFD."""


class DecodeTable:
    """What decoding needs to know of a tokenizer, gathered once."""

    def __init__(self, tokenizer: "Tokenizer") -> None:
        self.tokenizer = tokenizer
        self.special_ids = frozenset(
            token_id
            for token_id, token in tokenizer.get_added_tokens_decoder().items()
            if token.special
        )
        kinds = _decoder_kinds(tokenizer)
        self.is_byte_level = kinds == ["ByteLevel"]
        self.has_byte_tokens = "ByteFallback" in kinds
        self._byte_of = byte_characters() if self.is_byte_level else {}

    def stream(
        self, shown_ids: frozenset[int] = frozenset(), end_ids: frozenset[int] = frozenset()
    ) -> DecodeStream:
        """Return a new stream of the fitting kind.

        Special tokens in ``shown_ids`` are shown, others and ``end_ids`` are not.
        """
        hidden_ids = (self.special_ids | end_ids) - shown_ids
        if self.is_byte_level:
            return _ByteLevelStream(self, hidden_ids)
        return _WindowStream(self, hidden_ids)

    def bytes_of(self, token_id: int) -> bytes:
        """Return the bytes of a token of a byte-level vocabulary."""
        token = self.tokenizer.id_to_token(token_id) or ""
        try:
            return bytes([self._byte_of[character] for character in token])
        except KeyError:
            return token.encode("utf-8")

    def fallback_byte(self, token_id: int) -> bytes:
        """Return the byte that a token like ``<0x0A>`` stands for, empty for other tokens."""
        if not self.has_byte_tokens:
            return b""
        match = _BYTE_TOKEN.fullmatch(self.tokenizer.id_to_token(token_id) or "")
        return bytes([int(match.group(1), 16)]) if match else b""


def _decoder_kinds(tokenizer: "Tokenizer") -> list[str]:
    """Return the names of the decoding steps."""
    if tokenizer.decoder is None:
        return []
    state = json.loads(tokenizer.decoder.__getstate__())
    steps = state["decoders"] if state["type"] == "Sequence" else [state]
    return [str(step["type"]) for step in steps]


def byte_characters() -> dict[str, int]:
    """Return the printable stand-in of each byte in byte-level vocabularies, the other way round.

    Printable Latin-1 bytes stand for themselves, the other bytes in order for U+0100 and up.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    table = {chr(byte): byte for byte in printable}
    others = (byte for byte in range(256) if byte not in printable)
    return table | {chr(0x100 + index): byte for index, byte in enumerate(others)}


class _ByteLevelStream:
    """Text of a vocabulary whose tokens are bytes: a running UTF-8 decoder."""

    def __init__(self, table: DecodeTable, hidden_ids: frozenset[int]) -> None:
        self._table = table
        self._hidden_ids = hidden_ids
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, ids: Iterable[int]) -> str:
        data = b"".join(
            self._table.bytes_of(token_id) for token_id in ids if token_id not in self._hidden_ids
        )
        return self._decoder.decode(data)

    def finish(self) -> str:
        text = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return text


class _WindowStream:
    """Text of any other vocabulary: decode the new ids after a few that were shown already.

        shown ... | context | held |      text(context + held) minus text(context) is new

    The context keeps a leading space from being taken for the start of the text. Byte tokens go
    through a running UTF-8 decoder instead.
    """

    def __init__(self, table: DecodeTable, hidden_ids: frozenset[int]) -> None:
        self._table = table
        self._hidden_ids = hidden_ids
        self._context: list[int] = []
        self._held: list[int] = []
        self._bytes = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, ids: Iterable[int]) -> str:
        return "".join(
            self._push_one(token_id) for token_id in ids if token_id not in self._hidden_ids
        )

    def finish(self) -> str:
        text = self._bytes.decode(b"", final=True) + self._flush()
        self._bytes.reset()
        self._context = []
        return text

    def _push_one(self, token_id: int) -> str:
        byte = self._table.fallback_byte(token_id)
        if byte:
            text = self._flush() + self._bytes.decode(byte)
            self._context = [token_id]
            return text
        text = self._bytes.decode(b"", final=True)
        self._bytes.reset()
        self._held.append(token_id)
        new = self._new_text()
        is_open = not new or new.endswith(_REPLACEMENT)
        if is_open and len(self._held) < _MAX_HELD_IDS:
            return text
        return text + self._flush()

    def _new_text(self) -> str:
        decode = self._table.tokenizer.decode
        shown = decode(self._context, skip_special_tokens=False) if self._context else ""
        return decode(self._context + self._held, skip_special_tokens=False)[len(shown) :]

    def _flush(self) -> str:
        if not self._held:
            return ""
        new = self._new_text()
        if new or self._context:
            self._context = self._held[-1:] if new else self._context
        self._held = []
        return new
