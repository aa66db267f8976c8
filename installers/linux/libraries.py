"""What the tree's own files load: what no file wants is dropped, and nothing wanted is missing."""

from __future__ import annotations

import re
import subprocess
from collections import deque
from pathlib import Path

from installers.description import RecipeError

# Libraries that every Linux desktop has, and the Debian package that brings each.
SYSTEM = {
    "ld-linux-x86-64.so.2": "libc6",
    "libc.so.6": "libc6",
    "libdl.so.2": "libc6",
    "libm.so.6": "libc6",
    "libpthread.so.0": "libc6",
    "libresolv.so.2": "libc6",
    "librt.so.1": "libc6",
    "libutil.so.1": "libc6",
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libGLX.so.0": "libglx0",
    "libOpenGL.so.0": "libopengl0",
    "libX11-xcb.so.1": "libx11-xcb1",
    "libX11.so.6": "libx11-6",
    "libdbus-1.so.3": "libdbus-1-3",
    "libexpat.so.1": "libexpat1",
    "libfontconfig.so.1": "libfontconfig1",
    "libfreetype.so.6": "libfreetype6",
    "libgcc_s.so.1": "libgcc-s1",
    "libglib-2.0.so.0": "libglib2.0-0t64 | libglib2.0-0",
    "libgthread-2.0.so.0": "libglib2.0-0t64 | libglib2.0-0",
    "libgssapi_krb5.so.2": "libgssapi-krb5-2",
    "libstdc++.so.6": "libstdc++6",
    "libwayland-client.so.0": "libwayland-client0",
    "libwayland-cursor.so.0": "libwayland-cursor0",
    "libwayland-egl.so.1": "libwayland-egl1",
    "libxcb-glx.so.0": "libxcb-glx0",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render.so.0": "libxcb-render0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-shm.so.0": "libxcb-shm0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb.so.1": "libxcb1",
    "libz.so.1": "zlib1g",
    "libzstd.so.1": "libzstd1",
}
_MAGIC = b"\x7fELF"
_GLIBC = re.compile(rb"GLIBC_2\.(\d+)\b")


def native_files(tree: Path) -> list[Path]:
    """Every program and shared library of a tree."""
    return [path for path in sorted(tree.rglob("*")) if is_native(path)]


def is_native(path: Path) -> bool:
    """Whether a file is one that the loader reads."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == _MAGIC


def needed(path: Path) -> list[str]:
    """The names of libraries that a file asks the loader for."""
    command = ["patchelf", "--print-needed", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.split()


def set_search_path(path: Path, searched: str) -> None:
    """Write into a file where the loader looks for the libraries that it asks for."""
    subprocess.run(["patchelf", "--set-rpath", searched, str(path)], check=True)


def drop_unwanted_qt(packages: Path) -> list[str]:
    """Remove the libraries of Qt that neither a kept module nor a kept plugin loads."""
    qt = packages / "PySide6" / "Qt"
    libraries = {path.name: path for path in (qt / "lib").glob("*.so*")}
    starts = [*(qt / "plugins").rglob("*.so"), *(packages / "PySide6").glob("*.so*")]
    waiting, wanted = deque(starts), set[str]()
    while waiting:
        for name in needed(waiting.popleft()):
            if name in libraries and name not in wanted:
                wanted.add(name)
                waiting.append(libraries[name])
    dropped = sorted(set(libraries) - wanted)
    for name in dropped:
        libraries[name].unlink()
    return dropped


def lend_to_qt(tree: Path, packages: Path) -> None:
    """Have Qt find our libraries: they stand one search path further."""
    qt = packages / "PySide6" / "Qt"
    for folder in (qt / "lib", *sorted((qt / "plugins").iterdir())):
        for path in sorted(folder.glob("*.so*")):
            if not is_native(path):
                continue
            back = "/".join([".."] * len(path.parent.relative_to(tree / "python" / "lib").parts))
            own = "$ORIGIN" if folder.name == "lib" else "$ORIGIN/../../lib"
            set_search_path(path, f"{own}:$ORIGIN/{back}")


def check(tree: Path) -> dict[str, str]:
    """Return the system's libraries that the tree asks for, with who asks first.

    Raises:
        RecipeError: a library is asked for that is neither inside nor on every desktop.
    """
    files = native_files(tree)
    inside = {path.name for path in files}
    asked: dict[str, str] = {}
    missing: dict[str, str] = {}
    for path in files:
        for name in needed(path):
            if name in inside:
                continue
            (asked if name in SYSTEM else missing).setdefault(name, path.name)
    if missing:
        told = ", ".join(f"{name} (for {asker})" for name, asker in sorted(missing.items()))
        raise RecipeError(f"The tree would miss {told}; put it in, or cut what asks for it.")
    return asked


def packages_for(asked: dict[str, str]) -> list[str]:
    """The Debian packages that bring the system's libraries, each once, libc left out."""
    return sorted({SYSTEM[name] for name in asked} - {"libc6"})


def oldest_glibc(tree: Path) -> str:
    """The version of the C library that the tree needs at least."""
    newest = 0
    for path in native_files(tree):
        newest = max([newest, *(int(found) for found in _GLIBC.findall(path.read_bytes()))])
    return f"2.{newest}"
