"""Forecasts: the curve of hits, the band, and what it rests on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.plan.cost import (
    Held,
    Rates,
    Reads,
    forecast,
    hit_ratio,
    rates_of,
)
from runtime.plan.cost_constants import NATIVE_EFFICIENCY, CostConstants
from runtime.protocol.values import WeightFormat
from tests.support.plan_cases import FOLDER, machine, spec

MODEL = spec()
ALL = 48 * 128
READS = Reads(
    dense_bytes=3 * 10**9,
    dense_format=WeightFormat.BF16,
    expert_record_bytes=2_654_208,
    expert_drive_bytes=2_654_208,
    expert_format=WeightFormat.Q4_G32,
    kv_bytes_per_token=98304,
    num_active_parameters=3 * 10**9,
)
NATIVE = rates_of(machine(), FOLDER)


def held(num_in_ram: int, num_in_vram: int = 0) -> Held:
    return Held(num_in_vram, num_in_ram)


@pytest.mark.parametrize(
    ("num_experts", "top_k", "hits"),
    [
        # Shares of 12.5, 25, 50 and 75 % of the experts, from recorded routing.
        (32, 4, (0.427, 0.640, 0.892, 0.980)),
        (128, 8, (0.567, 0.774, 0.940, 0.990)),
        (64, 6, (0.324, 0.616, 0.850, 0.975)),
    ],
)
def test_hit_ratio_known_models_is_near_what_they_do(
    num_experts: int, top_k: int, hits: tuple[float, ...]
) -> None:
    of = spec(num_experts=num_experts, top_k=top_k)
    for share, measured in zip((0.125, 0.25, 0.5, 0.75), hits, strict=True):
        found = hit_ratio(int(share * num_experts * 48), of)
        assert found == pytest.approx(measured, abs=0.13)
        assert 0.5 <= (1 - found) / (1 - measured) <= 2


@pytest.mark.parametrize(
    ("num_experts", "top_k", "num_slots", "measured"),
    [
        (128, 8, 2, 0.18),
        (128, 8, 4, 0.30),
        (32, 4, 1, 0.142),
        (64, 6, 3, 0.196),
        (32, 24, 6, 0.227),
    ],
)
def test_hit_ratio_below_one_tokens_slots_is_near_what_the_default_does(
    num_experts: int, top_k: int, num_slots: int, measured: float
) -> None:
    of = spec(num_experts=num_experts, top_k=top_k)

    found = hit_ratio(num_slots * 48, of)

    assert found == pytest.approx(measured, abs=0.1)
    assert found <= num_slots / top_k


def test_hit_ratio_is_far_from_uniform() -> None:
    assert hit_ratio(ALL // 2, MODEL) > 0.85


def test_hit_ratio_ends_are_exact() -> None:
    assert hit_ratio(0, MODEL) == 0
    assert hit_ratio(ALL, MODEL) == hit_ratio(2 * ALL, MODEL) == 1
    assert hit_ratio(0, spec(num_layers=2, num_dense_layers=2)) == 1


@given(st.integers(1, 64), st.integers(1, 64), st.integers(0, 200), st.integers(0, 200))
def test_hit_ratio_more_slots_never_fewer_hits(
    num_experts: int, top_k: int, few: int, more: int
) -> None:
    of = spec(num_experts=num_experts, top_k=min(top_k, num_experts), num_layers=3)
    assert 0 <= hit_ratio(few, of) <= hit_ratio(few + more, of) <= 1


def test_forecast_in_ram_follows_the_bytes() -> None:
    costs = CostConstants(layer_s=0, token_s=0, kv_depth_tokens=0)
    found = forecast(MODEL, READS, NATIVE, held(ALL), costs=costs)
    dense_rate = 20e9 * NATIVE_EFFICIENCY[WeightFormat.BF16]
    expert_rate = 20e9 * NATIVE_EFFICIENCY[WeightFormat.Q4_G32]
    seconds = 3e9 / dense_rate + 48 * 8 * 2_654_208 / expert_rate
    assert found.decode_tokens_per_s_low == pytest.approx(0.65 / seconds)
    assert found.decode_tokens_per_s_high == pytest.approx(1.4 / seconds)
    assert found.drive_bytes_per_token == 0
    assert found.basis == "modelled"


def test_forecast_missing_experts_cost_drive_time() -> None:
    resident = forecast(MODEL, READS, NATIVE, held(ALL))
    half = forecast(MODEL, READS, NATIVE, held(ALL // 2))
    assert 0 < half.drive_bytes_per_token < 0.15 * 48 * 8 * 2_654_208
    assert half.decode_tokens_per_s_low < resident.decode_tokens_per_s_low
    assert half.prompt_tokens_per_s_low < resident.prompt_tokens_per_s_low


def test_forecast_reference_kernels_are_slower() -> None:
    slow = rates_of(machine(kernels="reference"), FOLDER)
    assert not slow.has_native_kernels
    assert (
        forecast(MODEL, READS, slow, held(ALL)).decode_tokens_per_s_high
        < forecast(MODEL, READS, NATIVE, held(ALL)).decode_tokens_per_s_high
    )


def test_forecast_reference_kernels_of_the_demo_model_is_what_they_do() -> None:
    # 0.26 s of one core for each token, measured; 54 tokens/s over a prompt of 41.
    demo = spec(hidden_size=576, num_layers=30, num_experts=32, top_k=24, expert_width=32)
    reads = Reads(
        dense_bytes=164_000_000,
        dense_format=WeightFormat.BF16,
        expert_record_bytes=110_592,
        expert_drive_bytes=110_592,
        expert_format=WeightFormat.BF16,
        kv_bytes_per_token=46_080,
        num_active_parameters=121_800_000,
    )
    slow = rates_of(machine(kernels="reference", ram_gb_per_s=26), FOLDER)
    found = forecast(demo, reads, slow, held(30 * 32))
    assert found.decode_tokens_per_s_low < 1 / 0.26 < found.decode_tokens_per_s_high < 8


def test_forecast_reference_kernels_gain_nothing_from_faster_memory() -> None:
    def prompt_and_decode(ram_gb_per_s: float) -> tuple[float, float]:
        slow = rates_of(machine(kernels="reference", ram_gb_per_s=ram_gb_per_s), FOLDER)
        found = forecast(MODEL, READS, slow, held(ALL))
        return found.prompt_tokens_per_s_low, found.decode_tokens_per_s_low

    assert prompt_and_decode(20) == prompt_and_decode(200)
    fast = forecast(MODEL, READS, NATIVE, held(ALL))
    assert prompt_and_decode(20)[0] < fast.prompt_tokens_per_s_low / 2


def test_forecast_basis_says_what_was_known() -> None:
    def basis(ram: float | None, drive: float | None, slots: int, folder: str = FOLDER) -> str:
        rates = rates_of(machine(ram_gb_per_s=ram, drive_gb_per_s=drive), folder)
        return forecast(MODEL, READS, rates, held(slots)).basis

    assert basis(20, 3, ALL // 2) == "modelled"
    assert basis(20, None, ALL) == "modelled"
    assert basis(20, None, ALL // 2) == "assumed"
    assert basis(20, 3, ALL // 2, "/elsewhere") == "assumed"
    assert basis(None, 3, ALL) == "assumed"


def test_forecast_earlier_run_narrows_the_band() -> None:
    plain = forecast(MODEL, READS, NATIVE, held(ALL))
    known = forecast(MODEL, READS, NATIVE, held(ALL), speed_ratio=0.5)
    assert known.basis == "measured"
    middle = plain.decode_tokens_per_s_low / 0.65
    assert known.decode_tokens_per_s_low == pytest.approx(0.5 * 0.85 * middle)
    assert known.decode_tokens_per_s_high == pytest.approx(0.5 * 1.15 * middle)


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
