"""Phrases with numbers about the model that is loaded and what its answers took."""

from collections.abc import Mapping, Sequence

from app.text.phrases import DOT, tier_name, tier_tooltip
from app.text.translate import tr
from app.text.units import percent, size
from app.text.view_words import MonitorWords
from app.text.words import StripWords
from runtime.protocol.model import LoadedModel, TierShare
from runtime.protocol.values import Tier, WeightFormat

_BITS = {
    WeightFormat.F32: "32",
    WeightFormat.F16: "16",
    WeightFormat.BF16: "16",
    WeightFormat.Q8_G32: "8.5",
    WeightFormat.Q4_G32: "4.5",
}


def loaded_line(model: LoadedModel) -> str:
    """For example ``8.5 bits · not exact``."""
    bits = tr("{bits} bits").format(bits=_BITS[model.expert_format])
    return DOT.join((bits, StripWords.EXACT if model.is_exact else StripWords.NOT_EXACT))


def tier_amount(tier: str, num_bytes: int) -> str:
    """For example ``8.6 GiB RAM``."""
    return f"{size(num_bytes)} {tier_name(Tier(tier))}"


def tiers_tooltip(tiers: Sequence[TierShare]) -> str:
    """A line for each tier: experts and size."""
    return "\n".join(tier_tooltip(share) for share in tiers if share.bytes)


def memory_line(model: LoadedModel) -> str:
    """What the program may take in all: ``RAM 1.2 GiB``."""
    return tr("RAM {size}").format(size=size(model.budget_bytes + model.base_bytes))


def memory_tooltip(model: LoadedModel) -> str:
    """What that is made of."""
    return tr("{budget} for the model, {base} for the program itself").format(
        budget=size(model.budget_bytes), base=size(model.base_bytes)
    )


def seconds_line(seconds: Mapping[str, float]) -> str:
    """For example ``computing 88 % · waiting for the drive 12 %``."""
    names = {
        "compute": MonitorWords.COMPUTE,
        "drive_wait": MonitorWords.DRIVE_WAIT,
        "other": MonitorWords.OTHER,
    }
    total = sum(seconds.values())
    if total <= 0:
        return ""
    return DOT.join(
        f"{names.get(cause, cause)} {percent(amount / total)}"
        for cause, amount in seconds.items()
        if amount > 0
    )
