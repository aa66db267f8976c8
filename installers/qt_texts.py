"""The licences of what Qt has inside: its wheels bring no texts for that, Debian's packages do.

Debian's Qt is an older one with the same projects in it. Where there is no apt the texts cannot be
had; what the recipe then says belongs into the packages by hand.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from installers.description import RecipeError
from installers.licences import Component

_PACKAGES = {"libqt6core6": "projects inside Qt", "libicu72": "ICU inside Qt"}
"""Debian's package with the text -> how the About page calls what it is for."""
_WITHOUT_APT = (
    "there is no apt-get here, so that the texts of the projects inside Qt are missing; "
    "copy the folders libqt6core6 and libicu72 from `licences` of a package for Linux"
)


def collect(licences: Path) -> list[Component]:
    """Put the texts into the folder of licences; return what they are for."""
    if shutil.which("apt-get") is None:
        sys.stdout.write(f"{_WITHOUT_APT}\n")
        return []
    with tempfile.TemporaryDirectory(prefix="larder-texts-") as scratch:
        command = ["apt-get", "-qq", "download", *_PACKAGES]
        done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
        debs = sorted(Path(scratch).glob("*.deb"))
        if done.returncode != 0 or len(debs) != len(_PACKAGES):
            raise RecipeError(
                f"apt-get could not download {' and '.join(_PACKAGES)}, whose texts belong to Qt; "
                "build on Debian 12, after apt-get update."
            )
        return [_take(deb, licences) for deb in debs]


def _take(deb: Path, licences: Path) -> Component:
    """One package's text, copied."""
    name, version, _architecture = deb.stem.split("_")
    with tempfile.TemporaryDirectory(prefix="larder-text-") as unpacked:
        subprocess.run(["dpkg-deb", "-x", str(deb), unpacked], check=True)
        text = Path(unpacked, "usr/share/doc", name, "copyright")
        if not text.is_file():
            raise RecipeError(f"{name} has no copyright file any more; look where it is now.")
        kept = licences / name / "copyright"
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(text, kept)
    told = f"as Debian lists them for {version.partition('+')[0]}"
    return Component(_PACKAGES[name], told, "see its text", (f"{name}/copyright",))
