"""Phrases about reading from the drive, its warning, and the budgets that would help."""

from collections.abc import Sequence

from app.state.budget_range import BudgetRange
from app.state.drive_warning import DriveUse, Remedy, RemedyKind
from app.text.monitor_phrases import cost, tier_place
from app.text.monitor_words import BudgetWords, DriveWords
from app.text.phrases import DOT, plan_name, tier_name
from app.text.translate import tr
from app.text.units import percent, rate_band, size, tokens, watt_hours
from runtime.protocol.plan import PlacementPlan
from runtime.protocol.values import Forecast, Tier

_SPACE = "\N{NO-BREAK SPACE}"
MAX_NAMED = 2
"""Programs that hold memory, named in a line; all are in its tooltip."""


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


def drive_card(use: DriveUse, *, is_warned: bool, is_quiet: bool = False) -> str:
    """The card beside a chat; where no warning is wanted, what is read alone."""
    if use.drive_bytes <= 0:
        return DriveWords.NOTHING
    if is_quiet:
        return f"{drive_facts(use)}."
    end = DriveWords.NOT_FINE if is_warned else DriveWords.FINE
    return f"{drive_facts(use)}. {end}"


def warning_text(use: DriveUse, price_per_kwh: float, currency: str) -> str:
    """What is going on, with its energy and cost beside those of the same model from RAM."""
    parts = [drive_facts(use)]
    if use.total_j > 0:
        parts.append(
            tr("1000 tokens take {energy}, {share} of it for reading, and cost {cost}").format(
                energy=watt_hours(use.wh_per_1000_tokens),
                cost=cost(use.cost_per_1000_tokens(price_per_kwh), currency),
                share=percent(use.energy_ratio),
            )
        )
        from_ram = use.from_ram
        parts.append(
            tr("from RAM they would take about {energy} and cost {cost} (estimated)").format(
                energy=watt_hours(from_ram.wh_per_1000_tokens),
                cost=cost(from_ram.cost_per_1000_tokens(price_per_kwh), currency),
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


def remedy_text(remedy: Remedy, *, is_second: bool = False) -> str:
    """What would help, and how much."""
    plan = remedy.plan
    if plan is None:
        return DriveWords.SMALLER_TOO if is_second else DriveWords.SMALLER_EXPLAINED
    effect = effect_text(plan.forecast)
    if remedy.kind is RemedyKind.MORE_MEMORY:
        return tr("With {memory} {effect}.").format(memory=memory_of(plan), effect=effect)
    if plan.bytes_to_write:
        return tr("The plan “{name}” {effect}; writes {size} once.").format(
            name=plan_name(plan.kind), effect=effect, size=size(plan.bytes_to_write)
        )
    return tr("The plan “{name}” {effect}.").format(name=plan_name(plan.kind), effect=effect)


def remedies_text(remedies: Sequence[Remedy]) -> str:
    """All that would help, each on its line."""
    if not remedies:
        return DriveWords.WORKING_OUT
    return "\n".join(
        remedy_text(remedy, is_second=index > 0) for index, remedy in enumerate(remedies)
    )


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


def remedy_button(remedy: Remedy) -> str:
    """What the button of a remedy says."""
    if remedy.kind is RemedyKind.LOWER_BITS:
        is_written = remedy.plan is None or not remedy.plan.needs_prepare
        return DriveWords.LOWER_BITS if is_written else DriveWords.WRITE_LOWER_BITS
    names = {
        RemedyKind.MORE_MEMORY: DriveWords.MORE_MEMORY,
        RemedyKind.SMALLER_MODEL: DriveWords.SMALLER_MODEL,
    }
    return names[remedy.kind]


def memory_of(plan: PlacementPlan) -> str:
    """For example ``5.1 GiB VRAM and 8.6 GiB RAM``."""
    ram = f"{size(plan.ram_bytes)} {tier_name(Tier.RAM)}"
    if not plan.vram_bytes:
        return ram
    vram = f"{size(plan.vram_bytes)} {tier_name(Tier.VRAM)}"
    return tr("{vram} and {ram}").format(vram=vram, ram=ram)


def budget_facts(bounds: BudgetRange) -> str:
    """For example ``of 12.0 GiB · others hold 1.1 GiB (browser 0.8 GiB) · reserve 0.8 GiB``."""
    parts = [tr("of {total}").format(total=size(bounds.total_bytes))]
    if bounds.others_bytes > 0:
        others = tr("others hold {size}").format(size=size(bounds.others_bytes))
        named = ", ".join(
            name if held is None else f"{name} {size(held)}"
            for name, held in bounds.holders[:MAX_NAMED]
        )
        parts.append(f"{others} ({named})" if named else others)
    if bounds.reserve_bytes > 0:
        parts.append(tr("reserve {size}").format(size=size(bounds.reserve_bytes)))
    return DOT.join(parts)


def slider_explained(bounds: BudgetRange) -> str:
    """What the parts of a slider mean, with all programs that are known by name."""
    lines = [BudgetWords.EXPLAINED]
    for name, held in bounds.holders:
        lines.append(name if held is None else f"{name}: {size(held)}")
    return "\n".join(lines)


def plan_effect(
    ratios: Sequence[tuple[Tier, float]],
    forecast: Forecast | None,
    context_tokens: int,
    *,
    is_simulated: bool,
) -> str:
    """For example ``Experts: 31 % in VRAM, 69 % in RAM · about 21 tokens/s · prompt 90 tokens/s``.

    The context follows; what is not known is left out.
    """
    places = {
        Tier.VRAM: tr("in {tier}").format(tier=tier_place(Tier.VRAM, is_simulated=is_simulated)),
        Tier.RAM: tr("in {tier}").format(tier=tier_name(Tier.RAM)),
        Tier.DRIVE: tr("on the drive"),
    }
    parts = ", ".join(f"{percent(ratio)} {places[tier]}" for tier, ratio in ratios if ratio > 0)
    lines = [tr("Experts: {parts}").format(parts=parts), effect_text(forecast)]
    if forecast is not None and forecast.prompt_tokens_per_s_high > 0:
        band = rate_band(forecast.prompt_tokens_per_s_low, forecast.prompt_tokens_per_s_high)
        lines.append(tr("prompt {rate}").format(rate=band))
    if context_tokens:
        lines.append(tr("context {tokens}").format(tokens=tokens(context_tokens)))
    return DOT.join(part for part in lines if part)


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
