"""Graphics cards as the engine last found them, compared with what NVML tells.

The engine alone has torch; it hands over what torch told, as data that is kept in a small file.
"""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import msgspec

from runtime.hardware.gpus import noted
from runtime.hardware.kept_file import kept_text, replace_file
from runtime.protocol.machine import DeviceReport

MAX_GAP_RATIO = 0.05
"""NVML and torch agree if their figures differ by less, of all memory of the card."""
AMD_PREFIX = "amd:"
"""How cards are named that AMD's driver for the kernel tells of."""
_GIB = 1024**3


@dataclasses.dataclass(frozen=True, slots=True)
class SeenCard:
    """A card as torch saw it."""

    device: str
    name: str
    total_bytes: int
    free_bytes: int | None
    """None if it was not asked."""
    nvml_free_bytes: int | None = None
    """What NVML told at the same moment, None if it told nothing."""


def cards_path(rates_path: Path) -> Path:
    """Return the file of the cards that lies beside the one of the rates."""
    return rates_path.with_name("cards.json")


def beside_told(seen: Sequence[SeenCard], told: Sequence[DeviceReport]) -> list[SeenCard]:
    """Return what torch saw with what NVML told at the same moment."""
    free_of = {card.device: card.free_bytes for card in told}
    return [dataclasses.replace(card, nvml_free_bytes=free_of.get(card.device)) for card in seen]


def keep_cards(path: Path, seen: Sequence[SeenCard]) -> None:
    """Keep what torch saw in place of what was kept; a file that cannot be written is logged."""
    if not seen and not path.exists():
        return
    content = msgspec.json.encode({"cards": seen}).decode()
    replace_file(path, content, "cards as torch saw them")


def kept_cards(path: Path) -> list[SeenCard]:
    """Return what was kept; nothing if the file is missing or damaged."""
    try:
        document = json.loads(kept_text(path))
        return msgspec.convert(document["cards"], list[SeenCard])
    except (ValueError, RecursionError, KeyError, TypeError):
        return []


def with_seen(told: Sequence[DeviceReport], seen: Sequence[SeenCard]) -> list[DeviceReport]:
    """Return the cards that NVML tells of, checked against torch's figures, and torch's others.

    Where the two disagree the smaller figure counts and the note says both.
    """
    seen_of = {card.device: card for card in seen}
    told = _numbered_by_torch(told, seen)
    checked = [
        _checked(card, seen_of[card.device]) if card.device in seen_of else card for card in told
    ]
    known = {card.device for card in told}
    return checked + [_alone(card) for card in seen if card.device not in known]


def _numbered_by_torch(
    told: Sequence[DeviceReport], seen: Sequence[SeenCard]
) -> list[DeviceReport]:
    """Return cards told of by AMD's driver under the number that torch gives them.

    The driver's own numbers count what torch cannot drive too, so that the size has to tell.
    """
    known = {card.device for card in told}
    others = [card for card in seen if card.device not in known]
    renamed: list[DeviceReport] = []
    for card in told:
        most_gap_bytes = MAX_GAP_RATIO * card.total_bytes
        same = (
            each for each in others if abs(each.total_bytes - card.total_bytes) <= most_gap_bytes
        )
        found = next(same, None) if card.device.startswith(AMD_PREFIX) else None
        if found is None:
            renamed.append(card)
            continue
        others.remove(found)
        renamed.append(msgspec.structs.replace(card, device=found.device, name=found.name))
    return renamed


def _checked(told: DeviceReport, seen: SeenCard) -> DeviceReport:
    """Return a card with the smaller of both figures, and a note of how they compare."""
    if seen.name != told.name:
        return noted(told, f"torch found another card here, {seen.name}")
    most_gap_bytes = MAX_GAP_RATIO * told.total_bytes
    total_bytes, free_bytes = told.total_bytes, told.free_bytes
    notes: list[str] = []
    if abs(seen.total_bytes - total_bytes) > most_gap_bytes:
        notes.append(f"torch found {_gib(seen.total_bytes)} where NVML tells {_gib(total_bytes)}")
        total_bytes = min(total_bytes, seen.total_bytes)
    if seen.free_bytes is not None and seen.nvml_free_bytes is not None:
        gap_bytes = seen.nvml_free_bytes - seen.free_bytes
        if abs(gap_bytes) > most_gap_bytes:
            notes.append(
                f"when the engine last looked, torch found {_gib(seen.free_bytes)} free where NVML "
                f"told {_gib(seen.nvml_free_bytes)}"
            )
            free_bytes -= max(0, gap_bytes)
    note = "; ".join(notes) or "torch agrees"
    free_bytes = max(0, min(free_bytes, total_bytes))
    return noted(
        msgspec.structs.replace(told, total_bytes=total_bytes, free_bytes=free_bytes), note
    )


def _alone(seen: SeenCard) -> DeviceReport:
    """Return a card that torch alone knows, as it was when the engine last looked."""
    free_bytes = seen.total_bytes if seen.free_bytes is None else seen.free_bytes
    return DeviceReport(
        device=seen.device,
        name=seen.name,
        total_bytes=seen.total_bytes,
        free_bytes=free_bytes,
        note="torch, when the engine last looked; NVML tells nothing of it",
    )


def _gib(num_bytes: int) -> str:
    return f"{num_bytes / _GIB:.1f} GiB"
