"""What the engine learns of the accelerators of this PC, kept so that later plans know it."""

import contextlib
import dataclasses
import os
from collections.abc import Collection
from pathlib import Path

from runtime.device.base import Device
from runtime.device.cards import see_cards
from runtime.device.link_rate import COPY_BYTES, measure_link
from runtime.device.open import CPU, open_device
from runtime.errors import LarderError
from runtime.hardware.card_findings import CardFindings, keep_findings
from runtime.hardware.cards import SeenCard, beside_told
from runtime.hardware.gpus import read_gpus
from runtime.hardware.profile import profile_of
from runtime.hardware.rates import link_back_key, link_key
from runtime.hardware.system_files import SystemFiles
from runtime.protocol.machine import Measured


def learn_of_devices(rates_path: Path, device: Device | None) -> None:
    """Keep what torch sees of the cards and how fast the link of an opened device is.

    The device must be idle and its memory free. What a profile states of a simulated one stays.
    """
    seen = _beside_nvml(see_cards(CPU if device is None else device.device))
    rates = {} if device is None or device.is_simulated else _rates_of(device)
    keep_findings(rates_path, CardFindings(seen, rates))


def look_at_cards(known: Collection[str]) -> CardFindings:
    """Return what torch sees of the cards, and measure the links of all but the known ones.

    It takes memory of each card that is measured until the process ends, so that one is made for
    this. What goes wrong with a card is told and keeps nothing from the others.
    """
    profile = profile_of(os.environ)
    seen = see_cards(CPU)
    names = [card.device for card in seen]
    if profile is not None and profile.devices:
        names = [card.device for card in profile.devices if card.is_link_measured]
    free_of: dict[str, int | None] = {}
    rates: dict[str, Measured] = {}
    problems: dict[str, str] = {}
    for name in names:
        if name in known:
            continue
        try:
            with contextlib.closing(open_device(name, COPY_BYTES)) as device:
                free_of[name] = device.free_bytes
                found = _rates_of(device)
        except (LarderError, RuntimeError) as error:  # RuntimeError: what torch tells of drivers
            problems[name] = _first_line(error)
            continue
        rates |= found
        if not found:
            problems[name] = "copies took no time"
    looked = [dataclasses.replace(card, free_bytes=free_of.get(card.device)) for card in seen]
    return CardFindings(_beside_nvml(looked), rates, problems)


def _rates_of(device: Device) -> dict[str, Measured]:
    """Return both rates of a link by the names under which they are kept, as far as measured."""
    found = measure_link(device)
    if found is None:
        return {}
    rates = {link_key(device.device): found.to_device}
    if found.to_host is not None:
        rates[link_back_key(device.device)] = found.to_host
    return rates


def _beside_nvml(seen: list[SeenCard]) -> list[SeenCard]:
    return beside_told(seen, read_gpus(SystemFiles(), os.environ) if seen else [])


def _first_line(error: Exception) -> str:
    """Return the line that tells an error; torch adds advice for developers below it."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
