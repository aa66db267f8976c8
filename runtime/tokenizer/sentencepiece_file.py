"""Reads ``tokenizer.model`` of the sentencepiece library as a tokenizer that works alike.

Only the fields that decide about ids are described here; the protobuf library reads the file.
"""

import enum
import re
from typing import TYPE_CHECKING, Any

from runtime.tokenizer.pieces import MAX_PIECE_LENGTH, merges_of

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import DescriptorProto
    from tokenizers import Tokenizer

SPACE = "▁"
_PACKAGE = "larder.sentencepiece"


class PieceKind(enum.IntEnum):
    """What a piece of the file is."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


class ModelKind(enum.IntEnum):
    """How text is cut into pieces."""

    UNIGRAM = 1
    BPE = 2


def read_sentencepiece(data: bytes, *, is_prefixed_everywhere: bool) -> "Tokenizer":
    """Return the tokenizer of a file; raise ``ValueError`` with what is wrong with it.

    ``is_prefixed_everywhere`` puts the space that goes before the first word before each section
    behind a special token too, as older models were trained.
    """
    return tokenizer_of_pieces(_parse(data), is_prefixed_everywhere=is_prefixed_everywhere)


def tokenizer_of_pieces(
    model: Any,  # noqa: ANN401 (a message class made at run time, or what looks like it)
    *,
    is_prefixed_everywhere: bool,
) -> "Tokenizer":
    """Return the tokenizer of a file's message; see ``read_sentencepiece``."""
    from tokenizers import AddedToken

    names = _names(model)
    _check(names, model.trainer_spec.model_type, model.trainer_spec.unk_id)
    if model.pieces[model.trainer_spec.unk_id].type == PieceKind.CONTROL:
        raise ValueError("its unknown piece is a control piece")
    tokenizer = _unigram(model) if _is_unigram(model) else _byte_pairs(model)
    _normalize(tokenizer, model, is_prefixed_everywhere=is_prefixed_everywhere)
    tokenizer.add_special_tokens(
        [
            AddedToken(piece.piece, normalized=False)
            for piece in model.pieces
            if piece.type == PieceKind.CONTROL
        ]
    )
    return tokenizer


def _names(model: Any) -> list[str]:  # noqa: ANN401 (a message class made at run time)
    """Return the texts of all pieces; the library hands on what is none as bytes, or raises."""
    names: list[str] = []
    for number, piece in enumerate(model.pieces):
        try:
            name = piece.piece
        except UnicodeDecodeError:
            name = None
        match name:
            case str():
                names.append(name)
            case _:
                raise ValueError(f"piece number {number} of its vocabulary is not UTF-8 text")
    return names


def _check(names: list[str], kind: int, unknown_id: int) -> None:
    """Raise ``ValueError`` for what no tokenizer can be made of."""
    if kind not in list(ModelKind):
        raise ValueError(f"its kind is {kind}, only unigram (1) and byte pairs (2) are read")
    if not 0 <= unknown_id < len(names):
        raise ValueError(f"its unknown piece is number {unknown_id} of {len(names)}")
    if len(set(names)) < len(names):
        raise ValueError("it has the same piece twice")
    longest = max(map(len, names))
    if longest > MAX_PIECE_LENGTH:
        raise ValueError(f"it has a piece of {longest} characters, at most {MAX_PIECE_LENGTH}")


def _is_unigram(model: Any) -> bool:  # noqa: ANN401 (a message class made at run time)
    return bool(model.trainer_spec.model_type == ModelKind.UNIGRAM)


def _unigram(model: Any) -> "Tokenizer":  # noqa: ANN401
    from tokenizers import Tokenizer, models

    # What is no part of words is made unlikely for them.
    floor = min(piece.score for piece in model.pieces) - 100.0
    hidden = (PieceKind.CONTROL, PieceKind.UNUSED, PieceKind.BYTE)
    vocabulary = [
        (piece.piece, floor if piece.type in hidden else piece.score) for piece in model.pieces
    ]
    spec = model.trainer_spec
    return Tokenizer(
        models.Unigram(vocabulary, unk_id=spec.unk_id, byte_fallback=spec.byte_fallback)
    )


def _byte_pairs(model: Any) -> "Tokenizer":  # noqa: ANN401
    from tokenizers import Tokenizer, models

    mergeable = [
        (-piece.score, number, piece.piece)
        for number, piece in enumerate(model.pieces)
        if piece.type == PieceKind.NORMAL
    ]
    ranks = {name: rank for rank, (_, _, name) in enumerate(sorted(mergeable))}
    return Tokenizer(
        models.BPE(
            vocab={piece.piece: number for number, piece in enumerate(model.pieces)},
            merges=merges_of(ranks, str),
            unk_token=model.pieces[model.trainer_spec.unk_id].piece,
            fuse_unk=True,
            byte_fallback=model.trainer_spec.byte_fallback,
            ignore_merges=bool(_whole_pieces(model)),
        )
    )


def _whole_pieces(model: Any) -> list[str]:  # noqa: ANN401
    """Return the pieces that are never made of others; ``_normalize`` cuts text around them."""
    return [piece.piece for piece in model.pieces if piece.type == PieceKind.USER_DEFINED]


def _normalize(
    tokenizer: "Tokenizer",
    model: Any,  # noqa: ANN401
    *,
    is_prefixed_everywhere: bool,
) -> None:
    """Have text prepared, and put together again, as the file says."""
    from tokenizers import Regex, decoders, normalizers, pre_tokenizers

    spec = model.normalizer_spec
    steps: list[normalizers.Normalizer] = []
    if spec.precompiled_charsmap:
        steps.append(normalizers.Precompiled(spec.precompiled_charsmap))
    if spec.remove_extra_whitespaces:
        steps.append(normalizers.Replace(Regex(r"\A +| +\z"), ""))
        steps.append(normalizers.Replace(Regex(" {2,}"), " "))
    if spec.escape_whitespaces:
        steps.append(normalizers.Replace(" ", SPACE))
    if spec.add_dummy_prefix and is_prefixed_everywhere:
        # Metaspace puts no space before one that is there, sentencepiece does.
        steps.append(normalizers.Replace(Regex(rf"\A{SPACE}"), SPACE * 2))
    if steps:
        tokenizer.normalizer = normalizers.Sequence(steps)
    cuts: list[pre_tokenizers.PreTokenizer] = []
    if spec.add_dummy_prefix:
        scheme = "always" if is_prefixed_everywhere else "first"
        cuts.append(pre_tokenizers.Metaspace(SPACE, prepend_scheme=scheme, split=False))
    if whole := _whole_pieces(model):
        pattern = "|".join(map(re.escape, sorted(whole, key=len, reverse=True)))
        cuts.append(pre_tokenizers.Split(Regex(pattern), behavior="isolated"))
    if cuts:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(cuts)
    joins: list[decoders.Decoder] = [decoders.Replace(SPACE, " ")]
    if model.trainer_spec.byte_fallback:
        joins.append(decoders.ByteFallback())
    joins.append(decoders.Fuse())
    if spec.add_dummy_prefix:
        joins.append(decoders.Strip(" ", 1, 0))
    tokenizer.decoder = decoders.Sequence(joins)


def _parse(data: bytes) -> Any:  # noqa: ANN401
    """Return the message of a file."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

    file = descriptor_pb2.FileDescriptorProto(
        name="larder/sentencepiece.proto", package=_PACKAGE, syntax="proto2"
    )
    kind = descriptor_pb2.FieldDescriptorProto
    _describe(
        file.message_type.add(name="Piece"),
        ("piece", 1, kind.TYPE_STRING, ""),
        ("score", 2, kind.TYPE_FLOAT, ""),
        ("type", 3, kind.TYPE_INT32, "1"),
    )
    _describe(
        file.message_type.add(name="Trainer"),
        ("model_type", 3, kind.TYPE_INT32, "1"),
        ("byte_fallback", 35, kind.TYPE_BOOL, ""),
        ("unk_id", 40, kind.TYPE_INT32, ""),
    )
    _describe(
        file.message_type.add(name="Normalizer"),
        ("precompiled_charsmap", 2, kind.TYPE_BYTES, ""),
        ("add_dummy_prefix", 3, kind.TYPE_BOOL, "true"),
        ("remove_extra_whitespaces", 4, kind.TYPE_BOOL, "true"),
        ("escape_whitespaces", 5, kind.TYPE_BOOL, "true"),
    )
    whole = file.message_type.add(name="Model")
    for name, number, part, label in (
        ("pieces", 1, "Piece", kind.LABEL_REPEATED),
        ("trainer_spec", 2, "Trainer", kind.LABEL_OPTIONAL),
        ("normalizer_spec", 3, "Normalizer", kind.LABEL_OPTIONAL),
    ):
        whole.field.add(
            name=name,
            number=number,
            label=label,
            type=kind.TYPE_MESSAGE,
            type_name=f".{_PACKAGE}.{part}",
        )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    model: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.Model"))()
    try:
        model.ParseFromString(data)
    except message.DecodeError as error:
        raise ValueError(f"it is no sentencepiece model: {error}") from error
    if not model.pieces:
        raise ValueError("it is no sentencepiece model: it has no pieces")
    return model


def _describe(part: "DescriptorProto", *fields: tuple[str, int, Any, str]) -> None:
    """Add optional fields: name, number, type and default."""
    for name, number, kind, default in fields:
        field = part.field.add(name=name, number=number, type=kind, label=1)
        if default:
            field.default_value = default
