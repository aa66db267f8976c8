"""The licences of everything that the program is made of, with their texts.

What runs from a package has a list that was made with it; what runs from its source asks the
packages that are installed.
"""

import importlib.metadata
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec

PROGRAM = "larder"
MAX_TEXT_BYTES = 1 << 20
"""Of one licence text; the longest known is a tenth of it."""
_ROOT = Path(__file__).resolve().parents[2]
_LIST = _ROOT / "resources" / "licences.json"
_TEXTS = _ROOT / "resources" / "licences"
"""Of what brings none."""
_NOT_SHIPPED = ("test", "lint", "build")
"""Extras of the program that are tools."""
_TEXT_NAMES = ("licen", "copying", "notice", "copyright")


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """One thing inside the program."""

    name: str
    version: str
    licence: str
    """An SPDX expression, or the words of its makers."""
    files: tuple[str, ...]
    """Its texts: in the file below the list's folder, as read absolute."""

    @property
    def line(self) -> str:
        """All in one line."""
        return f"{' '.join(filter(None, (self.name, self.version)))} ({self.licence})"


_NOT_PACKAGES = (
    Component(
        name="Inter",
        version="3.019",
        licence="OFL-1.1",
        files=(str(_ROOT / "resources" / "fonts" / "Inter-LICENSE.txt"),),
    ),
    Component(name="SmolLM2-135M-Instruct", version="", licence="Apache-2.0", files=()),
    Component(
        name="nanobind",
        version="",
        licence="BSD-3-Clause",
        files=(str(_TEXTS / "nanobind-LICENSE.txt"),),
    ),
    Component(
        name="robin-map",
        version="",
        licence="MIT",
        files=(str(_TEXTS / "robin-map-LICENSE.txt"),),
    ),
)
"""Fonts, the model that the demo is derived from, and what is linked into the extension."""


def all_components() -> list[Component]:
    """Return everything that is shipped or, from the source, used; ourselves first."""
    packaged = list(read_components())
    own, others = packaged[:1], packaged[1:]
    if not packaged:
        text = _ROOT / "LICENSE"
        files = (str(text),) if text.is_file() else ()
        own = [Component(name="Larder", version=version(), licence="Apache-2.0", files=files)]
        python = sys.version.split()[0]
        others = [
            Component(name="Python", version=python, licence="PSF-2.0", files=()),
            *installed_components(),
        ]
    # What has our own licence has our own text.
    beside = [
        msgspec.structs.replace(one, files=one.files or own[0].files)
        if one.licence == own[0].licence
        else one
        for one in _NOT_PACKAGES
    ]
    return own + sorted([*others, *beside], key=lambda one: one.name.casefold())


def read_components(path: Path = _LIST) -> tuple[Component, ...]:
    """Return what the list of a package names, ourselves first; nothing from the source.

    `installers/licences.py` writes the list. A list that cannot be read is as good as none.
    """
    try:
        found = msgspec.json.decode(path.read_bytes(), type=tuple[Component, ...])
    except (OSError, msgspec.DecodeError):
        return ()
    folder = path.parent
    return tuple(
        msgspec.structs.replace(
            one, files=tuple(str((folder / file).resolve()) for file in one.files)
        )
        for one in found
    )


def installed_components(program: str = PROGRAM) -> list[Component]:
    """Return the packages that are there and needed by the program, and those that they need."""
    found: dict[str, Component] = {}
    waiting = list(_wanted_by(program, _NOT_SHIPPED))
    while waiting:
        name = waiting.pop()
        try:
            package = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        data = package.metadata
        if data["Name"] in found:
            continue
        kept = _TEXTS / f"{data['Name']}-LICENSE.txt"
        texts = [str(file.locate()) for file in package.files or () if _is_text(file)]
        texts = texts or [str(kept)] * kept.is_file()
        found[data["Name"]] = Component(
            name=data["Name"], version=data["Version"], licence=licence_of(data), files=(*texts,)
        )
        waiting += _wanted_by(name, None)
    return sorted(found.values(), key=lambda component: component.name.casefold())


def version() -> str:
    """Return the version of the program; empty where it is not installed."""
    try:
        return importlib.metadata.version(PROGRAM)
    except importlib.metadata.PackageNotFoundError:
        return ""


def licence_text(component: Component) -> str:
    """Return all that a component says of its licence; of what cannot be read, where it lies."""
    parts = [component.line]
    for file in component.files:
        path = Path(file)
        try:
            with path.open("rb") as opened:
                text = opened.read(MAX_TEXT_BYTES).decode("utf-8", "replace")
        except OSError as error:
            text = f"{file}: {error.strerror}"
        parts.append(f"{path.name}\n\n{text.strip()}")
    return "\n\n\n".join(parts) + "\n"


def licence_of(data: importlib.metadata.PackageMetadata) -> str:
    """Return what a package says its licence is, the shortest that it says for certain."""
    expression = _first(data, "License-Expression")
    if expression:
        return expression
    classes = [text for text in data.get_all("Classifier") or [] if text.startswith("License ::")]
    if classes:
        return ", ".join(text.rpartition(" :: ")[2] for text in classes)
    return _first(data, "License").partition("\n")[0][:80]


def _wanted_by(package: str, left_out: Iterable[str] | None) -> list[str]:
    """Return the packages that one asks for; those of extras only where some are left out."""
    try:
        requirements = importlib.metadata.requires(package) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    names = []
    for requirement in requirements:
        condition = requirement.partition(";")[2].replace('"', "'")
        marks = ("extra ==",) if left_out is None else [f"extra == '{one}" for one in left_out]
        if not any(mark in condition for mark in marks):
            name = requirement.split(";")[0].strip()
            for end in "[<>=!~ (":
                name = name.split(end)[0]
            names.append(name)
    return names


def _is_text(file: importlib.metadata.PackagePath) -> bool:
    is_inside = file.parts[0].endswith(".dist-info")
    return is_inside and any(word in file.name.lower() for word in _TEXT_NAMES)


def _first(data: importlib.metadata.PackageMetadata, name: str) -> str:
    return next((str(text).strip() for text in data.get_all(name) or []), "")
