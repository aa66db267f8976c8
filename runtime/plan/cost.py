"""Predicted speed: bytes that a token reads, divided by the rates they are read at.

What was found by measuring stands in ``cost_constants``.
"""

import dataclasses
import math
from collections.abc import Mapping

from runtime.hardware.energy_terms import (
    ASSUMED,
    CARD_REST_WATTS,
    CARD_WORK_WATTS,
    DRIVE_J_PER_GB,
    PC_WATTS,
    EnergyTerms,
    Work,
    assumed_parts,
)
from runtime.plan.cost_constants import DEFAULT_COSTS, CostConstants
from runtime.plan.history import Experience
from runtime.plan.hits import HitCurve
from runtime.plan.kv_split import Worth, seen_tokens
from runtime.protocol.machine import DeviceReport, MachineReport
from runtime.protocol.values import Forecast, WeightFormat
from runtime.spec.footprint import PREFILL_CHUNK_TOKENS
from runtime.spec.model import ModelSpec


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """Bytes that a plan reads: from RAM for every token, from the drive for a missed expert."""

    dense_bytes: int
    dense_format: WeightFormat
    expert_record_bytes: int
    expert_drive_bytes: int
    expert_formats: Mapping[WeightFormat, int]
    """How many bytes of the experts are in each format; of a single one any number will do."""
    kv_bytes_per_token: int
    num_active_parameters: int
    is_widened: bool = False
    """Whether experts are published in fewer bits than they have in RAM."""
    ram_kv_layers: tuple[int, ...] = ()
    """Layers whose keys and values lie in RAM although a device holds the others."""


@dataclasses.dataclass(frozen=True, slots=True)
class Held:
    """How many experts each tier above the drive holds, each counted once."""

    num_in_vram: int
    num_in_ram: int


@dataclasses.dataclass(frozen=True, slots=True)
class Known:
    """What is known of the model itself: how it reuses experts, and what it reached here before."""

    hits: HitCurve
    experience: Experience | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRates:
    """How fast the device in use is.

    A simulated one computes with the processor: its memory is RAM behind a slow link.
    """

    read_bytes_per_s: float | None
    """None: that of RAM, with the processor's own kernels."""
    link_bytes_per_s: float
    link_back_bytes_per_s: float
    is_measured: bool
    work_watts: float = CARD_WORK_WATTS


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What this PC reads per second, and whether that was measured."""

    ram_bytes_per_s: float
    drive_bytes_per_s: float
    is_ram_measured: bool
    is_drive_measured: bool
    num_cores: int
    has_native_kernels: bool
    device: DeviceRates | None = None
    energy: EnergyTerms = ASSUMED


def rates_of(
    machine: MachineReport,
    folder: str,
    device: DeviceReport | None = None,
    costs: CostConstants = DEFAULT_COSTS,
) -> Rates:
    """Return the rates that count for experts in a folder; assumed where nothing was measured."""
    reports = [report for report in machine.drives if report.folder == folder]
    drive = next((each.read_bytes_per_s for each in reports if each.read_bytes_per_s), None)
    joules = next((each.joules_per_gb for each in reports if each.joules_per_gb), None)
    ram = machine.ram_read_bytes_per_s
    return Rates(
        ram_bytes_per_s=ram.value if ram else costs.assumed_ram_bytes_per_s,
        drive_bytes_per_s=drive.value if drive else costs.assumed_drive_bytes_per_s,
        is_ram_measured=ram is not None,
        is_drive_measured=drive is not None,
        num_cores=max(1, machine.num_physical_cores),
        has_native_kernels=machine.kernels.startswith("native"),
        device=None if device is None else _device_rates(device, costs),
        energy=EnergyTerms(
            pc_watts=machine.pc_watts.value if machine.pc_watts else PC_WATTS,
            drive_j_per_gb=joules.value if joules else DRIVE_J_PER_GB,
        ),
    )


def _device_rates(device: DeviceReport, costs: CostConstants) -> DeviceRates:
    link, read = device.link_bytes_per_s, device.read_bytes_per_s
    back = device.link_back_bytes_per_s or link
    own = read.value if read else costs.assumed_device_bytes_per_s
    return DeviceRates(
        read_bytes_per_s=None if device.is_simulated else own,
        link_bytes_per_s=link.value if link else costs.assumed_link_bytes_per_s,
        link_back_bytes_per_s=back.value if back else costs.assumed_link_bytes_per_s,
        is_measured=link is not None and (device.is_simulated or read is not None),
        work_watts=device.work_watts.value if device.work_watts else CARD_WORK_WATTS,
    )


def forecast(
    spec: ModelSpec,
    reads: Reads,
    rates: Rates,
    held: Held,
    known: Known,
    costs: CostConstants = DEFAULT_COSTS,
) -> Forecast:
    """Return the likeliest speed and the band around it.

    The band is as wide as the misses may vary, times what the costs may be off; an earlier run of
    this model on this PC narrows it around what that one reached.
    """
    curve, experience = known.hits, known.experience
    num_lookups = len(spec.moe_layers) * spec.top_k
    num_held = held.num_in_vram + held.num_in_ram
    hits = curve.ratio(num_held)
    misses = (1 - hits) * num_lookups
    compute_s = _compute_s(spec, reads, rates, curve.ratio(held.num_in_vram), costs)
    drive_s = _drive_s(spec, reads, rates, misses, costs)
    decode_s = compute_s + drive_s
    prompt_s = _prompt_s(spec, reads, rates, held, costs)
    ratio, low, high = 1.0, costs.low_ratio, costs.high_ratio
    few, many = misses * (1 - curve.spread), misses * (1 + curve.spread)
    if experience is not None:
        ratio = experience.speed_ratio
        low, high = (ratio * part for part in experience.band)
        if experience.num_answers:
            # What they reached holds the misses of this model.
            few = many = misses
    is_modelled = (
        rates.is_ram_measured
        and (rates.is_drive_measured or not misses)
        and (rates.device is None or rates.device.is_measured)
    )
    used = _Used(curve.ratio(held.num_in_vram), misses, decode_s / ratio)
    return Forecast(
        prompt_tokens_per_s_low=low / prompt_s,
        prompt_tokens_per_s_high=high / prompt_s,
        decode_tokens_per_s_low=low
        / (compute_s + _drive_s(spec, reads, rates, min(many, num_lookups), costs)),
        decode_tokens_per_s_high=high / (compute_s + _drive_s(spec, reads, rates, few, costs)),
        drive_bytes_per_token=misses * reads.expert_drive_bytes,
        basis="measured" if experience else "modelled" if is_modelled else "assumed",
        prompt_tokens_per_s=ratio / prompt_s,
        decode_tokens_per_s=ratio / decode_s,
        hit_ratio=hits,
        hits_basis=curve.basis,
        drive_s_per_token=drive_s,
        speed_ratio=ratio,
        joules_per_token=_joules(spec, reads, rates, used, costs),
    )


def _drive_s(
    spec: ModelSpec, reads: Reads, rates: Rates, misses: float, costs: CostConstants
) -> float:
    """Return seconds that a token waits for so many misses.

    The misses of a layer are asked for together: their bytes pass one after the other, and what a
    read takes beside them is waited for once in a layer that misses at all.
    """
    if not misses:
        return 0.0
    num_layers = len(spec.moe_layers)
    hit_ratio = 1 - misses / (num_layers * spec.top_k)
    num_waits = num_layers * (1 - hit_ratio**spec.top_k)
    at_once = misses / num_waits
    return misses * _read_s(reads, rates, at_once, costs) + num_waits * costs.miss_s


def _read_s(reads: Reads, rates: Rates, at_once: float, costs: CostConstants) -> float:
    """Return seconds of reading one expert, and of widening it beside others."""
    read_s = reads.expert_drive_bytes / rates.drive_bytes_per_s
    if not reads.is_widened:
        return read_s
    num_working = min(at_once, rates.num_cores)
    return read_s + reads.expert_record_bytes / (costs.widened_bytes_per_s * num_working)


@dataclasses.dataclass(frozen=True, slots=True)
class _Used:
    """What a token takes, as far as energy goes by it."""

    vram_hits: float
    misses: float
    seconds: float


def _joules(
    spec: ModelSpec, reads: Reads, rates: Rates, used: _Used, costs: CostConstants
) -> float:
    """Return the energy of a generated token, all of it assumed.

    A card works as long as it reads its memory and rests meanwhile; what it really takes is
    measured while it answers, where that can be.
    """
    num_lookups = len(spec.moe_layers) * spec.top_k
    device = rates.device
    own_rate = None if device is None else device.read_bytes_per_s
    on_card = used.vram_hits if own_rate is not None else 0.0
    expert_bytes = num_lookups * reads.expert_record_bytes
    work = Work(
        seconds=used.seconds,
        drive_bytes=round(used.misses * reads.expert_drive_bytes),
        ram_bytes=round(
            (1 - on_card) * expert_bytes + (reads.dense_bytes if own_rate is None else 0)
        ),
    )
    joules = sum(part.joules for part in assumed_parts((), work, rates.energy))
    if device is None or own_rate is None:
        return joules
    read_s = (reads.dense_bytes + on_card * expert_bytes) / (own_rate * costs.device_efficiency)
    busy_s = min(read_s, used.seconds)
    rest_watts = min(CARD_REST_WATTS, device.work_watts)
    return joules + rest_watts * used.seconds + (device.work_watts - rest_watts) * busy_s


def _compute_s(
    spec: ModelSpec, reads: Reads, rates: Rates, vram_hits: float, costs: CostConstants
) -> float:
    """Return seconds of a generated token without waiting for the drive.

    The device computes the dense part and its own experts, the processor the others, one after the
    other.
    """
    expert_rate = _experts_per_s(rates, reads, costs)
    dense_rate = weights_per_s(rates, reads.dense_format, costs)
    hot_rate, layer_s, in_vram = expert_rate, _layer_s(rates, costs), 0.0
    if rates.device is not None:
        in_vram = vram_hits
        # Hidden states go to the processor and its experts' sums come back, in f32.
        link_s = 4 * spec.hidden_size / rates.device.link_bytes_per_s
        link_s += 4 * spec.hidden_size / rates.device.link_back_bytes_per_s
        layer_s += costs.device_layer_s + link_s
        if rates.device.read_bytes_per_s is not None:
            hot_rate = dense_rate = rates.device.read_bytes_per_s * costs.device_efficiency
    here_bytes = _ram_kv_bytes(spec, reads, costs)
    dense = reads.dense_bytes + costs.kv_depth_tokens * reads.kv_bytes_per_token - here_bytes
    num_experts = len(spec.moe_layers) * spec.top_k
    expert_s = 0.0 if rates.has_native_kernels else costs.reference_expert_s
    hot_s = in_vram * reads.expert_record_bytes / hot_rate
    cool_s = (1 - in_vram) * (expert_s + reads.expert_record_bytes / expert_rate)
    return (
        dense / dense_rate
        + here_bytes / weights_per_s(rates, WeightFormat.F32, costs)
        + len(reads.ram_kv_layers) * costs.kv_hop_s
        + num_experts * (hot_s + cool_s)
        + spec.num_layers * layer_s
        + costs.token_s
    )


def _ram_kv_bytes(spec: ModelSpec, reads: Reads, costs: CostConstants) -> int:
    """Return the keys and values that a token reads of RAM beside a device."""
    return sum(
        4 * each.kv.num_channels * seen_tokens(each, costs.kv_depth_tokens)
        for each in (spec.attention[layer] for layer in reads.ram_kv_layers)
    )


def worth_of(
    spec: ModelSpec, reads: Reads, rates: Rates, hits: HitCurve, costs: CostConstants
) -> Worth | None:
    """Return what a token saves by what lies on the device; None where that is nothing.

    A simulated device reads no faster than RAM.
    """
    device = rates.device
    if device is None or device.read_bytes_per_s is None:
        return None
    device_rate = device.read_bytes_per_s * costs.device_efficiency
    expert_s = 0.0 if rates.has_native_kernels else costs.reference_expert_s
    here_s = expert_s + reads.expert_record_bytes / _experts_per_s(rates, reads, costs)
    return Worth(
        hits=hits,
        num_lookups=len(spec.moe_layers) * spec.top_k,
        expert_s=max(0.0, here_s - reads.expert_record_bytes / device_rate),
        kv_byte_s=max(0.0, 1 / weights_per_s(rates, WeightFormat.F32, costs) - 1 / device_rate),
        kv_layer_s=costs.kv_hop_s,
    )


def _experts_per_s(rates: Rates, reads: Reads, costs: CostConstants) -> float:
    """Return how fast the processor's kernels go through experts in RAM."""
    formats = reads.expert_formats
    if len(formats) == 1:
        return weights_per_s(rates, next(iter(formats)), costs)
    seconds = sum(number / weights_per_s(rates, each, costs) for each, number in formats.items())
    return sum(formats.values()) / seconds


def weights_per_s(rates: Rates, weight_format: WeightFormat, costs: CostConstants) -> float:
    """Return how fast the processor goes through weights in RAM, in bytes per second.

    Native kernels are held by what RAM gives and by what the cores compute, and near the point
    where both are alike a little more than by either: the fourth powers of both times add up.
    """
    if not rates.has_native_kernels:
        return min(rates.ram_bytes_per_s, costs.reference_bytes_per_s[weight_format])
    computed = rates.num_cores * costs.native_core_bytes_per_s[weight_format]
    slower, faster = sorted((rates.ram_bytes_per_s, computed))
    # The ratio is 1 at most, whatever was stated.
    return slower / math.sqrt(math.hypot(1.0, (slower / faster) ** 2))


def _layer_s(rates: Rates, costs: CostConstants) -> float:
    return costs.layer_s if rates.has_native_kernels else costs.reference_layer_s


def _prompt_s(
    spec: ModelSpec, reads: Reads, rates: Rates, held: Held, costs: CostConstants
) -> float:
    """Return seconds per prompt token: arithmetic, and what is done once for each chunk.

    That is to read each expert without a slot.
    """
    num_all = len(spec.moe_layers) * spec.num_experts
    flops_per_s = costs.flops_per_core * rates.num_cores
    if rates.device is not None and rates.device.read_bytes_per_s is not None:
        # A prompt uses all experts of a layer, so the device does its share of the slots.
        on_device = 1 - _expert_part(spec, reads) * (1 - held.num_in_vram / max(1, num_all))
        device_per_s = rates.device.read_bytes_per_s * costs.flops_per_device_byte
        flops_per_s = 1 / (on_device / device_per_s + (1 - on_device) / flops_per_s)
    flops_s = 2 * reads.num_active_parameters / flops_per_s
    num_absent = max(0, num_all - held.num_in_vram - held.num_in_ram)
    drive_s = num_absent * _read_s(reads, rates, rates.num_cores, costs)
    drive_s += min(num_absent, len(spec.moe_layers)) * costs.miss_s
    layers_s = spec.num_layers * _layer_s(rates, costs)
    unpack_s = 0.0
    if not rates.has_native_kernels:
        # The reference unpacks all weights anew for each chunk.
        unpack_s = reads.dense_bytes / weights_per_s(rates, reads.dense_format, costs)
        one_s = reads.expert_record_bytes / _experts_per_s(rates, reads, costs)
        unpack_s += num_all * (costs.reference_expert_s + one_s)
    return flops_s + (drive_s + unpack_s + layers_s + costs.token_s) / PREFILL_CHUNK_TOKENS


def _expert_part(spec: ModelSpec, reads: Reads) -> float:
    """Return which part of the parameters that a token uses belongs to routed experts."""
    num_experts = len(spec.moe_layers) * spec.top_k
    routed = num_experts * 3 * spec.hidden_size * spec.expert_width
    return min(1.0, routed / max(1, reads.num_active_parameters))
