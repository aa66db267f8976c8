"""Why a plan is as it is, each reason with its numbers."""

import dataclasses
from collections.abc import Sequence

from runtime.plan.history import Experience
from runtime.plan.memory import BASE_BYTES, moved_kv_bytes
from runtime.plan.placement import Card, Placement
from runtime.protocol.machine import MachineReport
from runtime.protocol.model import PreparedCopy, Suitability, SuitabilityRating, TierShare
from runtime.protocol.plan import Reason, ReasonCode
from runtime.protocol.values import Budgets, Forecast, HitsBasis, Tier, WeightFormat
from runtime.spec.gguf import EXACT_KINDS
from runtime.spec.tensors import STORED_BITS

_EXACT_KINDS = frozenset(kind.name for kind in EXACT_KINDS)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the planner knew and decided for one plan."""

    machine: MachineReport
    budgets: Budgets
    placement: Placement
    tiers: list[TierShare]
    forecast: Forecast | None
    experience: Experience | None
    num_own_tokens: int
    """Generated tokens of the model whose routing was counted here."""
    copy: PreparedCopy | None
    expert_format: WeightFormat
    is_exact: bool
    is_in_place: bool
    """Whether nothing has to be written."""
    published_bits: int
    """As in ``ModelReport``; so is the next."""
    gguf_kinds: Sequence[str]
    suitability: Suitability | None


def reasons_of(facts: Facts) -> list[Reason]:
    """Return the reasons in the order in which a person asks: where, why, what else."""
    return [
        *_device(facts),
        *_other_devices(facts),
        *_placement(facts),
        *_hits(facts),
        *_suitability(facts),
        *_experience(facts),
        *_context(facts),
        *_split(facts),
        *_files(facts),
        *_kernels(facts),
    ]


def _reason(code: ReasonCode, **parameters: str | float) -> Reason:
    return Reason(code=code, parameters=dict(parameters))


def _device(facts: Facts) -> list[Reason]:
    """Return what the device holds and why not more, or why it is not used."""
    devices, card = facts.machine.devices, facts.placement.card
    if card is None:
        return [_reason(ReasonCode.NO_GPU_USED, device=devices[0].name)] if devices else []
    name, share = card.report.name, card.share
    if not card.is_used:
        if facts.budgets.vram_bytes.get(card.report.device) == 0:
            return [_reason(ReasonCode.NO_GPU_USED, device=name)]
        too_small = _reason(
            ReasonCode.VRAM_TOO_SMALL,
            device=name,
            needed_bytes=card.least_bytes,
            budget_bytes=share.budget_bytes,
        )
        return [too_small]
    num_all = share.needs.num_all_slots
    if share.num_slots == num_all:
        fits = _reason(ReasonCode.FITS_IN_VRAM, device=name, needed_bytes=share.num_bytes)
        return [fits, _vram_limit(facts, card)] if share.is_shortened else [fits]
    hot = _reason(
        ReasonCode.HOT_EXPERTS_IN_VRAM,
        device=name,
        num_experts=share.num_slots,
        num_all_experts=num_all,
        vram_bytes=share.num_bytes,
    )
    return [hot, _vram_limit(facts, card)]


def _other_devices(facts: Facts) -> list[Reason]:
    """Name the devices beside the one that plans may use."""
    card = facts.placement.card
    if card is None:
        return []
    return [
        _reason(ReasonCode.OTHER_GPU_UNUSED, device=each.name)
        for each in facts.machine.devices
        if each.device != card.report.device
    ]


def _vram_limit(facts: Facts, card: Card) -> Reason:
    share, given = card.share, facts.budgets.vram_bytes.get(card.report.device)
    if given is not None and given <= share.room.largest_bytes:
        return _reason(
            ReasonCode.VRAM_LIMITED_BY_BUDGET,
            device=card.report.name,
            budget_bytes=given,
            needed_bytes=share.needs.all_bytes,
        )
    return _reason(
        ReasonCode.VRAM_LIMITED_BY_FREE,
        device=card.report.name,
        free_bytes=share.room.free_bytes,
        reserve_bytes=share.room.reserve_bytes,
        budget_bytes=share.budget_bytes,
        needed_bytes=share.needs.all_bytes,
    )


def _placement(facts: Facts) -> list[Reason]:
    """Return where the experts are that the device does not hold, and why not more in RAM."""
    placement = facts.placement
    ram, num_all = placement.ram, placement.ram.needs.num_all_slots
    drive = next((share for share in facts.tiers if share.tier is Tier.DRIVE), None)
    if drive is not None:
        reads = _reason(
            ReasonCode.READS_FROM_DRIVE,
            num_experts=drive.num_experts,
            num_all_experts=num_all,
            drive_bytes=drive.bytes,
            bytes_per_token=facts.forecast.drive_bytes_per_token if facts.forecast else 0,
        )
        return [reads, _ram_limit(facts)]
    if placement.used and placement.num_in_vram == num_all:
        return []
    fits = _reason(
        ReasonCode.FITS_IN_RAM,
        num_experts=num_all,
        needed_bytes=ram.num_bytes,
        budget_bytes=ram.budget_bytes,
    )
    is_short = placement.home is ram and ram.is_shortened
    return [fits, _ram_limit(facts)] if is_short else [fits]


def _is_divided(facts: Facts) -> bool:
    """Whether some experts are colder than others."""
    return facts.forecast is not None and sum(1 for each in facts.tiers if each.num_experts) > 1


def _suitability(facts: Facts) -> list[Reason]:
    """Return how well the model bears to be divided, where it is."""
    known = facts.suitability
    if known is None or not _is_divided(facts):
        return []
    codes = {
        SuitabilityRating.WELL: ReasonCode.SUITS_WELL,
        SuitabilityRating.FAIRLY: ReasonCode.SUITS_FAIRLY,
        SuitabilityRating.BADLY: ReasonCode.SUITS_BADLY,
    }
    return [_reason(codes[known.rating], percent=round(100 * known.segment_ratio, 1))]


def _hits(facts: Facts) -> list[Reason]:
    """Return whose routing the hits are taken from, where some experts are colder than others."""
    if facts.forecast is None or not _is_divided(facts):
        return []
    percent = round(100 * facts.forecast.hit_ratio, 1)
    match facts.forecast.hits_basis:
        case HitsBasis.OWN:
            tokens = facts.num_own_tokens
            return [_reason(ReasonCode.HITS_FROM_OWN, percent=percent, num_tokens=tokens)]
        case HitsBasis.FAMILY:
            return [_reason(ReasonCode.HITS_FROM_FAMILY, percent=percent)]
        case _:
            return [_reason(ReasonCode.HITS_ASSUMED, percent=percent)]


def _experience(facts: Facts) -> list[Reason]:
    """Return what earlier answers under such a plan reached, beside what was forecast for them."""
    known = facts.experience
    if known is None or not known.num_answers:
        return []
    return [
        _reason(
            ReasonCode.RAN_BEFORE,
            num_answers=known.num_answers,
            tokens_per_s=round(known.measured_tokens_per_s, 2),
            predicted_tokens_per_s=round(known.predicted_tokens_per_s, 2),
        )
    ]


def _ram_limit(facts: Facts) -> Reason:
    ram, given = facts.placement.ram, facts.budgets.ram_bytes
    needed = ram.needs.all_bytes
    if given is not None and given <= ram.room.largest_bytes:
        return _reason(ReasonCode.RAM_LIMITED_BY_BUDGET, budget_bytes=given, needed_bytes=needed)
    if ram.room.limit_bytes is not None:
        return _reason(
            ReasonCode.RAM_LIMITED_BY_CONTROL_GROUP,
            limit_bytes=ram.room.limit_bytes,
            budget_bytes=ram.budget_bytes,
            needed_bytes=needed,
        )
    return _reason(
        ReasonCode.RAM_LIMITED_BY_FREE,
        free_bytes=ram.room.free_bytes + BASE_BYTES,
        reserve_bytes=ram.room.reserve_bytes,
        budget_bytes=ram.budget_bytes,
        needed_bytes=needed,
    )


def _context(facts: Facts) -> list[Reason]:
    home = facts.placement.home
    if not home.is_shortened:
        return []
    return [
        _reason(
            ReasonCode.CONTEXT_SHORTENED,
            context_tokens=home.division.context_tokens,
            wanted_tokens=home.needs.wanted_context_tokens,
        )
    ]


def _split(facts: Facts) -> list[Reason]:
    """Return whose keys and values lie in RAM for the sake of experts on the device."""
    card = facts.placement.used
    if card is None or not card.share.division.ram_kv_layers:
        return []
    share = card.share
    return [
        _reason(
            ReasonCode.KV_IN_RAM,
            device=card.report.name,
            num_layers=len(share.division.ram_kv_layers),
            num_all_layers=share.needs.spec.num_layers,
            kv_bytes=moved_kv_bytes(share.needs, share.division),
        )
    ]


def _files(facts: Facts) -> list[Reason]:
    if facts.is_in_place:
        written = _reason(ReasonCode.NOTHING_WRITTEN)
    elif facts.copy is not None:
        written = _reason(
            ReasonCode.ALREADY_PREPARED,
            folder=facts.copy.folder,
            size_bytes=facts.copy.size_bytes,
        )
    else:
        needs = facts.placement.ram.needs
        size_bytes = needs.num_all_slots * needs.record_bytes
        written = _reason(ReasonCode.WRITES_ONCE, size_bytes=size_bytes)
    if facts.is_exact:
        if any(kind not in _EXACT_KINDS for kind in facts.gguf_kinds):
            kinds = ", ".join(facts.gguf_kinds)
            return [written, _reason(ReasonCode.BLOCKS_ARE_REPACKED, kinds=kinds)]
        if facts.published_bits:
            return [written, _reason(ReasonCode.WEIGHTS_ARE_WIDENED, bits=facts.published_bits)]
        return [written, _reason(ReasonCode.ANSWERS_AS_PUBLISHED)]
    bits: float = STORED_BITS[facts.expert_format]
    if facts.copy is not None and facts.copy.mix_bits:
        bits = round(facts.copy.mix_bits, 1)
    return [written, _reason(_quality(bits), bits=bits)]


def _quality(bits: float) -> ReasonCode:
    """Return what so many bits do to answers."""
    notes = (
        (6, ReasonCode.ANSWERS_NEARLY_AS_PUBLISHED),
        (4, ReasonCode.ANSWERS_DIFFER_LITTLE),
        (3, ReasonCode.ANSWERS_DIFFER),
    )
    known = (code for least, code in notes if bits >= least)
    return next(known, ReasonCode.ANSWERS_DIFFER_MUCH)


def _kernels(facts: Facts) -> list[Reason]:
    if facts.machine.kernels.startswith("native"):
        return []
    return [_reason(ReasonCode.SLOW_KERNELS, kernels=facts.machine.kernels)]
