"""The header of one safetensors file, believed only as far as the file bears it out.

::

    0        8                  8 + N                                    end of file
    | N (u64)| JSON header ......| tensor | tensor | ... without gaps ....|
"""

import os
from pathlib import Path
from typing import NamedTuple

from runtime.errors import LarderError
from runtime.inspect.bounded_json import JsonRefusedError, parse_object
from runtime.inspect.files import open_regular, shown, unreadable
from runtime.inspect.lookalike import START_BYTES, mistaken_for_text
from runtime.protocol.errors import ErrorCode

MAX_HEADER_BYTES = 100_000_000
"""The limit of the format's own reader."""
MAX_DIMENSIONS = 8
MAX_OFFSET_BYTES = 1 << 62
DTYPE_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32,
    "F32": 32, "F64": 64, "I64": 64, "U64": 64, "C64": 64, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8,
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}  # fmt: skip


class StoredTensor(NamedTuple):
    """One tensor as a header declares it, its extent proven to lie inside the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset_bytes: int
    num_bytes: int


class ShardHeader(NamedTuple):
    """All that one file says of itself."""

    path: Path
    file_bytes: int
    header: bytes
    tensors: dict[str, StoredTensor]
    metadata: dict[str, object]


def read_header(path: Path, max_header_bytes: int = MAX_HEADER_BYTES) -> ShardHeader:
    """Return the checked header of a safetensors file.

    Raises ``FileNotFoundError``, or ``LarderError`` with ``FILE_UNREADABLE``,
    ``SHARD_TRUNCATED`` or ``SHARD_INVALID``. At most ``max_header_bytes`` are read.
    """
    with open_regular(path) as file:
        try:
            file_bytes = os.fstat(file.fileno()).st_size
            start = file.read(START_BYTES)
            header_bytes = int.from_bytes(start[:8].ljust(8), "little")
            if 8 + header_bytes > file_bytes or header_bytes > max_header_bytes:
                raise _no_header(path, start, file_bytes, header_bytes, max_header_bytes)
            file.seek(8)
            header = file.read(header_bytes)
        except OSError as cause:
            raise unreadable(path, cause) from cause
    if len(header) < header_bytes:
        raise _invalid(path, "it became shorter while it was read")
    try:
        declared = parse_object(header)
    except JsonRefusedError as cause:
        reason = mistaken_for_text(start) or f"its header is not valid JSON ({cause})"
        raise _invalid(path, reason) from cause
    metadata = declared.pop("__metadata__", {})
    if not isinstance(metadata, dict):
        raise _invalid(path, "its metadata is not an object")
    tensors = _tensors(path, declared, 8 + header_bytes)
    _check_extents(path, tensors, 8 + header_bytes, file_bytes)
    return ShardHeader(path, file_bytes, header, tensors, metadata)


def _tensors(path: Path, declared: dict[str, object], data_start: int) -> dict[str, StoredTensor]:
    made: dict[str, StoredTensor] = {}
    for name, value in declared.items():
        match value:
            case {
                "dtype": str() as dtype,
                "shape": list() as shape,
                "data_offsets": [begin, end],
            } if (
                len(shape) <= MAX_DIMENSIONS
                and all(type(size) is int and 0 <= size <= MAX_OFFSET_BYTES for size in shape)
                and type(begin) is int
                and type(end) is int
                and 0 <= begin <= end <= MAX_OFFSET_BYTES
            ):
                made[name] = StoredTensor(
                    name, dtype, tuple(shape), data_start + begin, end - begin
                )
            case _:
                raise _invalid(path, f"its header describes {name[:120]!r} in no known way")
    return made


def _check_extents(
    path: Path, tensors: dict[str, StoredTensor], data_start: int, file_bytes: int
) -> None:
    """Raise unless the tensors fill the file exactly, one after the other, as their shapes say."""
    position = data_start
    for tensor in sorted(tensors.values(), key=lambda item: (item.offset_bytes, item.num_bytes)):
        if tensor.offset_bytes != position:
            kind = "overlaps another" if tensor.offset_bytes < position else "leaves a gap"
            raise _invalid(path, f"the tensor {tensor.name[:120]!r} {kind}")
        position += tensor.num_bytes
        bits = DTYPE_BITS.get(tensor.dtype)
        if bits is not None:
            count = 1
            for size in tensor.shape:
                count *= size
            if -(-count * bits // 8) != tensor.num_bytes:
                raise _invalid(path, f"shape and bytes of {tensor.name[:120]!r} disagree")
    if position > file_bytes:
        raise _truncated(path, file_bytes, position)
    if position < file_bytes:
        raise _invalid(path, f"{file_bytes - position} bytes follow its last tensor")


def _no_header(
    path: Path, start: bytes, file_bytes: int, header_bytes: int, max_header_bytes: int
) -> LarderError:
    """Return why no header can be read from a file that begins with ``start``."""
    if len(start) < 8:
        return _truncated(path, file_bytes, 8)
    if reason := mistaken_for_text(start):
        return _invalid(path, reason)
    if header_bytes <= max_header_bytes:
        return _truncated(path, file_bytes, 8 + header_bytes)
    room = f"at most {max_header_bytes}" if max_header_bytes else "no more"
    return _invalid(path, f"its header claims {header_bytes} bytes, {room} are read")


def _invalid(path: Path, reason: str) -> LarderError:
    return LarderError(ErrorCode.SHARD_INVALID, file=shown(str(path)), reason=reason)


def _truncated(path: Path, found_bytes: int, expected_bytes: int) -> LarderError:
    return LarderError(
        ErrorCode.SHARD_TRUNCATED,
        file=shown(str(path)),
        found_bytes=found_bytes,
        expected_bytes=expected_bytes,
    )
