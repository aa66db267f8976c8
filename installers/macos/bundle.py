"""What programs and libraries for macOS say of themselves, read from their headers."""

from __future__ import annotations

import struct
from pathlib import Path

from installers.description import RecipeError

ARM64 = 0x0100000C
_THIN, _FAT = 0xFEEDFACF, 0xCAFEBABE
_LOADS = {0xC, 0x80000018, 0x8000001F, 0x80000023}
"""The commands of a header that name a library: plain, weak, told on, lazy."""
_ENDINGS = (".so", ".dylib")
_SYSTEM = ("/usr/lib/", "/System/Library/")


class Headers:
    """The headers of one file, its part for Apple silicon: which libraries it asks for.

    Raises ``RecipeError`` for a file that has no such part.
    """

    def __init__(self, path: Path) -> None:
        self._data = path.read_bytes()
        try:
            start = self._start()
            self.libraries = tuple(self._names(start)) if start is not None else None
        except (struct.error, ValueError) as error:
            raise RecipeError(f"{path.name} is no whole program or library of macOS.") from error
        if self.libraries is None:
            raise RecipeError(f"{path.name} is not for Apple silicon.")

    def _start(self) -> int | None:
        """Where the part for Apple silicon begins."""
        (magic,) = struct.unpack_from(">I", self._data)
        if magic == _FAT:
            (count,) = struct.unpack_from(">I", self._data, 4)
            for index in range(count):
                kind, _, offset = struct.unpack_from(">III", self._data, 8 + 20 * index)
                if kind == ARM64:
                    return int(offset)
            return None
        (magic, kind) = struct.unpack_from("<II", self._data)
        if magic != _THIN:
            raise ValueError(magic)
        return 0 if kind == ARM64 else None

    def _names(self, start: int) -> list[str]:
        (count,) = struct.unpack_from("<I", self._data, start + 16)
        place, found = start + 32, []
        for _ in range(count):
            command, size = struct.unpack_from("<II", self._data, place)
            if size < 8 or place + size > len(self._data):
                raise ValueError(size)
            if command in _LOADS:
                (offset,) = struct.unpack_from("<I", self._data, place + 8)
                text = self._data[place + offset : place + size]
                found.append(text.partition(b"\0")[0].decode("utf-8"))
            place += size
        return found


def is_native(path: Path) -> bool:
    """Whether a file is a program or a library of macOS, by its first bytes."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        start = file.read(4)
    return start in (b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe") or path.suffix in _ENDINGS


def check(tree: Path) -> int:
    """Look at every program and library of a tree; return how many there are.

    Raises:
        RecipeError: one is not for Apple silicon, or asks for what is neither inside nor macOS'.
    """
    files = [path for path in sorted(tree.rglob("*")) if is_native(path)]
    inside = {path.name for path in tree.rglob("*") if not path.is_dir()}
    missing: dict[str, str] = {}
    for path in files:
        for name in Headers(path).libraries or ():
            if not name.startswith(_SYSTEM) and name.rpartition("/")[2] not in inside:
                missing.setdefault(name, path.name)
    if missing:
        told = ", ".join(f"{name} (for {asker})" for name, asker in sorted(missing.items()))
        raise RecipeError(f"The bundle would miss {told}; put it in, or cut what asks for it.")
    return len(files)
