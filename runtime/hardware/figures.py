"""Figures of this PC beside those that a person states, and the file in which they are stated."""

import contextlib
import copy
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from runtime.errors import LarderError
from runtime.hardware.energy_terms import (
    BATTERY,
    CARD_WORK_WATTS,
    DRIVE_J_PER_GB,
    PC_WATTS,
    REST_WATTS,
)
from runtime.hardware.profile import (
    INSTRUCTION_SETS,
    MACHINE_VARIABLE,
    NO_SOURCE,
    checked_profile,
    load_document,
)
from runtime.protocol.errors import ErrorCode
from runtime.protocol.figure_messages import Figure, FigureUnit
from runtime.protocol.machine import MachineReport, Measured

_GIB = 1 << 30
_GB_PER_S = 1e9
_CARD = re.compile(r"cards\[(?P<device>[^\]]{1,80})\]\.(?P<field>\w+)")
_METHOD, _ASSUMED = "system", "assumed"
_CARD_FIELDS = (
    *("total_gib", "free_gib", "link_gb_per_s", "link_back_gb_per_s", "read_gb_per_s"),
    "work_watts",
)
_FIELDS = (
    *("ram.total_gib", "ram.available_gib", "ram.limit_gib", "ram.read_gb_per_s"),
    *("drive.total_gib", "drive.free_gib", "drive.read_gb_per_s", "drive.most_gb_per_s"),
    *("drive.num_readers", "num_physical_cores", "num_threads", "instruction_set"),
    *("energy_sources", "pc_watts", "rest_watts", "drive.joules_per_gb"),
)


def figures_of(
    own: MachineReport, document: Mapping[str, Any], sources: Sequence[str] = ()
) -> list[Figure]:
    """Return all figures that can be stated of a PC; ``own`` is how it is without a profile.

    ``sources`` are those of energy of which a person may say whether they count.
    """
    drive = own.drives[0] if own.drives else None
    cores = Measured(value=own.num_physical_cores, method=_METHOD)
    found: dict[str, Measured | None] = {
        "ram.total_gib": own.ram_total,
        "ram.available_gib": own.ram_available,
        "ram.limit_gib": own.ram_limit,
        "ram.read_gb_per_s": own.ram_read_bytes_per_s,
        "drive.read_gb_per_s": drive.read_bytes_per_s if drive else None,
        "num_physical_cores": cores,
        "num_threads": cores,
        "pc_watts": Measured(value=PC_WATTS, method=_ASSUMED),
        "rest_watts": Measured(value=REST_WATTS, method=_ASSUMED),
        "drive.joules_per_gb": Measured(value=DRIVE_J_PER_GB, method=_ASSUMED),
    }
    if drive is not None:
        found["drive.total_gib"] = Measured(value=drive.total_bytes, method="file system")
        found["drive.free_gib"] = Measured(value=drive.free_bytes, method="file system")
    names = list(_FIELDS)
    for device in own.devices:
        prefix = f"cards[{device.device}]"
        names += [f"{prefix}.{field}" for field in _CARD_FIELDS]
        found |= {
            f"{prefix}.total_gib": Measured(value=device.total_bytes, method=device.name),
            f"{prefix}.free_gib": Measured(value=device.free_bytes, method=device.name),
            f"{prefix}.link_gb_per_s": device.link_bytes_per_s,
            f"{prefix}.link_back_gb_per_s": device.link_back_bytes_per_s,
            f"{prefix}.read_gb_per_s": device.read_bytes_per_s,
            f"{prefix}.work_watts": Measured(value=CARD_WORK_WATTS, method=_ASSUMED),
        }
    texts = {
        "instruction_set": own.instruction_set,
        "energy_sources": ", ".join(sources),
    }
    problems = {
        f"cards[{device.device}].{field}": device.link_problem
        for device in own.devices
        for field in ("link_gb_per_s", "link_back_gb_per_s")
    }
    figures = (_figure(name, found.get(name), texts.get(name), document) for name in names)
    return [msgspec.structs.replace(each, problem=problems.get(each.name, "")) for each in figures]


def stated_among(figures: Sequence[Figure]) -> list[Figure]:
    """Return those that a person states."""
    return [each for each in figures if each.stated is not None or each.stated_text]


def with_figure(
    document: Mapping[str, Any], name: str, value: float | str | None
) -> dict[str, Any]:
    """Return the document of a profile with a figure stated, or taken back for None.

    Raises ``LarderError`` with ``SETTING_INVALID`` for a name that no figure has.
    """
    changed: dict[str, Any] = copy.deepcopy(dict(document))
    match = _CARD.fullmatch(name)
    if match is None and name not in _FIELDS:
        raise LarderError(
            ErrorCode.SETTING_INVALID, name=name, found="no figure", expected="one of the list"
        )
    if match is not None:
        device = match["device"]
        cards = changed.setdefault("cards", [])
        section = next((card for card in cards if card.get("device") == device), None)
        if section is None:
            section = {"device": device}
            cards.append(section)
        field = match["field"]
    else:
        place, _, field = name.rpartition(".")
        section = changed.setdefault(place, {}) if place else changed
    if value is None:
        section.pop(field, None)
    else:
        section[field] = value
    return _without_empty(changed)


def require_reachable(
    own: MachineReport, name: str, value: float | str | None, sources: Sequence[str] = ()
) -> None:
    """Refuse, with ``SETTING_INVALID``, instructions and counters that this PC lacks.

    ``sources`` are as in ``figures_of``; a battery may be full now and count later.
    """
    if value is None:
        return
    if name == "instruction_set":
        # A processor is told with what it has beside them, for example ``avx512-vnni``.
        found = own.instruction_set.partition("-")[0]
        best = found if found in INSTRUCTION_SETS else INSTRUCTION_SETS[-1]
        usable = INSTRUCTION_SETS[INSTRUCTION_SETS.index(best) :]
        _require(name, [str(value)], usable)
    elif name == "energy_sources":
        named = [each.strip() for each in str(value).split(",") if each.strip()]
        names = [*dict.fromkeys([*sources, BATTERY]), NO_SOURCE]
        _require(name, named or [str(value)], names)


def _require(name: str, named: Sequence[str], usable: Sequence[str]) -> None:
    wrong = [each for each in named if each not in usable]
    if wrong:
        raise LarderError(
            ErrorCode.SETTING_INVALID,
            name=name,
            found=", ".join(wrong),
            expected=" or ".join(filter(None, [", ".join(usable[:-1]), usable[-1]])),
        )


def check_stated(document: dict[str, Any], path: str) -> None:
    """Refuse, with ``SETTING_INVALID``, what a person states and cannot be.

    Without it the file at ``path`` is as it should be: what is typed is wrong, and not the file.
    """
    try:
        checked_profile(document, path)
    except LarderError as error:
        place, found, expected = (error.parameters[name] for name in ("place", "found", "expected"))
        raise LarderError(
            ErrorCode.SETTING_INVALID, name=place, found=found, expected=expected
        ) from error


def write_figures(path: Path, document: dict[str, Any]) -> None:
    """Write a profile whole after checking it; without a figure the file goes.

    Raises ``LarderError`` with ``SETTING_INVALID`` for what cannot be, and ``DISK_NOT_WRITABLE``.
    """
    check_stated(document, str(path))
    temporary = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        if not document:
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        reason = error.strerror or str(error)
        raise LarderError(
            ErrorCode.DISK_NOT_WRITABLE, folder=str(path.parent), reason=reason
        ) from error


def state_figure(path: Path, name: str, value: float | str | None) -> None:
    """State a figure in the file of the settings, and have it count from now on."""
    before = load_document(str(path)) if path.exists() else {}
    checked_profile(before, str(path))
    write_figures(path, with_figure(before, name, value))
    if path.exists():
        os.environ[MACHINE_VARIABLE] = str(path)
    else:
        os.environ.pop(MACHINE_VARIABLE, None)


def _figure(
    name: str, found: Measured | None, found_text: str | None, document: Mapping[str, Any]
) -> Figure:
    stated = _stated(document, name)
    if found_text is not None:
        text = stated if isinstance(stated, str) else ""
        return Figure(name=name, unit=FigureUnit.TEXT, found_text=found_text, stated_text=text)
    number = float(stated) if isinstance(stated, int | float) else None
    if name.endswith("_gib"):
        return Figure(name=name, unit=FigureUnit.GIB, found=_in(found, _GIB), stated=number)
    if name.endswith("_gb_per_s"):
        return Figure(
            name=name, unit=FigureUnit.GB_PER_S, found=_in(found, _GB_PER_S), stated=number
        )
    endings = {"watts": FigureUnit.WATT, "joules_per_gb": FigureUnit.J_PER_GB}
    unit = next((unit for end, unit in endings.items() if name.endswith(end)), FigureUnit.COUNT)
    return Figure(name=name, unit=unit, found=found, stated=number)


def _in(found: Measured | None, unit: float) -> Measured | None:
    if found is None:
        return None
    return Measured(value=found.value / unit, method=found.method, age_s=found.age_s)


def _stated(document: Mapping[str, Any], name: str) -> object:
    match = _CARD.fullmatch(name)
    if match is not None:
        cards = document.get("cards", [])
        return next(
            (card.get(match["field"]) for card in cards if card.get("device") == match["device"]),
            None,
        )
    place, _, field = name.rpartition(".")
    part: Mapping[str, Any] = document.get(place, {}) if place else document
    return part.get(field)


def _without_empty(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document without sections in which nothing is stated."""
    cards = [card for card in document.get("cards", []) if set(card) != {"device"}]
    kept = {name: part for name, part in document.items() if name != "cards" and part != {}}
    return kept | ({"cards": cards} if cards else {})
