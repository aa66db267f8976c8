"""`python -m installers KIND`: makes what a person downloads, and tells what takes room."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from installers import pack
from installers.description import ROOT, Description, RecipeError, read
from installers.linux import appimage, deb, folder
from installers.macos import recipe as macos
from installers.windows import recipe

_BUILT = ROOT / "build" / "installers"
_QUICK = "Linux: packages to be tried, larger and without the archive, into a folder of their own"


def main(arguments: list[str]) -> int:
    """Run one recipe; what goes wrong is one sentence on the error stream."""
    options = _parse(arguments)
    try:
        KINDS[options.kind](read(), options)
    except RecipeError as error:
        sys.stderr.write(f"larder: {error}\n")
        return 1
    return 0


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="installers", description=__doc__)
    parser.add_argument("kind", choices=sorted(KINDS))
    parser.add_argument("--out", type=Path, help="where the files go; else dist")
    parser.add_argument("--build", type=Path, default=_BUILT, help="where they are made")
    parser.add_argument("--demo", type=Path, default=ROOT / "build" / "demo" / "larder-demo")
    parser.add_argument("--torch-source", default="", help="the index torch comes from")
    parser.add_argument("--python", type=Path, help="Windows, macOS: Python as it is published")
    parser.add_argument("--wheel", type=Path, help="our wheel, built on the system it is for")
    parser.add_argument("--compiler", default="clang", help="macOS: what compiles the launchers")
    parser.add_argument("--compressor", choices=("lzma", "zlib"), default="lzma")
    parser.add_argument("--quick", action="store_true", help=_QUICK)
    options = parser.parse_args(arguments)
    if options.quick and options.kind != "linux":
        parser.error(f"--quick is for linux alone; leave it out for {options.kind}")
    # What lies in dist is signed and published.
    options.out = options.out or (options.build / "quick" if options.quick else ROOT / "dist")
    return options


def _linux(description: Description, options: argparse.Namespace) -> None:
    """The folder archive, the Debian package and the AppImage, all of one tree."""
    pack.need("apt-get", "dpkg-deb", "patchelf", "strip", "gcc", "xz", "mksquashfs")
    sources = folder.Sources(
        options.build / "cache", options.demo, options.torch_source, options.wheel
    )
    stem = description.stem("linux")
    tree = options.build / stem
    effort = pack.QUICK if options.quick else pack.SMALL
    glibc = folder.build(description, sources, tree, effort)
    options.out.mkdir(parents=True, exist_ok=True)
    single = options.out / f"{stem}.AppImage"
    package = options.out / deb.file_name(description)
    appimage.build(description, tree, single, effort)
    deb.build(description, tree, glibc, package, effort)
    made = [] if options.quick else [_archive(tree, options.out), single, package]
    _close(options.out, tree, made, f"needs a C library from {glibc} on")


def _archive(tree: Path, out: Path) -> Path:
    """Write the archive of a tree, with one folder inside."""
    archive, plain = out / f"{tree.name}.tar.xz", tree.with_name(f"{tree.name}.tar")
    pack.tar(tree, plain, tree.name)
    pack.compress(plain, archive)
    plain.unlink()
    return archive


def _windows(description: Description, options: argparse.Namespace) -> None:
    """The installer for one person."""
    if options.python is None:
        raise RecipeError(
            "The recipe for Windows needs --python with Python's embeddable package; "
            "installers/sources.toml says where it is published."
        )
    stem = description.stem("windows")
    target = options.out / f"{stem}.exe"
    options.out.mkdir(parents=True, exist_ok=True)
    sources = recipe.Sources(
        options.build / "cache", options.demo, options.python, options.wheel, options.compressor
    )
    tree = options.build / stem
    count = recipe.build(description, sources, tree, target)
    _close(options.out, tree, [target], f"{count} programs and libraries looked at")


def _macos(description: Description, options: argparse.Namespace) -> None:
    """The application, and on a Mac its disk image."""
    if options.python is None:
        raise RecipeError(
            "The recipe for macOS needs --python with a folder of Python 3.11 for Apple silicon; "
            "installers/sources.toml says where one is published."
        )
    sources = macos.Sources(
        options.build / "cache", options.demo, options.python, options.wheel, options.compiler
    )
    stem = f"{description.name}-{description.version}-macos-arm64"
    place, target = options.build / stem, options.out / f"{stem}.dmg"
    options.out.mkdir(parents=True, exist_ok=True)
    app, count = macos.build(description, sources, place)
    note = macos.close(description, app, target)
    made = [target] if target.exists() else []
    _close(options.out, app, made, f"{count} programs and libraries looked at; {note}")


def _close(out: Path, tree: Path, made: list[Path], note: str) -> None:
    """Look at the sizes of what was made, write checksums, and tell what takes room."""
    taken = pack.room(tree)
    pack.check_sizes(sum(taken.values()), made)
    pack.write_checksums(out)
    sys.stdout.write(f"{pack.table(taken)}\n\n{note}\n")
    for path in made:
        sys.stdout.write(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB to download\n")


KINDS: dict[str, Callable[[Description, argparse.Namespace], None]] = {
    "linux": _linux,
    "macos": _macos,
    "windows": _windows,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
