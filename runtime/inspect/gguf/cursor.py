"""Reading a header from its beginning on, piece after piece, never more than a limit."""

import hashlib
import struct
from typing import Protocol

_PIECE_BYTES = 1 << 20
_U64 = struct.Struct("<Q")


class Source(Protocol):
    """What a header is read from."""

    def read(self, num_bytes: int, /) -> bytes:
        """Return the next bytes, fewer at the end."""
        ...

    def seek(self, offset_bytes: int, /) -> object:
        """Go to a place from which to read on."""
        ...


class HeaderRefusedError(Exception):
    """What is wrong with a header, as a reason for a sentence."""


class HeaderEndedError(Exception):
    """The file ends inside its header, which needs at least so many bytes."""

    def __init__(self, needed_bytes: int) -> None:
        super().__init__(needed_bytes)
        self.needed_bytes = needed_bytes


class Cursor:
    """A place in a file that moves forwards only; everything passed goes into a digest."""

    def __init__(self, file: Source, file_bytes: int, max_bytes: int) -> None:
        self._file = file
        self._file_bytes = file_bytes
        self._max_bytes = max_bytes
        self._data = b""
        self._at = 0
        self._begin = 0
        """Where in the file ``_data`` begins."""
        self._digest = hashlib.sha256()

    @property
    def offset_bytes(self) -> int:
        """Where in the file the cursor is."""
        return self._begin + self._at

    def digest(self) -> bytes:
        """Return a digest of everything before the cursor; nothing may be read any more."""
        self._digest.update(self._data[: self._at])
        return self._digest.digest()

    def require(self, num_bytes: int) -> None:
        """Raise unless so many bytes can follow."""
        needed = self.offset_bytes + num_bytes
        if needed > self._file_bytes:
            raise HeaderEndedError(needed)
        if needed > self._max_bytes:
            raise HeaderRefusedError(f"its header has more than {self._max_bytes} bytes")

    def take(self, num_bytes: int) -> bytes:
        """Return the next bytes."""
        self._fill(num_bytes)
        begin, self._at = self._at, self._at + num_bytes
        return self._data[begin : self._at]

    def number(self, form: struct.Struct) -> int | float | bool:
        """Return the next number."""
        (value,) = form.unpack(self.take(form.size))
        assert isinstance(value, int | float | bool)
        return value

    def count(self) -> int:
        """Return the next whole number of eight bytes."""
        return int(self.number(_U64))

    def skip(self, num_bytes: int) -> None:
        """Pass over bytes, however many they are."""
        self.require(num_bytes)
        while num_bytes:
            step = min(num_bytes, _PIECE_BYTES)
            self.take(step)
            num_bytes -= step

    def skip_texts(self, count: int) -> None:
        """Pass over texts, each with its length before it."""
        self.require(8 * count)
        # Vocabularies have some hundred thousand: as few steps for each as can be.
        unpack = _U64.unpack_from
        data, at, end = self._data, self._at, len(self._data)
        for _ in range(count):
            if at + 8 > end:
                self._at = at
                self._fill(8)
                data, at, end = self._data, self._at, len(self._data)
            at += 8 + unpack(data, at)[0]
            if at > end:
                self._at = end
                self.skip(at - end)
                data, at, end = self._data, self._at, len(self._data)
        self._at = at

    def _fill(self, num_bytes: int) -> None:
        """Have so many bytes behind the cursor in memory."""
        missing = self._at + num_bytes - len(self._data)
        if missing <= 0:
            return
        self.require(num_bytes)
        self._digest.update(self._data[: self._at])
        rest = self._data[self._at :]
        self._begin += self._at
        most = self._max_bytes - self._begin - len(rest)
        read = self._file.read(max(missing, min(_PIECE_BYTES, most)))
        if len(read) < missing:
            raise HeaderRefusedError("it became shorter while it was read")
        self._data, self._at = rest + read, 0
