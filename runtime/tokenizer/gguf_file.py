"""The vocabulary and the chat template that stand in the metadata of a GGUF file."""

import struct
from collections.abc import Container, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from runtime.errors import LarderError
from runtime.inspect.files import read_range
from runtime.inspect.gguf.header import TEXT, GgufHeader, ListPlace, read_header
from runtime.protocol.errors import ErrorCode
from runtime.tokenizer.cuts import CUTS
from runtime.tokenizer.files import TokenizerFiles
from runtime.tokenizer.pieces import MAX_PIECE_LENGTH
from runtime.tokenizer.sentencepiece_file import (
    SPACE,
    ModelKind,
    PieceKind,
    tokenizer_of_pieces,
)

if TYPE_CHECKING:
    from tokenizers import AddedToken, Tokenizer

MAX_LIST_BYTES = 128_000_000
_PREFIX = "tokenizer.ggml."
_TEMPLATE = "tokenizer.chat_template"
_NAMED_IDS = {
    "bos_token": "bos_token_id",
    "eos_token": "eos_token_id",
    "unk_token": "unknown_token_id",
    "sep_token": "seperator_token_id",
    "pad_token": "padding_token_id",
}
"""What templates call a token, and the key of its number; one is misspelled in the format."""
_ENDS = ("eos_token_id", "eot_token_id", "eom_token_id")
_FORMS = {4: "<I", 5: "<i", 6: "<f"}
_LENGTH = struct.Struct("<Q")
_BYTE_LEVEL, _PIECES, _SPACED = "gpt2", "llama", "gemma4"


def read_gguf_files(path: Path) -> TokenizerFiles:
    """Return what a GGUF file says of template and special tokens.

    Raises ``LarderError`` with ``CHAT_TEMPLATE_MISSING`` or what is wrong with the header.
    """
    header = _header(path)
    template = header.values.get(_TEMPLATE)
    if not isinstance(template, str) or not template:
        raise LarderError(ErrorCode.CHAT_TEMPLATE_MISSING, folder=str(path))
    ids = {name: _number(header, key) for name, key in _NAMED_IDS.items()}
    try:
        texts = dict(_texts(header, "tokens", {item for item in ids.values() if item is not None}))
    except ValueError as error:
        raise _invalid(path, str(error)) from error
    named = {
        name: texts[item] for name, item in ids.items() if item is not None and texts.get(item)
    }
    ends = dict.fromkeys(_number(header, key) for key in _ENDS)
    return TokenizerFiles(
        tokenizer_path=path,
        template=template,
        special_tokens=named,
        eos_ids=tuple(item for item in ends if item is not None),
        is_gguf=True,
    )


def read_gguf_tokenizer(path: Path) -> "Tokenizer":
    """Return the tokenizer of a GGUF file; raise ``ValueError`` with what is wrong with it."""
    header = _header(path)
    kind = header.values.get(f"{_PREFIX}model")
    names = [text for _, text in _texts(header, "tokens")]
    if not names:
        raise ValueError("it has no vocabulary")
    longest = max(map(len, names))
    if longest > MAX_PIECE_LENGTH:
        raise ValueError(f"it has a piece of {longest} characters, at most {MAX_PIECE_LENGTH}")
    kinds = [int(item) for item in _numbers(header, "token_type")] or [1] * len(names)
    if len(kinds) != len(names):
        raise ValueError(f"it has {len(names)} pieces and the kinds of {len(kinds)}")
    if kind == _BYTE_LEVEL:
        return _byte_level(header, names, kinds)
    if kind == _PIECES:
        return _pieces(header, names, kinds)
    if kind == _SPACED:
        return _spaced(header, names, kinds)
    raise ValueError(f"its vocabulary is of the kind {kind}, which is not read")


def _header(path: Path) -> GgufHeader:
    try:
        return read_header(path)
    except FileNotFoundError as cause:
        raise LarderError(ErrorCode.TOKENIZER_MISSING, file=str(path)) from cause


def _byte_level(header: GgufHeader, names: list[str], kinds: list[int]) -> "Tokenizer":
    """Return the tokenizer of a vocabulary whose letters stand for bytes."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    way = header.values.get(f"{_PREFIX}pre", "")
    cuts = CUTS.get(way) if isinstance(way, str) else None
    if cuts is None:
        raise ValueError(f"how it cuts text is called {way}, which is not known")
    model = models.BPE(
        vocab=_vocabulary(names), merges=_merges(header), ignore_merges=cuts.has_whole_words
    )
    tokenizer = Tokenizer(model)
    if cuts.is_composed:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            *(pre_tokenizers.Split(Regex(each), behavior="isolated") for each in cuts.patterns),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    _add_tokens(tokenizer, names, kinds)
    return tokenizer


def _pieces(header: GgufHeader, names: list[str], kinds: list[int]) -> "Tokenizer":
    """Return the tokenizer of a vocabulary with scores, as sentencepiece has them."""
    scores = _numbers(header, "scores")
    if len(scores) != len(names):
        raise ValueError(f"it has {len(names)} pieces and the scores of {len(scores)}")
    has_prefix = header.values.get(f"{_PREFIX}add_space_prefix", True) is not False
    unknown = _number(header, "unknown_token_id") or 0
    if unknown < len(kinds):
        # Some files call it a control piece.
        kinds[unknown] = PieceKind.UNKNOWN
    pieces = [
        SimpleNamespace(piece=name, score=score, type=kind)
        for name, score, kind in zip(names, scores, kinds, strict=True)
    ]
    model = SimpleNamespace(
        pieces=pieces,
        trainer_spec=SimpleNamespace(
            model_type=ModelKind.BPE,
            byte_fallback=PieceKind.BYTE in kinds,
            unk_id=unknown,
        ),
        normalizer_spec=SimpleNamespace(
            precompiled_charsmap=b"",
            add_dummy_prefix=has_prefix,
            remove_extra_whitespaces=False,
            escape_whitespaces=True,
        ),
    )
    return tokenizer_of_pieces(model, is_prefixed_everywhere=has_prefix)


def _spaced(header: GgufHeader, names: list[str], kinds: list[int]) -> "Tokenizer":
    """Return the tokenizer of a vocabulary with merges in which a sign stands for spaces."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    unknown = _number(header, "unknown_token_id")
    model = models.BPE(
        vocab=_vocabulary(names),
        merges=_merges(header),
        unk_token=names[unknown] if unknown is not None and 0 <= unknown < len(names) else None,
        fuse_unk=True,
        byte_fallback=PieceKind.BYTE in kinds,
        ignore_merges=True,
    )
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Replace(" ", SPACE)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[^\n]+|\n+"), behavior="isolated")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    _add_tokens(tokenizer, names, kinds)
    return tokenizer


def _vocabulary(names: list[str]) -> dict[str, int]:
    """Return the numbers of pieces; of two that are spelled alike the first counts."""
    return {name: number for number, name in reversed(list(enumerate(names)))}


def _add_tokens(tokenizer: "Tokenizer", names: list[str], kinds: list[int]) -> None:
    """Have control tokens and those that are never cut found whole."""
    from tokenizers import AddedToken

    def of_kind(wanted: PieceKind, *, is_special: bool) -> list["AddedToken"]:
        return [
            AddedToken(name, normalized=False, special=is_special)
            for name, kind in zip(names, kinds, strict=True)
            if kind == wanted and name
        ]

    tokenizer.add_special_tokens(of_kind(PieceKind.CONTROL, is_special=True))
    tokenizer.add_tokens(of_kind(PieceKind.USER_DEFINED, is_special=False))


def _merges(header: GgufHeader) -> list[tuple[str, str]]:
    merges: list[tuple[str, str]] = []
    for number, text in _texts(header, "merges"):
        # A piece may begin with a space, and is never empty.
        cut = text.find(" ", 1)
        if cut < 0:
            raise ValueError(f"merge number {number} does not name two pieces")
        merges.append((text[:cut], text[cut + 1 :]))
    return merges


def _number(header: GgufHeader, key: str) -> int | None:
    value = header.values.get(_PREFIX + key)
    return value if type(value) is int and 0 <= value < 1 << 31 else None


def _list(header: GgufHeader, key: str) -> ListPlace | list[int | float | bool | str] | None:
    value = header.values.get(_PREFIX + key)
    if isinstance(value, ListPlace) and value.num_bytes > MAX_LIST_BYTES:
        raise ValueError(f"{key} has {value.num_bytes} bytes, at most {MAX_LIST_BYTES} are read")
    return value if isinstance(value, ListPlace | list) else None


def _numbers(header: GgufHeader, key: str) -> list[float]:
    """Return a list of numbers, empty if there is none."""
    found = _list(header, key)
    if not isinstance(found, ListPlace):
        return [item for item in found or () if isinstance(item, int | float)]
    form = _FORMS.get(found.item_type)
    if form is None:
        raise ValueError(f"{key} is a list of a type {found.item_type}")
    data = read_range(header.path, found.offset_bytes, found.num_bytes)
    return [value for (value,) in struct.iter_unpack(form, data)]


def _texts(
    header: GgufHeader, key: str, wanted: Container[int] | None = None
) -> Iterator[tuple[int, str]]:
    """Yield the texts of a list with their numbers, those that are wanted or all."""
    found = _list(header, key)
    if not isinstance(found, ListPlace):
        for number, item in enumerate(found or ()):
            if isinstance(item, str) and (wanted is None or number in wanted):
                yield number, item
        return
    if found.item_type != TEXT:
        raise ValueError(f"{key} is no list of texts")
    data = read_range(header.path, found.offset_bytes, found.num_bytes)
    at = 0
    for number in range(found.num_items):
        begin = at + _LENGTH.size
        if begin > len(data):
            raise ValueError("it became shorter while it was read")
        at = begin + _LENGTH.unpack_from(data, at)[0]
        if wanted is None or number in wanted:
            yield number, data[begin:at].decode("utf-8", "replace")


def _invalid(path: Path, reason: str) -> LarderError:
    return LarderError(ErrorCode.TOKENIZER_INVALID, file=str(path), reason=reason)
