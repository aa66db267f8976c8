"""The Debian package: the same tree under /usr/lib, with a menu entry, icons and what it needs."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
from pathlib import Path

from installers import pack
from installers.description import Description, RecipeError
from installers.linux import folder, libraries

# Loaded by name while the program runs, so that no file asks the loader for them.
_BY_NAME = ("libx11-xcb1", "libwayland-client0", "xkb-data")
_CONTROL = """\
Package: {name}
Version: {version}
Architecture: amd64
Maintainer: The {title} project
Installed-Size: {kib}
Depends: {depends}
Recommends: xdg-utils, fonts-noto-core | fonts-dejavu-core
Section: utils
Priority: optional
Description: {summary}
 A desktop program with everything inside: Python, torch for the processor, Qt and a small
 demo model. Chats, settings and models stay with the person when it is removed.
"""
_COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: {title}

Files: *
Copyright: the authors of {title}
License: {licence}
 The full text is in /usr/lib/larder/licences/LICENSE-Larder.txt; what comes along has its
 licences in the same folder.
"""


def file_name(description: Description) -> str:
    """How the package is called."""
    return f"{description.name}_{description.version}_amd64.deb"


def build(
    description: Description,
    tree: Path,
    glibc: str,
    target: Path,
    effort: pack.Effort = pack.SMALL,
) -> None:
    """Write the package; what it is packed from lies beside the tree for that time."""
    root = tree.parent / "deb"
    if root.exists():
        shutil.rmtree(root)
    inside = root / "usr" / "lib" / description.name
    inside.parent.mkdir(parents=True)
    # The same bytes; a copy would take the room twice.
    shutil.copytree(tree, inside, symlinks=True, copy_function=os.link)
    _outside(description, root, inside)
    asked = libraries.packages_for(libraries.check(tree))
    depends = [f"libc6 (>= {glibc})", *sorted({*asked, *_BY_NAME})]
    size_kib = sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) // 1024
    control = _CONTROL.format(
        name=description.name,
        version=description.version,
        title=description.title,
        kib=size_kib,
        depends=", ".join(depends),
        summary=description.summary,
    )
    (root / "DEBIAN").mkdir()
    (root / "DEBIAN" / "control").write_text(control, encoding="utf-8")
    _plain_modes(root)
    command = ["dpkg-deb", "--root-owner-group", *effort.deb, "--build", str(root), str(target)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(pack.MOMENT_S)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    shutil.rmtree(root)
    if done.returncode != 0:
        raise RecipeError(f"dpkg-deb could not write {target.name}: {done.stderr.strip()[-300:]}")


def _outside(description: Description, root: Path, inside: Path) -> None:
    """What lies in the system's own folders: commands, menu entry, icons, copyright."""
    programs = root / "usr" / "bin"
    programs.mkdir(parents=True)
    for name in ("larder", "larderctl"):
        (programs / name).symlink_to(f"../lib/{description.name}/{name}")
    shutil.move(inside / "share", root / "usr" / "share")
    entry = folder.desktop_entry(description, "/usr/bin/larder")
    place = root / "usr" / "share" / "applications" / "larder.desktop"
    place.unlink()
    place.write_text(entry, encoding="utf-8")
    (inside / "README.txt").unlink()
    notes = root / "usr" / "share" / "doc" / description.name
    notes.mkdir(parents=True)
    text = _COPYRIGHT.format(title=description.title, licence=description.licence)
    (notes / "copyright").write_text(text, encoding="utf-8")
    told = f"{description.name} ({description.version}) stable; urgency=medium\n\n"
    told += "  * See CHANGELOG.md of the source.\n"
    (notes / "changelog.gz").write_bytes(gzip.compress(told.encode(), 9, mtime=0))


def _plain_modes(root: Path) -> None:
    """Folders that all may enter, and times that are the same every time."""
    for path in [root, *sorted(root.rglob("*"))]:
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
        os.utime(path, (pack.MOMENT_S, pack.MOMENT_S), follow_symlinks=False)
