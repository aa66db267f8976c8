"""The program that an AppImage begins with.

The format's usual one is in no registry that builders reach, so that this one is made from Debian's
libraries for squashfs and FUSE (`appimage.c`, `squash.c`).
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

from installers.description import RecipeError
from installers.licences import Component

MARK = b"AI\x02"
"""What a type-2 AppImage has at its ninth byte."""
LIBRARIES = ("libsquashfuse-dev", "libfuse3-dev", "libzstd-dev", "liblzma-dev", "libc6-dev")
"""Debian's packages of what is linked in."""
_HERE = Path(__file__).resolve().parent
_SOURCES = ("appimage.c", "squash.c")
_LINKED = ("-lsquashfuse_ll", "-lfuse3", "-lzstd", "-llzma")


def compile_for(scratch: Path) -> bytes:
    """Compile the program that stands at the beginning."""
    made = scratch / "appimage-start"
    flags = ["-O2", "-Wall", "-Wno-format-truncation", "-static", "-no-pie", "-s"]
    command = ["gcc", *flags, "-Wl,--build-id=none", "-o", str(made), *_SOURCES, *_LINKED]
    done = subprocess.run(command, cwd=_HERE, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RecipeError(
            f"The AppImage's start program does not compile; it needs {', '.join(LIBRARIES)}. "
            f"gcc says: {done.stderr.strip()[-300:]}"
        )
    code = bytearray(made.read_bytes())
    made.unlink()
    code[8 : 8 + len(MARK)] = MARK
    if elf_size(code) != len(code):
        raise RecipeError(
            "The AppImage's start program does not end where its headers say, so that others "
            "would not find the image; look at what the linker puts behind them."
        )
    return bytes(code)


def elf_size(code: bytes | bytearray) -> int:
    """Where a program ends by its own headers, which is where others look for the image."""
    (table,) = struct.unpack_from("<Q", code, 0x28)
    entry_size, count = struct.unpack_from("<HH", code, 0x3A)
    return int(table + entry_size * count)


def components(licences: Path) -> list[Component]:
    """What is linked into the start program, with its texts put into the folder of licences."""
    found = []
    for name in LIBRARIES:
        query = ["dpkg-query", "-W", "-f", "${Version}", name]
        done = subprocess.run(query, capture_output=True, text=True, check=False)
        text = Path("/usr/share/doc") / name / "copyright"
        if done.returncode != 0 or not text.exists():
            raise RecipeError(f"{name} is not installed; apt-get install {' '.join(LIBRARIES)}.")
        place = licences / name / "copyright"
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(text, place)
        listed = name.removesuffix("-dev")
        told = (f"{name}/copyright",)
        found.append(Component(listed, done.stdout.strip(), "see its text", told))
    return found
