"""The AppImage: a start program, an image of the tree, and a trailer that names it."""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
from pathlib import Path

from installers import pack
from installers.description import Description, RecipeError
from installers.linux import folder, starter

MAGIC = b"LARDER\x02\n"
_NAME_BYTES = 32
_BLOCK = "256K"


def build(
    description: Description, tree: Path, target: Path, effort: pack.Effort = pack.SMALL
) -> None:
    """Write the AppImage of a tree; what it is packed from lies beside that for the time."""
    scratch = tree.parent
    root = scratch / "appimage"
    if root.exists():
        shutil.rmtree(root)
    # The same bytes; a copy would take the room twice.
    shutil.copytree(tree, root, symlinks=True, copy_function=os.link)
    _add_entries(description, root)
    image = scratch / "appimage.squashfs"
    _squash(root, image, effort.squash_level)
    unpacked_bytes = sum(
        path.stat().st_size for path in root.rglob("*") if path.is_file() and not path.is_symlink()
    )
    shutil.rmtree(root)
    start = starter.compile_for(scratch)
    checksum = _crc64(image)
    with target.open("wb") as file:
        file.write(start)
        with image.open("rb") as packed:
            shutil.copyfileobj(packed, file, 1 << 20)
        file.write(trailer(description, image, checksum, unpacked_bytes))
    target.chmod(0o755)
    image.unlink()


def _add_entries(description: Description, root: Path) -> None:
    """What programs that put AppImages into the menu look for at the top."""
    entry = folder.desktop_entry(description, "larder")
    entry += f"X-AppImage-Version={description.version}\n"
    (root / "larder.desktop").write_text(entry, encoding="utf-8")
    shutil.copyfile(description.icon, root / "larder.svg")
    largest = root / "share" / "icons" / "hicolor" / "256x256" / "apps" / "larder.png"
    shutil.copyfile(largest, root / ".DirIcon")
    (root / "AppRun").symlink_to("larder")


def _squash(root: Path, image: Path, level: int) -> None:
    """Pack a tree, the same bytes every time."""
    image.unlink(missing_ok=True)
    moment = str(pack.MOMENT_S)
    command = ["mksquashfs", str(root), str(image), "-comp", "zstd"]
    command += ["-Xcompression-level", str(level)]
    command += ["-b", _BLOCK, "-all-root", "-no-xattrs", "-noappend", "-quiet", "-no-progress"]
    command += ["-mkfs-time", moment, "-all-time", moment, "-reproducible"]
    if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode != 0:
        raise RecipeError(f"mksquashfs could not write {image.name}; is the disk full?")


def _crc64(path: Path) -> int:
    """The CRC-64 of a file, as the start program compares it."""
    library = ctypes.CDLL("liblzma.so.5")
    library.lzma_crc64.restype = ctypes.c_uint64
    library.lzma_crc64.argtypes = (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64)
    value = 0
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            value = library.lzma_crc64(part, len(part), value)
    return value


def trailer(description: Description, image: Path, checksum: int, unpacked_bytes: int) -> bytes:
    """Return the last bytes: magic, length and checksum of the image, room, name of its folder."""
    name = f"{description.version}-{pack.checksum(image)[:16]}".encode()
    if len(name) >= _NAME_BYTES:
        raise RecipeError(f"The version {description.version} is too long for the trailer.")
    numbers = struct.pack("<QQQ", image.stat().st_size, checksum, unpacked_bytes)
    return MAGIC + numbers + name.ljust(_NAME_BYTES, b"\0")
