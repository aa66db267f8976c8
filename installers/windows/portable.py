"""What programs and libraries for Windows say of themselves, read from their headers."""

from __future__ import annotations

import re
import struct
from pathlib import Path

from installers.description import RecipeError

AMD64 = 0x8664
# Libraries that Windows 10 brings from 1903 on, which Qt wants too, by what their names begin with.
_SYSTEM = re.compile(
    r"^(api-ms-win-|ext-ms-|kernel32|kernelbase|ntdll|user32|gdi32|advapi32|shell32|ole32|oleaut32|"
    r"ws2_32|wsock32|crypt32|bcrypt|ncrypt|secur32|userenv|version|winmm|imm32|dwmapi|uxtheme|"
    r"shlwapi|shcore|setupapi|cfgmgr32|iphlpapi|netapi32|psapi|pdh|powrprof|rpcrt4|comdlg32|"
    r"comctl32|d2d1|d3d9|d3d11|d3d12|dxgi|dwrite|dcomp|opengl32|mpr|wtsapi32|authz|dbghelp|"
    r"msvcrt|ucrtbase|msi|propsys|synchronization|bcryptprimitives|dnsapi|winhttp|winspool|avrt|"
    r"d3dcompiler_47|cabinet|uiautomationcore|icuuc|runtimeobject|imagehlp|normaliz|usp10|oleacc|wintrust|kerberos|vulkan-1)\b",
    re.IGNORECASE,
)


class Headers:
    """The headers of one file: for which processor it is and which libraries it asks for.

    Raises ``RecipeError`` for a file that is none of Windows.
    """

    def __init__(self, path: Path) -> None:
        self._data = path.read_bytes()
        self._name = path.name
        try:
            self._read()
        except (struct.error, IndexError, ValueError) as error:
            raise RecipeError(f"{path.name} is no whole program or library of Windows.") from error

    def _read(self) -> None:
        data = self._data
        (start,) = struct.unpack_from("<I", data, 0x3C)
        if data[:2] != b"MZ" or data[start : start + 4] != b"PE\0\0":
            raise ValueError(self._name)
        self.machine, count = struct.unpack_from("<HH", data, start + 4)
        (size,) = struct.unpack_from("<H", data, start + 20)
        optional = start + 24
        (magic,) = struct.unpack_from("<H", data, optional)
        directories = optional + (112 if magic == 0x20B else 96)
        self._sections = [
            struct.unpack_from("<IIII", data, optional + size + 40 * index + 8)
            for index in range(count)
        ]
        (self._imports,) = struct.unpack_from("<I", data, directories + 8)
        self.imports = tuple(self._names()) if self._imports else ()

    def _names(self) -> list[str]:
        """The libraries of the import table."""
        found: list[str] = []
        place = self._offset(self._imports)
        while True:
            entry = struct.unpack_from("<IIIII", self._data, place)
            if not any(entry):
                return found
            name = self._offset(entry[3])
            found.append(self._data[name : self._data.index(b"\0", name)].decode("ascii"))
            place += 20

    def _offset(self, address: int) -> int:
        """Where an address of the loaded file lies in the file."""
        for size, start, raw_size, raw in self._sections:
            if start <= address < start + max(size, raw_size):
                return int(raw + address - start)
        raise ValueError(self._name)


def is_system(name: str) -> bool:
    """Whether a library is Windows' own."""
    return _SYSTEM.match(name) is not None


def check(tree: Path) -> int:
    """Look at every program and library of a tree; return how many there are.

    Raises:
        RecipeError: one is for another processor, or asks for what is neither inside nor Windows'.
    """
    files = [path for path in sorted(tree.rglob("*")) if path.suffix in (".exe", ".dll", ".pyd")]
    inside = {path.name.lower() for path in files}
    missing: dict[str, str] = {}
    for path in files:
        headers = Headers(path)
        if headers.machine != AMD64:
            raise RecipeError(f"{path.name} is for another processor ({headers.machine:#x}).")
        for name in headers.imports:
            if name.lower() not in inside and not is_system(name):
                missing.setdefault(name, path.name)
    if missing:
        told = ", ".join(f"{name} (for {asker})" for name, asker in sorted(missing.items()))
        raise RecipeError(f"The tree would miss {told}; put it in, or cut what asks for it.")
    return len(files)
