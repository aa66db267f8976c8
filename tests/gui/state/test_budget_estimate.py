"""Between the budgets of a curve."""

import dataclasses

import msgspec
import pytest

from app.state.budget_estimate import Estimate, estimate_at
from runtime.protocol.values import Tier
from tests.support.window_values import some_curve

CURVE = some_curve()
"""VRAM 0, 100, 200; RAM 1000, 2000; twice the rate for each step of either."""


def held(estimate: Estimate | None) -> dict[Tier, float]:
    assert estimate is not None
    return dict(estimate.ratios)


def rate(estimate: Estimate | None) -> float:
    assert estimate is not None
    return estimate.forecast.decode_tokens_per_s_low


def at(ram_bytes: int | None, vram_bytes: int | None) -> Estimate | None:
    return estimate_at(CURVE, ram_bytes=ram_bytes, vram_bytes=vram_bytes)


def test_estimate_on_a_point_is_that_point() -> None:
    for row, vram_bytes in enumerate(CURVE.vram_budgets):
        for column, ram_bytes in enumerate(CURVE.ram_budgets):
            found, place = at(ram_bytes, vram_bytes), row * 2 + column
            assert found is not None
            assert rate(found) == CURVE.decode_tokens_per_s_low[place]
            assert found.context_tokens == CURVE.context_tokens[place]
            assert held(found)[Tier.RAM] == CURVE.num_in_ram[place] / CURVE.num_experts
            assert sum(held(found).values()) == pytest.approx(1)
            assert found.is_device_used is (row > 0)


def test_estimate_between_points_is_between_them() -> None:
    assert rate(at(1500, 0)) == pytest.approx(1.5)
    assert rate(at(1000, 150)) == pytest.approx((10 + 20) / 2)
    assert rate(at(1250, 125)) == pytest.approx(0.75 * (10 + 2.5) + 0.25 * (20 + 5))


def test_estimate_below_what_a_card_needs_is_without_it() -> None:
    assert at(2000, 99) == at(2000, 0)


def test_estimate_beyond_the_curve_is_its_end() -> None:
    assert at(5000, 900) == at(2000, 200)


def test_estimate_left_to_the_planner_takes_what_it_would() -> None:
    assert at(2000, None) == at(2000, CURVE.automatic_vram)
    assert at(None, 0) == at(CURVE.automatic_ram[0], 0)
    assert at(None, 150) == at((CURVE.automatic_ram[1] + CURVE.automatic_ram[2]) // 2, 150)


def test_estimate_of_what_cannot_be_loaded_is_none() -> None:
    assert at(999, 0) is None
    first = msgspec.structs.replace(CURVE, context_tokens=[0, *CURVE.context_tokens[1:]])
    assert estimate_at(first, ram_bytes=1500, vram_bytes=0) is None
    assert estimate_at(first, ram_bytes=2000, vram_bytes=0) is not None


def test_estimate_of_a_curve_with_one_budget_is_that_one() -> None:
    one = msgspec.structs.replace(
        CURVE,
        vram_budgets=[0],
        ram_budgets=[1000],
        automatic_ram=[1000],
        **{
            field: getattr(CURVE, field)[:1]
            for field in ("num_in_vram", "num_in_ram", "context_tokens")
        },
    )
    found = estimate_at(one, ram_bytes=None, vram_bytes=None)
    assert found is not None
    assert dataclasses.asdict(found)["is_device_used"] is False
    assert rate(found) == 1
