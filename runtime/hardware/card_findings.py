"""What the engine learned of this PC's cards, as data, and where it is kept."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from runtime.hardware.cards import SeenCard, cards_path, keep_cards
from runtime.hardware.rates import RateCache
from runtime.protocol.machine import DeviceReport, Measured

_AMD = "amd"
_XPU = "xpu"


@dataclasses.dataclass(frozen=True, slots=True)
class CardFindings:
    """Cards as torch sees them, and how fast their links are."""

    cards: Sequence[SeenCard]
    rates: Mapping[str, Measured]
    """By the names under which rates are kept."""
    problems: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """By device: why its link could not be measured."""


def keep_findings(rates_path: Path, findings: CardFindings) -> None:
    """Keep what was found, in place of what was kept of the same."""
    keep_cards(cards_path(rates_path), findings.cards)
    rates = RateCache(rates_path)
    for key, rate in findings.rates.items():
        rates.record(key, rate.value, rate.method)


def unmeasured_cards(devices: Sequence[DeviceReport], builds: frozenset[str]) -> list[str]:
    """Return the cards whose link is not known and which the installed torch may drive.

    ``builds`` is what torch was built with. A card that the kernel's driver tells of has its own
    number there until torch has seen it; Intel's cards are told of by torch alone.
    """
    names = [card.device for card in devices if _is_unmeasured(card, builds)]
    kinds = {card.device.partition(":")[0] for card in devices}
    if _XPU in builds and _XPU not in kinds and not any(card.is_simulated for card in devices):
        names.append(f"{_XPU}:0")
    return names


def _is_unmeasured(card: DeviceReport, builds: frozenset[str]) -> bool:
    if card.link_bytes_per_s is not None:
        return False
    kind = card.device.partition(":")[0]
    is_hip = "hip" in builds
    return card.is_simulated or kind in builds or (is_hip and kind in (_AMD, "cuda"))
