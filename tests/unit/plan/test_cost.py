"""Forecasts: the curve of hits, the band, and what it rests on."""

import dataclasses

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.hardware.energy_terms import (
    CARD_REST_WATTS,
    CARD_WORK_WATTS,
    PC_WATTS,
    RAM_J_PER_GB,
)
from runtime.plan.cost import (
    Held,
    Known,
    Rates,
    Reads,
    forecast,
    rates_of,
    weights_per_s,
)
from runtime.plan.cost_constants import DEFAULT_COSTS, CostConstants
from runtime.plan.history import FAR_BAND, NEAR_BAND, Experience
from runtime.plan.hits import curve_of
from runtime.protocol.machine import DeviceReport, Measured
from runtime.protocol.values import HitsBasis, WeightFormat
from tests.support.plan_cases import FOLDER, GIB, machine, spec

MODEL = spec()
ALL = 48 * 128
READS = Reads(
    dense_bytes=3 * 10**9,
    dense_format=WeightFormat.BF16,
    expert_record_bytes=2_654_208,
    expert_drive_bytes=2_654_208,
    expert_formats={WeightFormat.Q4_G32: 1},
    kv_bytes_per_token=98304,
    num_active_parameters=3 * 10**9,
)
NATIVE = rates_of(machine(), FOLDER)
KNOWN = Known(curve_of(MODEL))


def held(num_in_ram: int, num_in_vram: int = 0) -> Held:
    return Held(num_in_vram, num_in_ram)


def test_forecast_in_ram_follows_the_bytes() -> None:
    costs = CostConstants(layer_s=0, token_s=0, kv_depth_tokens=0)
    found = forecast(MODEL, READS, NATIVE, held(ALL), KNOWN, costs=costs)
    dense_rate = weights_per_s(NATIVE, WeightFormat.BF16, costs)
    expert_rate = weights_per_s(NATIVE, WeightFormat.Q4_G32, costs)
    seconds = 3e9 / dense_rate + 48 * 8 * 2_654_208 / expert_rate
    assert found.decode_tokens_per_s_low == pytest.approx(0.65 / seconds)
    assert found.decode_tokens_per_s_high == pytest.approx(1.4 / seconds)
    assert found.drive_bytes_per_token == 0
    assert found.basis == "modelled"


@pytest.mark.parametrize(
    ("ram", "cores", "rate"),
    [
        (20e9, 100, 20e9),
        (1e12, 2, 34e9),
        (34e9, 2, 34e9 / 2**0.25),
        (17e9, 2, 16.744e9),
        (1e-200, 2, 1e-200),
        (1e300, 2, 34e9),
    ],
    ids=["RAM", "cores", "both alike", "twice the cores", "nearly nothing", "nearly all"],
)
def test_weights_go_by_ram_or_cores_whichever_is_slower(
    ram: float, cores: int, rate: float
) -> None:
    rates = dataclasses.replace(NATIVE, ram_bytes_per_s=ram, num_cores=cores)
    found = weights_per_s(rates, WeightFormat.Q4_G32, DEFAULT_COSTS)
    assert found == pytest.approx(rate, rel=1e-3, abs=0)


def test_forecast_missing_experts_cost_drive_time() -> None:
    resident = forecast(MODEL, READS, NATIVE, held(ALL), KNOWN)
    half = forecast(MODEL, READS, NATIVE, held(ALL // 2), KNOWN)
    assert 0 < half.drive_bytes_per_token < 0.15 * 48 * 8 * 2_654_208
    assert half.decode_tokens_per_s_low < resident.decode_tokens_per_s_low
    assert half.prompt_tokens_per_s_low < resident.prompt_tokens_per_s_low


def test_forecast_reference_kernels_are_slower() -> None:
    slow = rates_of(machine(kernels="reference"), FOLDER)
    assert not slow.has_native_kernels
    assert (
        forecast(MODEL, READS, slow, held(ALL), KNOWN).decode_tokens_per_s_high
        < forecast(MODEL, READS, NATIVE, held(ALL), KNOWN).decode_tokens_per_s_high
    )


def test_forecast_reference_kernels_of_the_demo_model_is_what_they_do() -> None:
    # 0.26 s of one core for each token, measured; 54 tokens/s over a prompt of 41.
    demo = spec(hidden_size=576, num_layers=30, num_experts=32, top_k=24, expert_width=32)
    reads = Reads(
        dense_bytes=164_000_000,
        dense_format=WeightFormat.BF16,
        expert_record_bytes=110_592,
        expert_drive_bytes=110_592,
        expert_formats={WeightFormat.BF16: 1},
        kv_bytes_per_token=46_080,
        num_active_parameters=121_800_000,
    )
    slow = rates_of(machine(kernels="reference", ram_gb_per_s=26), FOLDER)
    found = forecast(demo, reads, slow, held(30 * 32), Known(curve_of(demo)))
    assert found.decode_tokens_per_s_low < 1 / 0.26 < found.decode_tokens_per_s_high < 8


def test_forecast_reference_kernels_gain_nothing_from_faster_memory() -> None:
    def prompt_and_decode(ram_gb_per_s: float) -> tuple[float, float]:
        slow = rates_of(machine(kernels="reference", ram_gb_per_s=ram_gb_per_s), FOLDER)
        found = forecast(MODEL, READS, slow, held(ALL), KNOWN)
        return found.prompt_tokens_per_s_low, found.decode_tokens_per_s_low

    assert prompt_and_decode(20) == prompt_and_decode(200)
    fast = forecast(MODEL, READS, NATIVE, held(ALL), KNOWN)
    assert prompt_and_decode(20)[0] < fast.prompt_tokens_per_s_low / 2


def test_forecast_basis_says_what_was_known() -> None:
    def basis(ram: float | None, drive: float | None, slots: int, folder: str = FOLDER) -> str:
        rates = rates_of(machine(ram_gb_per_s=ram, drive_gb_per_s=drive), folder)
        return forecast(MODEL, READS, rates, held(slots), KNOWN).basis

    assert basis(20, 3, ALL // 2) == "modelled"
    assert basis(20, None, ALL) == "modelled"
    assert basis(20, None, ALL // 2) == "assumed"
    assert basis(20, 3, ALL // 2, "/elsewhere") == "assumed"
    assert basis(None, 3, ALL) == "assumed"


def experienced(ratio: float, num_answers: int) -> Known:
    band = NEAR_BAND if num_answers else FAR_BAND
    return Known(curve_of(MODEL), Experience(ratio, band, num_answers, 5.0, 10.0))


def test_forecast_earlier_run_narrows_the_band_around_what_it_reached() -> None:
    plain = forecast(MODEL, READS, NATIVE, held(ALL // 2), KNOWN)
    near = forecast(MODEL, READS, NATIVE, held(ALL // 2), experienced(0.5, 3))
    assert (plain.basis, near.basis) == ("modelled", "measured")
    assert near.decode_tokens_per_s == pytest.approx(0.5 * plain.decode_tokens_per_s)
    assert near.prompt_tokens_per_s == pytest.approx(0.5 * plain.prompt_tokens_per_s)
    assert near.decode_tokens_per_s_low == pytest.approx(0.85 * near.decode_tokens_per_s)
    assert near.decode_tokens_per_s_high == pytest.approx(1.15 * near.decode_tokens_per_s)
    assert near.speed_ratio == 0.5
    assert near.drive_s_per_token == plain.drive_s_per_token > 0


def test_forecast_run_under_another_budget_leaves_the_misses_open() -> None:
    near = forecast(MODEL, READS, NATIVE, held(ALL // 2), experienced(0.5, 3))
    far = forecast(MODEL, READS, NATIVE, held(ALL // 2), experienced(0.5, 0))
    assert far.decode_tokens_per_s == near.decode_tokens_per_s
    assert far.decode_tokens_per_s_low < near.decode_tokens_per_s_low
    assert far.decode_tokens_per_s_high > near.decode_tokens_per_s_high


@given(st.integers(0, ALL))
def test_forecast_likeliest_lies_in_the_band_and_is_made_of_its_parts(num_held: int) -> None:
    found = forecast(MODEL, READS, NATIVE, held(num_held), KNOWN)
    assert (
        found.decode_tokens_per_s_low < found.decode_tokens_per_s < found.decode_tokens_per_s_high
    )
    assert (
        found.prompt_tokens_per_s_low < found.prompt_tokens_per_s < found.prompt_tokens_per_s_high
    )
    resident = forecast(MODEL, READS, NATIVE, held(ALL), KNOWN)
    assert 1 / found.decode_tokens_per_s == pytest.approx(
        1 / resident.decode_tokens_per_s + found.drive_s_per_token
    )
    assert found.hits_basis is HitsBasis.FAMILY
    assert found.hit_ratio == KNOWN.hits.ratio(num_held)


def test_rates_unmeasured_are_the_assumed_ones() -> None:
    costs = CostConstants()
    rates = rates_of(machine(ram_gb_per_s=None, drive_gb_per_s=None), FOLDER)
    assert rates == Rates(
        ram_bytes_per_s=costs.assumed_ram_bytes_per_s,
        drive_bytes_per_s=costs.assumed_drive_bytes_per_s,
        is_ram_measured=False,
        is_drive_measured=False,
        num_cores=8,
        has_native_kernels=True,
    )


def test_energy_of_a_token_is_time_and_bytes_and_a_card_at_work_and_at_rest() -> None:
    in_ram = forecast(MODEL, READS, NATIVE, held(ALL), KNOWN)
    seconds = 1 / in_ram.decode_tokens_per_s
    read_bytes = 3e9 + 48 * 8 * 2_654_208
    assert in_ram.joules_per_token == pytest.approx(
        PC_WATTS * seconds + read_bytes / 1e9 * RAM_J_PER_GB
    )
    own = Measured(value=400e9, method="NVML")
    card = DeviceReport(
        device="cuda:0", name="Card", total_bytes=8 * GIB, free_bytes=8 * GIB, read_bytes_per_s=own
    )
    rates = rates_of(machine(devices=(card,)), FOLDER, card)
    on_card = forecast(MODEL, READS, rates, held(0, ALL), KNOWN)
    seconds = 1 / on_card.decode_tokens_per_s
    busy_s = read_bytes / (400e9 * CostConstants().device_efficiency)
    assert busy_s < seconds
    assert on_card.joules_per_token == pytest.approx(
        (PC_WATTS + CARD_REST_WATTS) * seconds + (CARD_WORK_WATTS - CARD_REST_WATTS) * busy_s
    )
    for watts, rest_watts in ((70.0, CARD_REST_WATTS), (10.0, 10.0)):
        stated = Measured(value=watts, method="profile")
        small = msgspec.structs.replace(card, work_watts=stated)
        small_rates = rates_of(machine(devices=(small,)), FOLDER, small)
        assert forecast(MODEL, READS, small_rates, held(0, ALL), KNOWN).joules_per_token == (
            pytest.approx((PC_WATTS + rest_watts) * seconds + (watts - rest_watts) * busy_s)
        )
    # Experts in RAM keep the card waiting, and the whole takes longer.
    half = forecast(MODEL, READS, rates, held(ALL // 2, ALL // 8), KNOWN)
    assert half.joules_per_token > on_card.joules_per_token
    # A simulated card is RAM and the processor.
    pretended = msgspec.structs.replace(card, is_simulated=True)
    simulated = rates_of(machine(devices=(pretended,)), FOLDER, pretended)
    as_ram = forecast(MODEL, READS, simulated, held(0, ALL), KNOWN)
    assert as_ram.joules_per_token == pytest.approx(
        PC_WATTS / as_ram.decode_tokens_per_s + read_bytes / 1e9 * RAM_J_PER_GB
    )


def test_experts_that_are_widened_while_they_are_read_cost_the_processor_too() -> None:
    wide = dataclasses.replace(READS, expert_record_bytes=9_437_184)
    plain, widened = (
        forecast(MODEL, each, NATIVE, held(ALL // 2), KNOWN)
        for each in (wide, dataclasses.replace(wide, is_widened=True))
    )
    misses = (1 - plain.hit_ratio) * 48 * 8
    # Those of a layer are worked on side by side: so many at once where a layer misses at all.
    at_once = misses / (48 * (1 - plain.hit_ratio**8))
    assert 1 < at_once < NATIVE.num_cores
    extra_s = misses / at_once * 9_437_184 / CostConstants().widened_bytes_per_s
    assert widened.drive_s_per_token == pytest.approx(plain.drive_s_per_token + extra_s)
    assert widened.drive_bytes_per_token == plain.drive_bytes_per_token
    assert widened.prompt_tokens_per_s < plain.prompt_tokens_per_s
