"""What each colour of the expert map means: a text for each colour of the palette that it uses."""

from collections.abc import Sequence

from app.text.monitor_phrases import TIER_ORDER, tier_place
from app.text.monitor_words import MapWords
from app.text.translate import tr
from app.text.units import count

BITS_COLOURS = ("bits_4", "bits_8", "bits_16", "bits_32")
USE_COLOURS = ("use_weak", "use_strong")
COLOURS = (*(tier.value for tier in TIER_ORDER), *USE_COLOURS, *BITS_COLOURS)

BitsStep = tuple[int, int, int]
"""Fewest and most bits of a colour, and how many experts have it."""


def tier_legend(num_in_tiers: Sequence[int], *, is_simulated: bool) -> dict[str, str]:
    """For example ``VRAM 1,204``, for each tier that holds experts."""
    return {
        tier.value: f"{tier_place(tier, is_simulated=is_simulated)} {count(number)}"
        for tier, number in zip(TIER_ORDER, num_in_tiers, strict=True)
        if number
    }


def use_legend() -> dict[str, str]:
    """Return both ends of the colours by use."""
    return dict(zip(USE_COLOURS, (MapWords.USED_LEAST, MapWords.USED_MOST), strict=True))


def bits_legend(steps: Sequence[BitsStep]) -> dict[str, str]:
    """For example ``4 bits: 2,940``, or ``5–8 bits: 96``, for each colour that experts have."""
    return {
        colour: tr("{bits} bits: {count}").format(
            bits=fewest if fewest == most else f"{fewest}–{most}", count=count(number)
        )
        for colour, (fewest, most, number) in zip(BITS_COLOURS, steps, strict=True)
        if number
    }
