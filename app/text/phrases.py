"""Words with numbers and names in them: one function for each phrase."""

from app.text.energy_words import energy_of_tokens
from app.text.translate import tr, trn
from app.text.units import (
    band,
    count,
    duration,
    energy,
    percent,
    rate,
    rate_band,
    size,
    size_of,
    throughput,
    weights,
    weights_alone,
)
from app.text.words import ChatWords, ModelWords, StripWords
from runtime.protocol.chat import GenerationStats
from runtime.protocol.model import ModelReport, TierShare
from runtime.protocol.plan import PlacementPlan, PlanChoice, PlanKind, ReasonCode
from runtime.protocol.values import Forecast, Tier, TierCount

DOT = " · "
LEAST_LEFT_S = 1.0
"""A shorter time left would be gone before it is read."""


def tier_name(tier: Tier) -> str:
    """VRAM, RAM, drive."""
    names = {Tier.VRAM: StripWords.VRAM, Tier.RAM: StripWords.RAM, Tier.DRIVE: StripWords.DRIVE}
    return names[tier]


def place_name(share: TierShare) -> str:
    """The name of a tier; a device that is only simulated says so."""
    name = tier_name(share.tier)
    is_simulated = share.tier is Tier.VRAM and share.device.startswith("simulated")
    return f"{name} ({StripWords.SIMULATED})" if is_simulated else name


def plan_name(kind: PlanKind) -> str:
    """The name on a plan card."""
    names = {
        PlanKind.EXACT: ModelWords.EXACT,
        PlanKind.EIGHT_BIT: ModelWords.EIGHT_BIT,
        PlanKind.SIX_BIT: ModelWords.SIX_BIT,
        PlanKind.FOUR_BIT: ModelWords.FOUR_BIT,
        PlanKind.THREE_BIT: ModelWords.THREE_BIT,
        PlanKind.TWO_BIT: ModelWords.TWO_BIT,
        PlanKind.MIXED: ModelWords.MIXED,
    }
    return names[kind]


def plan_title(plan: PlacementPlan) -> str:
    """For example ``Balanced · 8 bits``; the bits alone where nothing speaks for a plan."""
    names = {
        PlanChoice.BALANCED: ModelWords.BALANCED,
        PlanChoice.FITS_IN_RAM: ModelWords.FITS_IN_RAM,
        PlanChoice.SMALLEST: ModelWords.SMALLEST,
    }
    choice = names.get(plan.choice) if plan.choice is not None else None
    return plan_name(plan.kind) if choice is None else f"{choice}{DOT}{plan_name(plan.kind)}"


def quality_line(plan: PlacementPlan) -> str:
    """What the bits of a plan do to answers."""
    lines = {
        ReasonCode.ANSWERS_DIFFER_LITTLE: ModelWords.DIFFERS_LITTLE_LINE,
        ReasonCode.ANSWERS_DIFFER: ModelWords.DIFFERS_LINE,
        ReasonCode.ANSWERS_DIFFER_MUCH: ModelWords.DIFFERS_MUCH_LINE,
    }
    if plan.is_exact:
        return ModelWords.EXACT_LINE
    known = (lines[reason.code] for reason in plan.reasons if reason.code in lines)
    return next(known, ModelWords.NEARLY_EXACT_LINE)


def tier_share(share: TierShare) -> str:
    """For example ``8.6 GiB RAM``, ``0.5 GiB VRAM (simulated)``."""
    return f"{size(share.bytes)} {place_name(share)}"


def tier_tooltip(share: TierShare) -> str:
    """For example ``RAM: 1,204 experts, 8.6 GiB``."""
    return tr("{tier}: {number} experts, {size}").format(
        tier=place_name(share), number=count(share.num_experts), size=size(share.bytes)
    )


def tiers_line(tiers: list[TierShare]) -> str:
    """For example ``5.1 GiB VRAM · 8.6 GiB RAM``; tiers that hold nothing are left out."""
    return DOT.join(tier_share(share) for share in tiers if share.bytes > 0)


def model_line(report: ModelReport) -> str:
    """What a model is, in one line under its name."""
    parts = []
    if report.num_parameters:
        parts.append(
            tr("{weights}, {active} used per token").format(
                weights=weights(report.num_parameters),
                active=weights_alone(report.num_active_parameters),
            )
        )
    if report.num_experts:
        parts.append(
            tr("{layers} layers × {experts} experts, {top_k} per token").format(
                layers=report.num_moe_layers, experts=report.num_experts, top_k=report.top_k
            )
        )
    if report.gguf_kinds:
        parts.append(f"GGUF {', '.join(report.gguf_kinds)}")
    if report.file_bytes:
        parts.append(size(report.file_bytes))
    if report.licence:
        parts.append(report.licence)
    return DOT.join(parts)


def forecast(value: Forecast | None) -> str:
    """The decode rate that is expected, with its unit; empty if there is no forecast."""
    if value is None:
        return ""
    return rate_band(value.decode_tokens_per_s_low, value.decode_tokens_per_s_high)


def forecast_in_strip(value: Forecast | None) -> str:
    """For example ``forecast 19–24``."""
    if value is None:
        return ""
    return tr("forecast {band}").format(
        band=band(value.decode_tokens_per_s_low, value.decode_tokens_per_s_high)
    )


def plan_line(plan: PlacementPlan) -> str:
    """Tiers, what is written, what it does to the answers, how prompts are read, what it costs."""
    writes = (
        tr("writes {size} once").format(size=size(plan.bytes_to_write))
        if plan.bytes_to_write
        else ModelWords.WRITES_NOTHING
    )
    prompt_rate = plan.forecast.prompt_tokens_per_s if plan.forecast is not None else 0.0
    prompts = tr("prompts at about {rate}").format(rate=rate(prompt_rate)) if prompt_rate else ""
    per_token = plan.forecast.joules_per_token if plan.forecast is not None else 0.0
    costs = (
        tr("about {energy} per 1000 tokens").format(energy=energy(1000 * per_token))
        if per_token
        else ""
    )
    parts = (tiers_line(plan.tiers), writes, quality_line(plan), prompts, costs)
    return DOT.join(part for part in parts if part)


def ram_budget_line(plan: PlacementPlan) -> str:
    """What a plan's RAM is: takes, needs at least, and from where on nothing is read."""
    return tr(
        "takes {takes} and about {base} for the program itself · runs from {least} · "
        "from {most} on nothing is read from the drive"
    ).format(
        takes=size(plan.ram_bytes),
        base=size(plan.base_bytes),
        least=size(plan.min_ram_bytes),
        most=size(plan.all_ram_bytes),
    )


def progress_line(
    done_bytes: int, total_bytes: int, bytes_per_s: float, seconds_left: float | None
) -> str:
    """Amount, rate and time left; what is not known is left out."""
    parts = []
    if total_bytes:
        parts.append(size_of(done_bytes, total_bytes))
    if bytes_per_s > 0:
        parts.append(throughput(bytes_per_s))
    if seconds_left is not None:
        parts.append(tr("{time} left").format(time=duration(seconds_left)))
    return DOT.join(parts)


def context_line(used_tokens: int, context_tokens: int) -> str:
    """For example ``1,204 of 16,384 tokens``."""
    return tr("{used} of {total} tokens").format(
        used=count(used_tokens), total=count(context_tokens)
    )


def prompt_line(done_tokens: int, total_tokens: int, left_s: float | None = None) -> str:
    """While a prompt is read: ``Reading your question · 512 of 3,000 tokens · 40 s left``."""
    parts = [ChatWords.READING, context_line(done_tokens, total_tokens)]
    if left_s is not None and left_s >= LEAST_LEFT_S:
        parts.append(tr("{time} left").format(time=duration(left_s)))
    return DOT.join(parts)


def hits_line(tiers: list[TierCount]) -> str:
    """Shares of expert look-ups by tier: ``experts from VRAM 61 %, RAM 37 %, drive 2 %``."""
    answered = {item.tier: item.hits for item in tiers}
    total = sum(answered.values())
    if not total:
        return ""
    shares = ", ".join(
        f"{tier_name(tier)} {percent(answered[tier] / total)}"
        for tier in Tier
        if answered.get(tier)
    )
    return tr("experts from {shares}").format(shares=shares)


def stats_line(stats: GenerationStats) -> str:
    """The dim line under an answer."""
    parts = [
        rate(stats.decode_tokens_per_s),
        # Of one new token there is no rate worth telling.
        tr("prompt {rate}").format(rate=rate(stats.prompt_tokens_per_s))
        if stats.prompt_tokens - stats.reused_tokens > 1
        else "",
        tr("first token {time}").format(time=duration(stats.ttft_s)),
        hits_line(stats.tiers),
    ]
    if stats.energy.total_j is not None:
        parts.append(energy(stats.energy.total_j))
    return DOT.join(part for part in parts if part)


def stats_tooltip(stats: GenerationStats) -> str:
    """What a person reads who wants to know more about one answer."""
    lines = [
        tr("{new} new prompt tokens at {rate}, {old} kept from before").format(
            new=count(stats.prompt_tokens - stats.reused_tokens),
            rate=rate(stats.prompt_tokens_per_s),
            old=count(stats.reused_tokens),
        ),
        tr("{number} tokens written at {rate}").format(
            number=count(stats.generated_tokens), rate=rate(stats.decode_tokens_per_s)
        ),
        _moved(stats),
        tr("held at most {peak} of RAM; allowed were {budget} and {base} for the program").format(
            peak=size(stats.peak_bytes),
            budget=size(stats.budget_bytes),
            base=size(stats.base_bytes),
        ),
        energy_of_tokens(stats.energy.parts, stats.generated_tokens),
        tr("seed {seed}").format(seed=stats.seed),
    ]
    if stats.predicted is not None:
        lines.insert(2, tr("expected were {band}").format(band=forecast(stats.predicted)))
    if stats.usual_tokens_per_s > 0:
        lines.insert(3, tr("usual here are {rate}").format(rate=rate(stats.usual_tokens_per_s)))
    return "\n".join(line for line in lines if line)


def _moved(stats: GenerationStats) -> str:
    """What one answer read from the drive and wrote to it."""
    read = size(stats.drive_bytes_read)
    if stats.drive_bytes_written is None:
        return tr("{size} read from the drive").format(size=read)
    return tr("{size} read from the drive, which does not wear it; {written} written to it").format(
        size=read, written=size(stats.drive_bytes_written)
    )


def thought_for(seconds: float) -> str:
    """The fold of a finished thought."""
    return tr("Thought for {time}").format(time=duration(seconds))


def variant_of(index: int, number: int) -> str:
    """Which version of a message is shown: ``2/3``."""
    return f"{index + 1}/{number}"


def library_summary(num_models: int, num_bytes: int) -> str:
    """For example ``3 models · 71 GiB``."""
    models = trn("{count} model", "{count} models", num_models)
    return DOT.join((models.format(count=count(num_models)), size(num_bytes)))


def measured(tokens_per_s: float) -> str:
    """For example ``21 tokens/s measured``."""
    return tr("{rate} measured").format(rate=rate(tokens_per_s))


def on_this_pc(name: str) -> str:
    """Heading of the report on a dropped folder."""
    return tr("{name} on this PC").format(name=name)


def show_all(num_characters: int) -> str:
    """The button under the beginning of a long question."""
    return tr("Show all {number} characters").format(number=count(num_characters))
