"""The licences of everything inside, as texts beside the program and as a list for the window."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from email.parser import HeaderParser
from pathlib import Path

from installers.description import ROOT, Description, RecipeError
from installers.wheels import normal_name

LIST = "resources/licences.json"
"""Where the list lies below the folder of packages; `app.state.licences` reads it."""
_FILE_NAMES = ("licen", "copying", "notice", "authors", "copyright")
_LGPL_NOTE = """\
Qt and Qt for Python are used under the GNU Lesser General Public License, version 3 (LGPL-3.0.txt,
which adds to the GPL in GPL-3.0.txt). They lie as shared libraries in the folder PySide6 and were
not changed, apart from the search path that the loader reads on Linux; you may put versions of your
own in their place. Their source is published by the Qt Company, for this version ({version}), where
Qt and Qt for Python are published, and may be had from whoever gave you this program.
"""
# What is inside without being a package: `app.state.licences` lists it with the same texts.
_BESIDE = (
    "fonts/Inter-LICENSE.txt",
    "licences/nanobind-LICENSE.txt",
    "licences/robin-map-LICENSE.txt",
)
_TEXTS = ROOT / "resources" / "licences"
_OWN_TEXT = "LICENSE-Larder.txt"
_QT = ("pyside6-essentials", "shiboken6")
_COMMON = Path("/usr/share/common-licenses")


@dataclass(frozen=True)
class Component:
    """One thing inside, as the About page shows it."""

    name: str
    version: str
    licence: str
    files: tuple[str, ...]
    """Below the folder `licences`."""


def collect(
    description: Description, packages: Path, folder: Path, others: Iterable[Component] = ()
) -> list[Component]:
    """Copy every licence text of the packages into a folder and write the window's list.

    Raises:
        RecipeError: a package tells no licence, or brings no text of it and we have none.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found = list(others)
    for information in sorted(packages.glob("*.dist-info")):
        component = _component(information, folder)
        if component.name != description.name:
            found.append(component)
    shutil.copyfile(description.licence_file, folder / _OWN_TEXT)
    for text in _BESIDE:
        shutil.copyfile(ROOT / "resources" / text, folder / Path(text).name)
    _add_qt(folder, found)
    own = Component(description.title, description.version, description.licence, (_OWN_TEXT,))
    shown = [own, *sorted(found, key=lambda one: one.name.lower())]
    place = packages / LIST
    place.parent.mkdir(parents=True, exist_ok=True)
    # The list names the texts from where it lies itself, so that both can be moved together.
    back = Path(os.path.relpath(folder, place.parent)).as_posix()
    told = [{**asdict(one), "files": [f"{back}/{name}" for name in one.files]} for one in shown]
    text = json.dumps(told, indent=1, ensure_ascii=False)
    place.write_text(text + "\n", encoding="utf-8")
    return shown


def _component(information: Path, folder: Path) -> Component:
    """Read one package's metadata and copy its texts."""
    header = HeaderParser().parsestr((information / "METADATA").read_text(encoding="utf-8"))
    name = normal_name(header["Name"])
    told = header["License-Expression"] or _of_classifiers(header.get_all("Classifier") or [])
    told = told or (header["License"] or "").strip().partition("\n")[0]
    files = []
    for path in sorted(information.rglob("*")):
        if path.is_file() and any(word in path.name.lower() for word in _FILE_NAMES):
            target = folder / name / path.relative_to(information).as_posix().replace("/", "-")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
            files.append(target.relative_to(folder).as_posix())
    if not told and not files:
        raise RecipeError(
            f"{name} {header['Version']} tells no licence; look it up and add it to this recipe."
        )
    if not files and name not in _QT:  # what those are to have is added afterwards
        files.append(_text_for(name, told, folder))
    return Component(name, header["Version"], told or "see its text", tuple(files))


def _text_for(name: str, told: str, folder: Path) -> str:
    """The text of a package that brings none: ours where it is the same, else as we keep it."""
    if "apache" in told.lower():
        return _OWN_TEXT
    kept = _TEXTS / f"{name}-LICENSE.txt"
    if not kept.is_file():
        raise RecipeError(
            f"{name} ({told}) brings no text of its licence; put what its project publishes into "
            f"resources/licences/{kept.name}."
        )
    shutil.copyfile(kept, folder / kept.name)
    return kept.name


def _of_classifiers(classifiers: list[str]) -> str:
    """The licence that classifiers name, in their own words."""
    names = [line.rpartition(" :: ")[2] for line in classifiers if line.startswith("License ::")]
    return ", ".join(name for name in names if name != "OSI Approved")


def _add_qt(folder: Path, found: list[Component]) -> None:
    """Add the texts that the LGPL asks for, which the packages of Qt do not bring."""
    for index, component in enumerate(found):
        if component.name not in _QT:
            continue
        files = [*component.files, "Qt-NOTICE.txt"]
        note = _LGPL_NOTE.format(version=component.version)
        (folder / "Qt-NOTICE.txt").write_text(note, encoding="utf-8")
        for text, name in (("LGPL-3", "LGPL-3.0.txt"), ("GPL-3", "GPL-3.0.txt")):
            if not (_COMMON / text).exists():
                raise RecipeError(f"{_COMMON / text} is missing; build on Debian or Ubuntu.")
            shutil.copyfile(_COMMON / text, folder / name)
            files.append(name)
        licence = "LGPL-3.0-only"
        found[index] = Component(component.name, component.version, licence, tuple(files))
