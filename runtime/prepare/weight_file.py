"""One weight file of a prepared copy: ordinary safetensors, data from a page on, with checksums.

::

    0          8                      multiple of 4096
    | N (u64) | JSON header, spaces ..| tensor | tensor | ...|

The header's metadata holds the CRC-32 of every tensor and the identity of the copy, so that a file
can be judged alone.
"""

import dataclasses
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from runtime.errors import LarderError
from runtime.inspect.header import read_header
from runtime.inspect.manifest import PreparedFile
from runtime.prepare.disk import replacing
from runtime.spec.tensors import PAGE_BYTES
from runtime.store.checksum import crc32

_DTYPE_BYTES = {"U8": 1, "F32": 4, "F16": 2, "BF16": 2}
_READ_BYTES = 4 << 20


@dataclasses.dataclass(frozen=True, slots=True)
class TensorPlan:
    """One tensor to be written."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def num_bytes(self) -> int:
        """What it takes."""
        return math.prod(self.shape) * _DTYPE_BYTES[self.dtype]


def header_bytes(
    tensors: Sequence[TensorPlan], identity: Mapping[str, str], checksums: Sequence[int]
) -> bytes:
    """Return the start of the file up to its data; its length does not depend on the checksums."""
    metadata = {**identity, "crc32": " ".join(f"{value:08x}" for value in checksums)}
    header: dict[str, object] = {"__metadata__": metadata}
    position = 0
    for tensor in tensors:
        end = position + tensor.num_bytes
        header[tensor.name] = {
            "dtype": tensor.dtype,
            "shape": tensor.shape,
            "data_offsets": [position, end],
        }
        position = end
    text = json.dumps(header, separators=(",", ":")).encode()
    padded_bytes = -(-(8 + len(text)) // PAGE_BYTES) * PAGE_BYTES
    text = text.ljust(padded_bytes - 8)
    return len(text).to_bytes(8, "little") + text


def file_bytes(tensors: Sequence[TensorPlan], identity: Mapping[str, str]) -> int:
    """Return what the finished file takes."""
    start = len(header_bytes(tensors, identity, [0] * len(tensors)))
    return start + sum(tensor.num_bytes for tensor in tensors)


def write_file(
    path: Path,
    tensors: Sequence[TensorPlan],
    identity: Mapping[str, str],
    pieces: Callable[[TensorPlan], Iterator[bytes | memoryview]],
) -> PreparedFile:
    """Write a whole file; ``pieces`` yields the bytes of a tensor in order.

    The file appears under ``path`` only when it is complete and on the drive.
    """
    checksums: list[int] = []
    with replacing(path) as file:
        file.write(header_bytes(tensors, identity, [0] * len(tensors)))
        for tensor in tensors:
            checksum = num_bytes = 0
            for piece in pieces(tensor):
                checksum = crc32(piece, checksum)
                num_bytes += file.write(piece)
            assert num_bytes == tensor.num_bytes, tensor.name
            checksums.append(checksum)
        size_bytes = file.tell()
        file.seek(0)
        file.write(header_bytes(tensors, identity, checksums))
    return PreparedFile(name=path.name, size_bytes=size_bytes, checksums=checksums)


def verified_file(
    path: Path,
    tensors: Sequence[TensorPlan],
    identity: Mapping[str, str],
    check: Callable[[], None],
) -> PreparedFile | None:
    """Return the description of a finished file, None if it is not there or not as it should be.

    Everything is read and compared; ``check`` is called now and then and may raise.
    """
    try:
        header = read_header(path)
    except (FileNotFoundError, LarderError):
        return None
    try:
        stated = [int(text, 16) for text in str(header.metadata.get("crc32", "")).split()]
    except ValueError:
        return None
    expected = header_bytes(tensors, identity, stated)
    with path.open("rb") as file:
        if len(stated) != len(tensors) or file.read(len(expected)) != expected:
            return None
        for tensor, checksum in zip(tensors, stated, strict=True):
            if _checksum(file.read, tensor.num_bytes, check) != checksum:
                return None
    return PreparedFile(name=path.name, size_bytes=header.file_bytes, checksums=stated)


def _checksum(read: Callable[[int], bytes], num_bytes: int, check: Callable[[], None]) -> int:
    checksum = 0
    while num_bytes > 0:
        check()
        data = read(min(num_bytes, _READ_BYTES))
        if not data:
            return -1
        checksum = crc32(data, checksum)
        num_bytes -= len(data)
    return checksum
