"""The header of one GGUF file, believed only as far as the file bears it out.

::

    "GGUF" | version | counts | keys with values | tensors | padding | data ............ | end

It is read from its beginning on; long lists, of which a vocabulary consists, are passed over, and
where they lie is kept. docs/formats.md says what is read.
"""

import math
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from runtime.errors import LarderError
from runtime.inspect.files import open_regular, shown, unreadable
from runtime.inspect.gguf.cursor import Cursor, HeaderEndedError, HeaderRefusedError, Source
from runtime.inspect.lookalike import GGUF_MARK, START_BYTES, mistaken_for_text
from runtime.inspect.shards import MAX_TENSORS
from runtime.protocol.errors import ErrorCode
from runtime.spec.gguf import GgufKind

MAX_HEADER_BYTES = 256_000_000
MAX_KEYS = 1 << 16
MAX_TEXT_BYTES = 4_000_000
"""Of a text that is kept; the longest are chat templates."""
MAX_NAME_BYTES = 1024
MAX_DIMENSIONS = 4
MAX_KEPT_ITEMS = 4096
"""A list of more numbers is passed over."""
MAX_KEPT_TEXTS = 64
_MAX_SIZE = 1 << 48
_VERSIONS = (2, 3)
_OTHER_ORDER = {int.from_bytes(number.to_bytes(4, "big"), "little") for number in (1, 2, 3)}
_ALIGNMENT_KEY = "general.alignment"
_DEFAULT_ALIGNMENT = 32
_MAX_ALIGNMENT = 1 << 20
_NUMBERS = {
    0: struct.Struct("<B"), 1: struct.Struct("<b"), 2: struct.Struct("<H"), 3: struct.Struct("<h"),
    4: struct.Struct("<I"), 5: struct.Struct("<i"), 6: struct.Struct("<f"), 7: struct.Struct("<?"),
    10: struct.Struct("<Q"), 11: struct.Struct("<q"), 12: struct.Struct("<d"),
}  # fmt: skip
"""How numbers are stored, by what stands for their type."""
TEXT, _LIST = 8, 9
_U32 = _NUMBERS[4]
KINDS: Mapping[int, tuple[str, int, int]] = {
    **{kind.value[0]: (kind.name, *kind.value[1:]) for kind in GgufKind},
    9: ("Q8_1", 32, 40), 15: ("Q8_K", 256, 292), 16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50),
    21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82), 24: ("I8", 1, 1), 25: ("I16", 1, 2),
    26: ("I32", 1, 4), 27: ("I64", 1, 8), 28: ("F64", 1, 8), 29: ("IQ1_M", 256, 56),
    34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66), 40: ("NVFP4", 64, 36), 41: ("Q1_0", 128, 18),
}  # fmt: skip
"""Name, weights of a block and its bytes of every kind that is known, read or not."""


class ListPlace(NamedTuple):
    """A list that was passed over: the type of its items, how many, and where they lie."""

    item_type: int
    num_items: int
    offset_bytes: int
    num_bytes: int


Scalar = int | float | bool | str
Value = Scalar | list[Scalar] | ListPlace


class GgufTensor(NamedTuple):
    """One tensor as a header declares it, its extent proven to lie inside the file."""

    name: str
    kind: str
    """By name, of those that are not read too."""
    shape: tuple[int, ...]
    """Rows before columns, as everywhere else; files have them the other way round."""
    offset_bytes: int
    num_bytes: int


class GgufHeader(NamedTuple):
    """All that one file says of itself."""

    path: Path
    file_bytes: int
    digest: bytes
    """Of the whole header, the lists that were passed over included."""
    values: dict[str, Value]
    tensors: dict[str, GgufTensor]


def read_header(path: Path) -> GgufHeader:
    """Return the checked header of a GGUF file.

    Raises ``FileNotFoundError``, or ``LarderError`` with ``FILE_UNREADABLE``,
    ``SHARD_TRUNCATED`` or ``SHARD_INVALID``.
    """
    with open_regular(path) as file:
        try:
            return read_header_from(path, file, os.fstat(file.fileno()).st_size)
        except OSError as cause:
            raise unreadable(path, cause) from cause


def read_header_from(path: Path, file: Source, file_bytes: int) -> GgufHeader:
    """Return the checked header of a file of which at least the beginning can be read.

    Raises what reading raises, or ``LarderError`` as ``read_header`` does.
    """
    try:
        start = file.read(START_BYTES)
        file.seek(0)
        if start[:4] != GGUF_MARK:
            reason = mistaken_for_text(start) or "it does not begin as GGUF files do"
            raise HeaderRefusedError(reason)
        cursor = Cursor(file, file_bytes, MAX_HEADER_BYTES)
        header = _read(path, file_bytes, cursor)
    except HeaderEndedError as cause:
        raise _truncated(path, file_bytes, cause.needed_bytes) from cause
    except HeaderRefusedError as cause:
        reason = shown(str(cause))
        raise LarderError(ErrorCode.SHARD_INVALID, file=shown(str(path)), reason=reason) from cause
    needed = max(
        (each.offset_bytes + each.num_bytes for each in header.tensors.values()), default=0
    )
    if needed > file_bytes:
        raise _truncated(path, file_bytes, needed)
    return header


def _read(path: Path, file_bytes: int, cursor: Cursor) -> GgufHeader:
    cursor.take(len(GGUF_MARK))
    version = int(cursor.number(_U32))
    if version in _OTHER_ORDER:
        raise HeaderRefusedError("it is made for computers with the other order of bytes")
    if version not in _VERSIONS:
        raise HeaderRefusedError(f"it is GGUF of version {version}, and 2 and 3 are read")
    num_tensors, num_keys = cursor.count(), cursor.count()
    if num_tensors > MAX_TENSORS:
        raise HeaderRefusedError(
            f"it claims {num_tensors} matrices, at most {MAX_TENSORS} are read"
        )
    if num_keys > MAX_KEYS:
        raise HeaderRefusedError(f"it claims {num_keys} keys, at most {MAX_KEYS} are read")
    values: dict[str, Value] = {}
    for _ in range(num_keys):
        key = _text(cursor, MAX_NAME_BYTES)
        if key in values:
            raise HeaderRefusedError(f"it has the key {key[:120]!r} twice")
        values[key] = _value(cursor, key)
    declared = [_tensor(cursor) for _ in range(num_tensors)]
    alignment = _alignment(values)
    data_start = -(-cursor.offset_bytes // alignment) * alignment
    tensors = _placed(declared, alignment, data_start)
    return GgufHeader(path, file_bytes, cursor.digest(), values, tensors)


def _text(cursor: Cursor, max_bytes: int) -> str:
    length = cursor.count()
    if length > max_bytes:
        cursor.require(length)
        raise HeaderRefusedError(f"it has a text of {length} bytes, at most {max_bytes} are read")
    return cursor.take(length).decode("utf-8", "replace")


def _value(cursor: Cursor, key: str) -> Value:
    kind = int(cursor.number(_U32))
    if kind in _NUMBERS:
        return cursor.number(_NUMBERS[kind])
    if kind == TEXT:
        return _text(cursor, MAX_TEXT_BYTES)
    if kind != _LIST:
        raise HeaderRefusedError(
            f"the value of {key[:120]!r} is of a type {kind} that is not known"
        )
    item_type, count = int(cursor.number(_U32)), cursor.count()
    begin = cursor.offset_bytes
    if item_type == TEXT:
        cursor.require(8 * count)
        if count <= MAX_KEPT_TEXTS:
            return [_text(cursor, MAX_TEXT_BYTES) for _ in range(count)]
        cursor.skip_texts(count)
    elif item_type in _NUMBERS:
        form = _NUMBERS[item_type]
        cursor.require(form.size * count)
        if count <= MAX_KEPT_ITEMS:
            return [cursor.number(form) for _ in range(count)]
        cursor.skip(form.size * count)
    else:
        raise HeaderRefusedError(f"the list {key[:120]!r} holds items of a type {item_type}")
    return ListPlace(item_type, count, begin, cursor.offset_bytes - begin)


def _tensor(cursor: Cursor) -> GgufTensor:
    """Return a tensor with its offset as it is stored: from where data begins."""
    name = _text(cursor, MAX_NAME_BYTES)
    num_dimensions = int(cursor.number(_U32))
    if num_dimensions > MAX_DIMENSIONS:
        raise HeaderRefusedError(f"{name[:120]!r} has {num_dimensions} dimensions")
    sizes = [cursor.count() for _ in range(num_dimensions)]
    number, offset_bytes = int(cursor.number(_U32)), cursor.count()
    if number not in KINDS:
        raise HeaderRefusedError(f"{name[:120]!r} is of a kind {number} that is not known")
    kind, block_columns, block_bytes = KINDS[number]
    count = math.prod(sizes)
    if max(sizes, default=0) > _MAX_SIZE or count > _MAX_SIZE or offset_bytes > _MAX_SIZE:
        raise HeaderRefusedError(f"{name[:120]!r} is larger than any file")
    if (sizes[0] if sizes else 1) % block_columns:
        raise HeaderRefusedError(f"rows of {name[:120]!r} are not whole blocks of {kind}")
    num_bytes = count // block_columns * block_bytes
    return GgufTensor(name, kind, tuple(reversed(sizes)), offset_bytes, num_bytes)


def _alignment(values: Mapping[str, Value]) -> int:
    alignment = values.get(_ALIGNMENT_KEY, _DEFAULT_ALIGNMENT)
    if (
        type(alignment) is not int
        or not 8 <= alignment <= _MAX_ALIGNMENT
        or alignment & (alignment - 1)
    ):
        raise HeaderRefusedError(f"its alignment is {str(alignment)[:80]}, not a power of two")
    return alignment


def _placed(declared: list[GgufTensor], alignment: int, data_start: int) -> dict[str, GgufTensor]:
    """Return the tensors with their place in the file; raise if two of them overlap."""
    tensors: dict[str, GgufTensor] = {}
    for tensor in declared:
        if tensor.name in tensors:
            raise HeaderRefusedError(f"it has the matrix {tensor.name[:120]!r} twice")
        if tensor.offset_bytes % alignment:
            raise HeaderRefusedError(f"{tensor.name[:120]!r} does not begin at a multiple")
        tensors[tensor.name] = tensor._replace(offset_bytes=data_start + tensor.offset_bytes)
    end = data_start
    for tensor in sorted(tensors.values(), key=lambda each: (each.offset_bytes, each.num_bytes)):
        if tensor.offset_bytes < end:
            raise HeaderRefusedError(f"the matrix {tensor.name[:120]!r} overlaps another")
        end = tensor.offset_bytes + tensor.num_bytes
    return tensors


def _truncated(path: Path, found_bytes: int, expected_bytes: int) -> LarderError:
    return LarderError(
        ErrorCode.SHARD_TRUNCATED,
        file=shown(str(path)),
        found_bytes=found_bytes,
        expected_bytes=expected_bytes,
    )
