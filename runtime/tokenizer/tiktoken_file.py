"""Reads vocabularies as the tiktoken library writes them: in each line a piece and its number.

Such a file does not say how text is cut before its pieces are merged: that stands in code beside
it, which is not run. So the known ways are kept here, by the families that use them.
"""

import base64
import binascii
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from runtime.tokenizer.pieces import MAX_PIECE_LENGTH, merges_of
from runtime.tokenizer.stream import byte_characters

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_FIRST_LINE = re.compile(rb"\s*[A-Za-z0-9+/]+={0,2} \d+\s*\n")
_ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_CL100K = rf"{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}|{_REST}"
_CAPITAL = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]"
_SMALL = r"\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]"
_KIMI = "|".join(
    (
        r"[\p{Han}]+",
        rf"[^\r\n\p{{L}}\p{{N}}]?[{_CAPITAL}]*[{_SMALL}]+{_ENDINGS}?",
        rf"[^\r\n\p{{L}}\p{{N}}]?[{_CAPITAL}]+[{_SMALL}]*{_ENDINGS}?",
        r"\p{N}{1,3}",
        _REST,
    )
)
PATTERNS = {
    "chatglm": _CL100K,
    "glm4": _CL100K,
    "glm4_moe": _CL100K,
    "kimi_k2": _KIMI,
    "kimi_k25": _KIMI,
    "kimi_linear": _KIMI,
    "llama": _CL100K,
    "llama4": _CL100K,
}
"""How the families with such files cut text, by ``model_type``."""


def is_tiktoken(data: bytes) -> bool:
    """Whether the content of a file is of this kind."""
    return _FIRST_LINE.match(data[:4096]) is not None


def read_tiktoken(data: bytes, model_type: str) -> "Tokenizer":
    """Return the tokenizer of a file; raise ``ValueError`` with what is wrong with it."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    pattern = PATTERNS.get(model_type)
    if pattern is None:
        raise ValueError(
            f"how the family {model_type or 'without a name'} cuts text stands in code, which is"
            " not run; a tokenizer.json is needed"
        )
    ranks = _ranks_of(data)
    spell = _speller()
    tokenizer = Tokenizer(
        models.BPE(
            vocab={spell(piece): rank for piece, rank in ranks.items()},
            merges=merges_of(ranks, spell),
            ignore_merges=True,
        )
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _ranks_of(data: bytes) -> dict[bytes, int]:
    """Return the pieces with their ids."""
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(data.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            encoded, rank = line.split()
            piece = base64.b64decode(encoded, validate=True)
            ranks[piece] = int(rank)
        except (ValueError, binascii.Error) as error:
            raise ValueError(f"line {number} is not a piece and its number") from error
        if not 0 < len(piece) <= MAX_PIECE_LENGTH:
            raise ValueError(f"line {number} has a piece of {len(piece)} bytes")
    if sorted(ranks.values()) != list(range(len(ranks))):
        raise ValueError("its numbers are not 0, 1, 2 and so on, each once")
    missing = [byte for byte in range(256) if bytes([byte]) not in ranks]
    if missing:
        raise ValueError(f"it has no piece for the byte {missing[0]}")
    return ranks


def _speller() -> Callable[[bytes], str]:
    """Return what writes bytes as the printable characters that stand for them."""
    character_of = {byte: character for character, byte in byte_characters().items()}
    return lambda piece: "".join(character_of[byte] for byte in piece)
