"""Phrases with numbers about the model that is loaded and what its answers took."""

from collections.abc import Sequence

from app.state.budget_range import dense_bytes
from app.text.errors import reason_text
from app.text.phrases import DOT, tier_name, tier_tooltip
from app.text.translate import tr
from app.text.units import power, size
from app.text.words import StripWords
from runtime.protocol.chat import GenerationStats
from runtime.protocol.model import LoadedModel, TierShare
from runtime.protocol.plan import PlacementPlan, ReasonCode
from runtime.protocol.values import WeightFormat

_BITS = {
    WeightFormat.F32: "32",
    WeightFormat.F16: "16",
    WeightFormat.BF16: "16",
    WeightFormat.Q8_G32: "8.5",
    WeightFormat.Q4_G32: "4.5",
    WeightFormat.MXFP4: "4.25",
    WeightFormat.Q4A_G32: "4.5",
    WeightFormat.Q6_G32: "6.5",
    WeightFormat.Q3_G16: "3.5",
    WeightFormat.Q2_G16: "2.5",
    WeightFormat.Q4K_G32: "4.5",
    WeightFormat.Q6K_G16: "6.6",
    WeightFormat.Q5K_G32: "5.5",
    WeightFormat.Q3K_G16: "3.6",
    WeightFormat.Q2K_G16: "2.6",
}


def loaded_line(model: LoadedModel) -> str:
    """For example ``8.5 bits · not exact``; of a mix the bits in the mean."""
    number = f"{model.mean_bits:.1f}" if model.mean_bits else _BITS[model.expert_format]
    bits = tr("{bits} bits").format(bits=number)
    return DOT.join((bits, StripWords.EXACT if model.is_exact else StripWords.NOT_EXACT))


def placement(tiers: Sequence[TierShare], plan: PlacementPlan | None) -> str:
    """Where the experts lie, a line for each tier, and the part that every token uses."""
    lines = [tier_tooltip(share) for share in tiers if share.bytes]
    if plan is not None:
        tier, num_bytes = dense_bytes(plan)
        if num_bytes:
            lines.append(
                tr("Beside the experts, what every token uses: {size} in {tier}").format(
                    size=size(num_bytes), tier=tier_name(tier)
                )
            )
    return "\n".join(lines)


def watts(stats: GenerationStats) -> str:
    """Mean power during an answer: ``128 W``; empty where nothing is known."""
    seconds = stats.prefill_s + stats.decode_s
    if not stats.energy.total_j or seconds <= 0:
        return ""
    return power(stats.energy.total_j / seconds)


def memory_line(model: LoadedModel) -> str:
    """What the program may take in all: ``RAM 1.2 GiB``."""
    return tr("RAM {size}").format(size=size(model.budget_bytes + model.base_bytes))


def memory_tooltip(model: LoadedModel) -> str:
    """What that is made of."""
    return tr("{budget} for the model, {base} for the program itself").format(
        budget=size(model.budget_bytes), base=size(model.base_bytes)
    )


def given_back(plan: PlacementPlan | None) -> tuple[str, str] | None:
    """What a model gave back to other programs, for the strip, and the whole sentence; or None."""
    reasons = plan.reasons if plan is not None else []
    reason = next((each for each in reasons if each.code is ReasonCode.RAM_GIVEN_BACK), None)
    if reason is None:
        return None
    amount = size(float(reason.parameters.get("given_bytes", 0)))
    return tr("gave back {amount} of RAM").format(amount=amount), reason_text(reason)
