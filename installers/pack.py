"""A tree made into one file, the same bytes every time; checksums; what takes room."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from installers.description import RecipeError

MOMENT_S = 1_577_836_800
"""When every packed file was changed last, in seconds of the calendar: the start of 2020."""
MAX_DOWNLOAD_BYTES = 420_000_000
MAX_DISK_BYTES = 1_200_000_000


@dataclass(frozen=True)
class Effort:
    """What is spent on a tree and its packages; what works inside is the same."""

    deb: tuple[str, ...]
    """What dpkg-deb is told."""
    squash_level: int
    """Of zstd, in the AppImage."""
    num_compilers: int
    """Processes that compile modules."""


SMALL = Effort(("-Zxz", "-z1"), 15, num_compilers=1)
"""What people download, the same bytes every time."""
QUICK = Effort(("-Zzstd", "-z1"), 1, num_compilers=os.cpu_count() or 1)
"""What is only tried: sooner made, and larger than a download may be."""


def tar(tree: Path, target: Path, prefix: str) -> None:
    """Write a tree as a tar file in a fixed order, owned by nobody in particular."""
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as archive:
        for path in [tree, *sorted(tree.rglob("*"))]:
            name = f"{prefix}/{path.relative_to(tree).as_posix()}".removesuffix("/.")
            entry = archive.gettarinfo(str(path), name)
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = "root"
            entry.mtime = MOMENT_S
            if entry.islnk():
                raise RecipeError(f"{path} is a hard link; copy it.")
            entry.mode = 0o777 if entry.issym() else 0o755 if path.stat().st_mode & 0o100 else 0o644
            if entry.isreg():
                with path.open("rb") as file:
                    archive.addfile(entry, file)
            else:
                archive.addfile(entry)


def plain_modes(tree: Path) -> None:
    """Let everybody read what is in a tree, start its programs, and nobody but the owner write."""
    for path in [tree, *tree.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)


def compress(source: Path, target: Path) -> None:
    """Compress a file with xz in blocks of 64 MiB, the same on any number of cores."""
    command = ["xz", "-1", "--block-size=64MiB", "-T2", "--stdout", str(source)]
    with target.open("wb") as file:
        if subprocess.run(command, stdout=file, check=False).returncode != 0:
            raise RecipeError(f"xz could not write {target.name}; is the disk full?")


def checksum(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_checksums(folder: Path) -> Path:
    """Write the checksums of all files of a folder, in the form that sha256sum reads."""
    target = folder / "SHA256SUMS"
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and path != target]
    lines = [f"{checksum(path)}  {path.name}\n" for path in files]
    target.write_text("".join(lines), encoding="utf-8")
    return target


def room(tree: Path) -> dict[str, int]:
    """Bytes of the files of a tree by part: packages by name, the rest by folder."""
    taken: dict[str, int] = {}
    for path in tree.rglob("*"):
        if path.is_file() and not path.is_symlink():
            part = _part(path.relative_to(tree).parts)
            taken[part] = taken.get(part, 0) + path.stat().st_size
    return dict(sorted(taken.items(), key=lambda item: -item[1]))


def _part(parts: tuple[str, ...]) -> str:
    """The part of the tree that a file is counted with."""
    if "larder-demo" in parts:
        return "demo model"
    for mark in ("dist-packages", "packages"):
        if mark in parts:
            top = parts[parts.index(mark) + 1]
            name = top.removesuffix(".libs").partition("-")[0].removesuffix(".py").lower()
            return "Larder itself" if name in ("app", "runtime", "resources", "larder") else name
    return "Python and its libraries" if parts[0] == "python" else parts[0]


def table(taken: dict[str, int], rows: int = 12) -> str:
    """What takes room, as a Markdown table with the smaller parts in one row."""
    lines = ["| part | MB |", "|---|---|"]
    shown = list(taken.items())[:rows]
    lines += [f"| {name} | {size / 1e6:.1f} |" for name, size in shown]
    rest = sum(taken.values()) - sum(size for _, size in shown)
    lines += [f"| everything else | {rest / 1e6:.1f} |"]
    lines += [f"| **all** | **{sum(taken.values()) / 1e6:.1f}** |"]
    return "\n".join(lines)


def check_sizes(tree_bytes: int, files: Iterable[Path]) -> None:
    """Raise ``RecipeError`` where something is larger than was promised."""
    if tree_bytes > MAX_DISK_BYTES:
        raise RecipeError(_too_large("The tree takes", tree_bytes, MAX_DISK_BYTES))
    for path in files:
        size = path.stat().st_size
        if size > MAX_DOWNLOAD_BYTES:
            raise RecipeError(_too_large(f"{path.name} has", size, MAX_DOWNLOAD_BYTES))


def _too_large(what: str, size: int, most: int) -> str:
    """The sentence of a promise that is not kept."""
    return f"{what} {size / 1e6:.0f} MB of {most / 1e6:.0f}; cut more."


def need(*programs: str) -> None:
    """Raise ``RecipeError`` where a program that a recipe starts is not installed."""
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        raise RecipeError(
            f"This recipe needs {', '.join(missing)}; install it with the package manager."
        )
