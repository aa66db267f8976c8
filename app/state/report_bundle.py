"""A report about this program for whoever helps: versions, machine, settings, logs; no chat text.

It is a zip file that is written where the person chose and sent nowhere.
"""

import dataclasses
import importlib.metadata
import io
import platform
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

import msgspec

from app.state.settings_file import Settings
from runtime.protocol.machine import MachineReport
from runtime.protocol.plan import PlacementPlan

MAX_LOG_BYTES = 256 << 10
_PROGRAM = "larder"
_NOT_SHIPPED = ("test", "lint", "build")
"""Extras of the program that are tools."""


@dataclasses.dataclass(frozen=True, slots=True)
class Component:
    """One package that the program is made with."""

    name: str
    version: str
    licence: str


def components(program: str = _PROGRAM) -> list[Component]:
    """Return the packages that are there and asked for by the program, by name."""
    try:
        wanted = importlib.metadata.requires(program) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    found = {}
    for requirement in wanted:
        if any(f"extra == '{extra}" in requirement.replace('"', "'") for extra in _NOT_SHIPPED):
            continue
        name = requirement.split(";")[0].strip()
        for end in "[<>=!~ (":
            name = name.split(end)[0]
        try:
            data = importlib.metadata.metadata(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        found[name] = Component(data["Name"], data["Version"], _licence(data))
    return sorted(found.values(), key=lambda component: component.name.casefold())


def _licence(data: importlib.metadata.PackageMetadata) -> str:
    expression = _first(data, "License-Expression")
    if expression:
        return expression
    classes = [text for text in data.get_all("Classifier") or [] if text.startswith("License ::")]
    if classes:
        return ", ".join(text.rpartition(" :: ")[2] for text in classes)
    return _first(data, "License").partition("\n")[0][:80]


def _first(data: importlib.metadata.PackageMetadata, name: str) -> str:
    return next((str(text).strip() for text in data.get_all(name) or []), "")


def version() -> str:
    """Return the version of the program; empty where it is not installed."""
    try:
        return importlib.metadata.version(_PROGRAM)
    except importlib.metadata.PackageNotFoundError:
        return ""


def versions() -> list[str]:
    """Return lines that say what runs here, the packages included."""
    return [
        f"larder {version()}",
        f"Python {sys.version.split()[0]}",
        f"{platform.system()} {platform.release()} {platform.machine()}",
        *(f"{part.name} {part.version} ({part.licence})" for part in components()),
    ]


def report_bundle(
    settings: Settings,
    logs: Iterable[Path],
    machine: MachineReport | None = None,
    plan: PlacementPlan | None = None,
) -> bytes:
    """Return the zip file.

    Of the settings all that a person wrote to a model is left out; of the logs the end is kept.
    """
    kept = msgspec.structs.replace(settings, system_prompt="", presets=[], model_presets={})
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as bundle:
        bundle.writestr("versions.txt", "\n".join(versions()) + "\n")
        bundle.writestr("settings.json", msgspec.json.format(msgspec.json.encode(kept)))
        for name, value in (("machine.json", machine), ("plan.json", plan)):
            if value is not None:
                bundle.writestr(name, msgspec.json.format(msgspec.json.encode(value)))
        for path in logs:
            text = _end_of(path)
            if text:
                bundle.writestr(f"logs/{path.name}", text)
    return data.getvalue()


def _end_of(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - MAX_LOG_BYTES))
            return file.read(MAX_LOG_BYTES)
    except OSError:
        return b""
