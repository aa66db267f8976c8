"""Phrases with numbers about what the machine does now."""

import time
from collections.abc import Mapping, Sequence

from app.graphs.series import Curve, Totals
from app.state.energy_book import EnergySum
from app.text.energy_words import energy_part, how_known
from app.text.monitor_words import LiveWords, MapWords
from app.text.phrases import DOT, tier_name
from app.text.translate import tr, trn
from app.text.units import count, duration, energy, percent, power, size, watt_hours
from app.text.words import StripWords
from runtime.protocol.telemetry import NoteCode, RateLimits, RuntimeNote
from runtime.protocol.values import Tier

TIER_ORDER = (Tier.VRAM, Tier.RAM, Tier.DRIVE)
_SPACE = "\N{NO-BREAK SPACE}"
_CENTS = {"€": "ct", "$": "ct", "£": "p"}


def tier_place(tier: Tier, *, is_simulated: bool) -> str:
    """The name of a tier; VRAM that is only simulated says so."""
    name = tier_name(tier)
    return f"{name} ({LiveWords.SIMULATED})" if is_simulated and tier is Tier.VRAM else name


def cost(amount: float, currency: str) -> str:
    """Money: ``0.06 ct``, ``1.20 €``; small amounts in the small coin where it has a name."""
    if amount < 0.995 and currency in _CENTS:
        return f"{amount * 100:.2f}{_SPACE}{_CENTS[currency]}"
    digits = 2 if amount >= 0.995 else 4
    return f"{amount:.{digits}f}{_SPACE}{currency}"


def map_size(num_layers: int, num_experts: int) -> str:
    """For example ``48 layers × 128 experts · coloured by tier``; that there are none if so."""
    if not num_experts:
        return MapWords.NO_EXPERTS
    text = tr("{layers} layers × {experts} experts").format(layers=num_layers, experts=num_experts)
    return DOT.join((text, MapWords.BY_TIER))


def map_described(num_in_tiers: tuple[int, ...], *, is_simulated: bool) -> str:
    """The map in words, for those who do not see it: ``VRAM 1,204, RAM 2,000, drive 2,940``."""
    parts = [
        f"{tier_place(tier, is_simulated=is_simulated)} {count(number)}"
        for tier, number in zip(TIER_ORDER, num_in_tiers, strict=True)
        if number
    ]
    if not parts:
        return MapWords.NO_EXPERTS
    return tr("Experts: {parts}").format(parts=", ".join(parts))


def pointed_expert(
    *,
    layer: int,
    num_layers: int,
    expert: int,
    num_experts: int,
    tier: str,
    bits: int,
    uses: float,
) -> str:
    """For example ``layer 12 of 48 · expert 87 of 128 · RAM · 8 bits · used about 14 times``."""
    parts = [
        tr("layer {n} of {all}").format(n=layer + 1, all=num_layers),
        tr("expert {n} of {all}").format(n=expert + 1, all=num_experts),
        tier,
    ]
    if bits:
        parts.append(tr("{bits} bits").format(bits=bits))
    whole = round(uses)
    used = trn("used about {count} time", "used about {count} times", whole)
    parts.append(used.format(count=count(whole)) if whole else tr("not used in the last minute"))
    return DOT.join(parts)


def with_bytes(expert: str, num_bytes: int) -> str:
    """Add what an expert takes to the words about it, where that is known."""
    return DOT.join((expert, size(num_bytes))) if num_bytes else expert


def pointed_layer(layer: int, num_layers: int, parts: Sequence[float]) -> str:
    """For example ``layer 12 of 48 · VRAM 41 % · RAM 55 % · drive 4 %``."""
    found = [tr("layer {n} of {all}").format(n=layer + 1, all=num_layers)]
    if any(parts):
        found += [
            f"{tier_name(tier)} {percent(part)}"
            for tier, part in zip(TIER_ORDER, parts, strict=True)
        ]
    else:
        found.append(tr("not used in the last minute"))
    return DOT.join(found)


def bars_described(shares: Sequence[Sequence[float]]) -> str:
    """Say which layer waits most for the drive; a share is that of VRAM, RAM and the drive."""
    on_drive = [parts[-1] for parts in shares]
    most = max(on_drive, default=0.0)
    if most <= 0:
        return tr("No layer reads from the drive.")
    return tr("Layer {n} reads most from the drive: {share} of its look-ups.").format(
        n=on_drive.index(most) + 1, share=percent(most)
    )


def by_bytes(ratio: float) -> str:
    """For example ``by bytes 58 %``."""
    return tr("by bytes {share}").format(share=percent(ratio))


def throughput_unit(most_bytes_per_s: float) -> tuple[float, str]:
    """Return the divisor and the name of the unit that fits the largest rate, GB/s for none."""
    is_small = 0 < most_bytes_per_s < 0.5e9
    return (1e6, "MB/s") if is_small else (1e9, "GB/s")


def rate_of_limit(bytes_per_s: float, limit: float, divisor: float) -> str:
    """For example ``34 of 52``; without a known limit ``34``."""
    now = _digits(bytes_per_s / divisor)
    return tr("{now} of {most}").format(now=now, most=_digits(limit / divisor)) if limit else now


def limits_by_curve(limits: RateLimits) -> dict[Curve, float]:
    """Return the limit of each curve."""
    return {Curve.RAM_READ: limits.ram_read, Curve.LINK: limits.link, Curve.DRIVE: limits.drive}


def power_line(totals: Totals) -> str:
    """For example ``128 W now (processor 38 measured, rest 90 estimated)``."""
    if totals.interval_s <= 0 or not totals.joules:
        return LiveWords.NO_POWER
    parts = ", ".join(
        tr("{part} {watts} {how}").format(
            part=energy_part(source, is_all=not totals.measured_sources),
            watts=f"{joules / totals.interval_s:.0f}",
            how=how_known(is_measured=source in totals.measured_sources),
        )
        for source, joules in totals.joules.items()
        if joules / totals.interval_s >= 0.5
    )
    now = tr("{watts} now").format(watts=power(totals.per_s(Curve.POWER)))
    return f"{now} ({parts})" if parts else now


def energy_cost(wh_per_1000_tokens: float, amount: float, currency: str) -> str:
    """For example ``1.7 Wh per 1000 tokens · 0.06 ct``."""
    text = tr("{energy} per 1000 tokens").format(energy=watt_hours(wh_per_1000_tokens))
    return DOT.join((text, cost(amount, currency)))


def energy_sums(session: EnergySum, month: EnergySum, price_per_kwh: float, currency: str) -> str:
    """For example ``This session 1.2 Wh · 0.04 ct, this month 45 Wh · 1.3 ct``."""
    if not month.num_answers:
        return ""
    texts = [
        DOT.join(
            (
                name.format(energy=energy(each.joules)),
                cost(each.cost(price_per_kwh), currency),
            )
        )
        for name, each in (
            (tr("This session {energy}"), session),
            (tr("this month {energy}"), month),
        )
    ]
    return ", ".join(texts)


def token_title(tokens_per_s: float) -> str:
    """For example ``A token takes 47 ms``."""
    if tokens_per_s <= 0:
        return LiveWords.TOKEN
    seconds = 1 / tokens_per_s
    text = duration(seconds) if seconds >= 1 else f"{seconds * 1000:.0f}{_SPACE}ms"
    return tr("A token takes {time}").format(time=text)


def token_parts(seconds: Mapping[str, float], token_s: float) -> str:
    """For example ``graphics card 16 · processor 23 · waiting for the drive 6 · other 2`` in ms."""
    total = sum(seconds.values())
    if total <= 0 or token_s <= 0:
        return ""
    return DOT.join(
        f"{cause_name(cause)} {_digits(amount / total * token_s * 1000)}{_SPACE}ms"
        for cause, amount in in_order(seconds)
        if amount / total >= 0.005
    )


def time_shares(seconds: Mapping[str, float]) -> str:
    """For example ``graphics card 34 % · processor 49 % · waiting for the drive 12 %``."""
    total = sum(seconds.values())
    if total <= 0:
        return ""
    return DOT.join(
        f"{cause_name(cause)} {percent(amount / total)}"
        for cause, amount in in_order(seconds)
        if amount > 0
    )


def in_order(seconds: Mapping[str, float]) -> list[tuple[str, float]]:
    """Return the causes from hot to cold, ``other`` last."""
    order = ("device", "compute", "drive_wait", "other")
    known = [(cause, seconds[cause]) for cause in order if cause in seconds]
    return known + [(cause, value) for cause, value in seconds.items() if cause not in order]


def cause_name(cause: str) -> str:
    """What a part of the time was spent on."""
    names = {
        "device": LiveWords.DEVICE,
        "compute": LiveWords.CPU,
        "drive_wait": LiveWords.DRIVE_WAIT,
        "other": LiveWords.OTHER,
    }
    return names.get(cause, cause)


def note_line(at_s: float, note: RuntimeNote) -> str:
    """For example ``14:02 RAM budget 1.2 GiB, before 2.4 GiB``."""
    clock = time.strftime("%H:%M", time.localtime(at_s))
    return f"{clock} {_note_text(note)}"


def _note_text(note: RuntimeNote) -> str:
    values = note.parameters
    if note.code is NoteCode.BUDGET_CHANGED:
        tier = str(values.get("tier", ""))
        names = {tier.value: tier_name(tier) for tier in TIER_ORDER}
        return tr("{tier} budget {new}, before {old}").format(
            tier=names.get(tier, StripWords.RAM),
            new=size(float(values.get("new_bytes", 0))),
            old=size(float(values.get("old_bytes", 0))),
        )
    if note.code is NoteCode.CARD_UNPACKS:
        return tr(
            "Triton is not at hand, so the graphics card unpacks weights before each use, which"
            " moves several times the bytes. Installing it beside torch changes that."
        )
    if note.code is NoteCode.CARD_STARTS_PIECES:
        return tr(
            "Starting a layer's fixed part as one does not work on this graphics card, so its"
            " pieces are started one by one: slower, and the same answers."
        )
    if note.code is NoteCode.CARD_FULL:
        return tr(
            "The graphics card had less memory than thought: its budget is {new} now, before {old}"
        ).format(
            new=size(float(values.get("new_bytes", 0))),
            old=size(float(values.get("old_bytes", 0))),
        )
    if note.code in (NoteCode.MEMORY_GIVEN_BACK, NoteCode.MEMORY_TAKEN_AGAIN):
        old, new = float(values.get("old_bytes", 0)), float(values.get("new_bytes", 0))
        text = (
            tr("Larder gave back {amount} of RAM because the PC ran short; {new} are left")
            if note.code is NoteCode.MEMORY_GIVEN_BACK
            else tr("There is room again: Larder took back {amount} of RAM and has {new}")
        )
        return text.format(amount=size(abs(old - new)), new=size(new))
    if note.code is NoteCode.DRIVE_STALLED:
        return tr(
            "The drive has not answered for {time}: expert {expert} of layer {layer}, at byte"
            " {offset} of {file}. Check that it is connected and not busy with something else."
        ).format(
            time=duration(float(values.get("seconds", 0))),
            expert=count(int(values.get("expert", 0))),
            layer=count(int(values.get("layer", 0))),
            offset=count(int(values.get("offset_bytes", 0))),
            file=values.get("file", ""),
        )
    number = int(values.get("num_experts", 0))
    if note.code is NoteCode.EXPERTS_LOADED:
        return tr(
            "Every expert is in its place, after {time}; read in the background: {count}"
        ).format(count=count(number), time=duration(float(values.get("seconds", 0))))
    return trn(
        "Topic changed: {count} expert exchanged",
        "Topic changed: {count} experts exchanged",
        number,
    ).format(count=count(number))


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 9.95 or value == 0 else f"{value:.1f}"
