"""What loading learns of the accelerators of this PC, kept so that later plans know it."""

import os
from pathlib import Path

from runtime.device.base import Device
from runtime.device.cards import see_cards
from runtime.device.link_rate import measure_link
from runtime.device.open import CPU
from runtime.hardware.cards import cards_path, keep_cards
from runtime.hardware.gpus import read_gpus
from runtime.hardware.rates import RateCache, link_back_key, link_key
from runtime.hardware.system_files import SystemFiles


def learn_of_devices(rates_path: Path, device: Device | None) -> None:
    """Keep what torch sees of the cards and how fast the link of an opened device is.

    The device must be idle and its memory free. What a profile states of a simulated one stays.
    """
    seen = see_cards(CPU if device is None else device.device)
    told = read_gpus(SystemFiles(), os.environ) if seen else []
    keep_cards(cards_path(rates_path), seen, told)
    if device is None or device.is_simulated:
        return
    found = measure_link(device)
    if found is not None:
        rates = RateCache(rates_path)
        for key, rate in (
            (link_key(device.device), found.to_device),
            (link_back_key(device.device), found.to_host),
        ):
            if rate is not None:
                rates.record(key, rate.value, rate.method)
