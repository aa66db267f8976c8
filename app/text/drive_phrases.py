"""Phrases about reading from the drive, its warning, and the budgets that would help."""

from collections.abc import Sequence

from app.state.drive_warning import DriveUse, Remedy, RemedyKind
from app.text.monitor_phrases import cost, tier_place
from app.text.monitor_words import BudgetWords, DriveWords
from app.text.phrases import DOT, plan_name, tier_name
from app.text.translate import tr
from app.text.units import percent, rate_band, size
from runtime.protocol.plan import PlacementPlan
from runtime.protocol.values import Forecast, Tier

_SPACE = "\N{NO-BREAK SPACE}"


def gigabytes(amount: float) -> str:
    """For example ``5.6 GB``, ``12 MB``."""
    if amount >= 0.0995:
        digits = 1 if amount < 99.95 else 0
        return f"{amount:.{digits}f}{_SPACE}GB"
    megabytes = amount * 1000
    return f"{megabytes:.0f}{_SPACE}MB" if megabytes >= 0.95 else f"<1{_SPACE}MB"


def drive_short(use: DriveUse) -> str:
    """For the strip: ``waiting for the drive 62 %`` or ``drive takes 31 % of the energy``."""
    if use.wait_ratio >= use.energy_ratio:
        return tr("waiting for the drive {share}").format(share=percent(use.wait_ratio))
    return tr("drive takes {share} of the energy").format(share=percent(use.energy_ratio))


def drive_facts(use: DriveUse) -> str:
    """For example ``5.6 GB per 100 tokens, waiting for it takes 12 % of the time``."""
    return tr("{amount} per 100 tokens, waiting for it takes {share} of the time").format(
        amount=gigabytes(use.gb_per_100_tokens), share=percent(use.wait_ratio)
    )


def drive_card(use: DriveUse, *, is_warned: bool) -> str:
    """The card beside a chat."""
    if use.drive_bytes <= 0:
        return DriveWords.NOTHING
    end = DriveWords.NOT_FINE if is_warned else DriveWords.FINE
    return f"{drive_facts(use)}. {end}"


def warning_text(use: DriveUse, price_per_kwh: float, currency: str) -> str:
    """What is going on, with its cost at the person's tariff."""
    parts = [drive_facts(use)]
    if use.total_j > 0:
        parts.append(
            tr("1000 tokens cost {cost}, {share} of it for reading").format(
                cost=cost(use.cost_per_1000_tokens(price_per_kwh), currency),
                share=percent(use.energy_ratio),
            )
        )
    return DOT.join(parts)


def answer_note(use: DriveUse, price_per_kwh: float, currency: str) -> str:
    """The part of the line under an answer."""
    text = tr("waited for the drive {share} of the time, {amount} per 100 tokens").format(
        share=percent(use.wait_ratio), amount=gigabytes(use.gb_per_100_tokens)
    )
    if use.total_j > 0:
        money = cost(use.cost_per_1000_tokens(price_per_kwh), currency)
        text = f"{text}, " + tr("{cost} per 1000 tokens").format(cost=money)
    return text


def remedy_text(remedy: Remedy | None) -> str:
    """What would help, and how much."""
    if remedy is None:
        return DriveWords.WORKING_OUT
    plan = remedy.plan
    if plan is None:
        return DriveWords.SMALLER_EXPLAINED
    effect = effect_text(plan.forecast)
    if remedy.kind is RemedyKind.MORE_MEMORY:
        return tr("With {memory} {effect}.").format(memory=memory_of(plan), effect=effect)
    return tr("The plan “{name}” {effect}.").format(name=plan_name(plan.kind), effect=effect)


def effect_text(forecast: Forecast | None) -> str:
    """For example ``about 19–24 tokens/s, reading 0.4 GB per 100 tokens``."""
    if forecast is None:
        return ""
    band = rate_band(forecast.decode_tokens_per_s_low, forecast.decode_tokens_per_s_high)
    read = forecast.drive_bytes_per_token * 100 / 1e9
    if read < 0.005:
        return tr("about {rate}, reading nothing").format(rate=band)
    return tr("about {rate}, reading {amount} per 100 tokens").format(
        rate=band, amount=gigabytes(read)
    )


def remedy_button(kind: RemedyKind) -> str:
    """What the button of a remedy says."""
    names = {
        RemedyKind.MORE_MEMORY: DriveWords.MORE_MEMORY,
        RemedyKind.LOWER_BITS: DriveWords.LOWER_BITS,
        RemedyKind.SMALLER_MODEL: DriveWords.SMALLER_MODEL,
    }
    return names[kind]


def memory_of(plan: PlacementPlan) -> str:
    """For example ``5.1 GiB VRAM and 8.6 GiB RAM``."""
    ram = f"{size(plan.ram_bytes)} {tier_name(Tier.RAM)}"
    if not plan.vram_bytes:
        return ram
    vram = f"{size(plan.vram_bytes)} {tier_name(Tier.VRAM)}"
    return tr("{vram} and {ram}").format(vram=vram, ram=ram)


def budget_facts(total_bytes: int, others_bytes: int, reserve_bytes: int) -> str:
    """For example ``of 12.0 GiB · others hold 1.1 GiB · reserve 0.8 GiB``."""
    parts = [tr("of {total}").format(total=size(total_bytes))]
    if others_bytes > 0:
        parts.append(tr("others hold {size}").format(size=size(others_bytes)))
    if reserve_bytes > 0:
        parts.append(tr("reserve {size}").format(size=size(reserve_bytes)))
    return DOT.join(parts)


def plan_effect(
    ratios: Sequence[tuple[Tier, float]], forecast: Forecast | None, *, is_simulated: bool
) -> str:
    """For example ``Experts: 31 % in VRAM, 52 % in RAM, 17 % on the drive · about 21 tokens/s``."""
    places = {
        Tier.VRAM: tr("in {tier}").format(tier=tier_place(Tier.VRAM, is_simulated=is_simulated)),
        Tier.RAM: tr("in {tier}").format(tier=tier_name(Tier.RAM)),
        Tier.DRIVE: tr("on the drive"),
    }
    parts = ", ".join(f"{percent(ratio)} {places[tier]}" for tier, ratio in ratios if ratio > 0)
    text = tr("Experts: {parts}").format(parts=parts)
    return DOT.join(part for part in (text, effect_text(forecast)) if part)


def vram_kept(vram_bytes: int, ram_bytes: int) -> str:
    """What a model keeps of a device that it was to give up."""
    return tr(
        "It keeps {vram} of the graphics card: {ram} of RAM hold too little without it. Give it"
        " more RAM to free the card."
    ).format(vram=size(vram_bytes), ram=size(ram_bytes))


def vram_unused(least_bytes: int) -> str:
    """Why a device is of no use at a budget."""
    return f"{BudgetWords.NOT_USED} " + tr("It is of use from {size} on.").format(
        size=size(least_bytes)
    )
