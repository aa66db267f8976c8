"""Samples to points and sums."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.graphs.series import (
    BUCKET_S,
    NUM_BUCKETS,
    RECENT_S,
    WINDOW_S,
    Curve,
    SampleSeries,
    Totals,
    axis,
    nice_ceiling,
    shares,
    total,
)
from runtime.protocol.telemetry import HintCount, TelemetrySample
from runtime.protocol.values import EnergyPart, Tier, TierCount


def sample(
    *, tokens: int = 1, rate: float = 10.0, drive: int = 100, joules: float = 5.0
) -> TelemetrySample:
    return TelemetrySample(
        interval_s=0.1,
        num_dropped=0,
        num_tokens=tokens,
        decode_tokens_per_s=rate,
        tiers=[
            TierCount(tier=Tier.RAM, hits=3, misses=1, bytes=300),
            TierCount(tier=Tier.DRIVE, hits=1, misses=0, bytes=100),
        ],
        drive_bytes_read=drive,
        seconds={"compute": 0.08, "drive_wait": 0.02},
        resident_bytes=0,
        ram_by_kind={},
        link_bytes=7,
        ram_bytes_read=300,
        energy=[
            EnergyPart(source="rapl:package", joules=joules, is_measured=True),
            EnergyPart(source="drive-reads", joules=1.0, is_measured=False),
        ],
    )


def test_segments_of_one_bucket_are_its_mean_rate() -> None:
    series = SampleSeries()
    series.add(10.0, sample(drive=100))
    series.add(10.1, sample(drive=300))
    (segment,) = series.segments(Curve.DRIVE, 10.25)
    ((x, value),) = segment
    assert (x, value) == (pytest.approx(0.0), pytest.approx(2000.0))
    ((_, watts),) = series.segments(Curve.POWER, 10.25)[0]
    assert watts == pytest.approx(60.0)


def test_segments_break_where_nothing_was_measured() -> None:
    series = SampleSeries()
    for at_s in (1.0, 1.25, 5.0, 5.25):
        series.add(at_s, sample())
    parts = series.segments(Curve.LINK, 6.0)
    assert [len(part) for part in parts] == [2, 2]


def test_segments_of_a_resting_engine_are_one_though_it_is_measured_seldom() -> None:
    series = SampleSeries()
    for at_s in (1.0, 3.0, 5.0):
        series.add(at_s, msgspec.structs.replace(sample(), interval_s=2.0))
    assert [len(part) for part in series.segments(Curve.POWER, 5.0)] == [3]


def test_recent_of_a_resting_engine_is_the_newest_sample_until_it_is_old() -> None:
    series = SampleSeries()
    seldom = msgspec.structs.replace(sample(drive=600), interval_s=2.0)
    series.add(1.0, sample())
    series.add(3.0, seldom)
    assert series.recent(4.5).per_s(Curve.DRIVE) == pytest.approx(300)
    assert series.recent(6.5) == Totals()
    # As soon as it works, what was before is not a part of it.
    series.add(4.5, sample(drive=100))
    assert series.recent(4.5).per_s(Curve.DRIVE) == pytest.approx(1000)


def test_segments_leave_out_what_is_older_than_the_window() -> None:
    series = SampleSeries()
    series.add(0.0, sample())
    series.add(WINDOW_S + 10, sample())
    assert [len(part) for part in series.segments(Curve.RAM_READ, WINDOW_S + 10)] == [1]
    assert not series.is_empty(WINDOW_S + 10)
    assert series.is_empty(3 * WINDOW_S)


def test_series_empty_has_no_segments_and_no_totals() -> None:
    series = SampleSeries()
    assert series.is_empty(0.0)
    assert series.segments(Curve.DRIVE, 0.0) == []
    assert series.recent(0.0) == Totals()
    series.add(1.0, sample())
    series.clear()
    assert series.is_empty(1.0)
    assert series.recent(1.0).num_tokens == 0


def test_recent_sums_the_last_second_only() -> None:
    series = SampleSeries()
    for step in range(30):
        series.add(step / 10, sample())
    totals = series.recent(2.9)
    assert totals.num_tokens == 10
    assert totals.interval_s == pytest.approx(1.0)
    assert totals.decode_tokens_per_s == pytest.approx(10.0)
    assert totals.hits == {Tier.RAM: 30, Tier.DRIVE: 10}
    assert totals.hit_bytes == {Tier.RAM: 3000, Tier.DRIVE: 1000}
    assert totals.seconds["drive_wait"] == pytest.approx(0.2)
    assert totals.per_s(Curve.DRIVE) == pytest.approx(1000.0)
    assert totals.joules["rapl:package"] == pytest.approx(50.0)
    assert totals.total_j == pytest.approx(60.0)
    assert totals.measured_sources == {"rapl:package"}


def test_recent_decoding_leaves_out_samples_without_tokens() -> None:
    series = SampleSeries()
    series.add(0.0, sample(tokens=0, rate=0.0))
    series.add(0.1, sample(tokens=2))
    totals = series.recent_decoding(0.1, 5.0)
    assert (totals.num_tokens, totals.interval_s) == (2, pytest.approx(0.1))
    assert series.recent(0.1).interval_s == pytest.approx(0.2)


def test_recent_forgets_single_samples() -> None:
    series = SampleSeries()
    series.add(0.0, sample())
    series.add(RECENT_S + 1, sample())
    assert series.recent(RECENT_S + 1, 100.0).num_tokens == 1


def test_totals_of_nothing_have_rates_of_zero() -> None:
    nothing = total([])
    assert nothing.decode_tokens_per_s == 0
    assert nothing.per_s(Curve.POWER) == 0
    assert nothing.total_j == 0
    assert shares(nothing.hits) == {}


def test_bucket_of_no_length_is_no_point() -> None:
    series = SampleSeries()
    empty = TelemetrySample(
        interval_s=0.0, num_dropped=0, num_tokens=0, decode_tokens_per_s=0.0, tiers=[],
        drive_bytes_read=0, seconds={}, resident_bytes=0, ram_by_kind={},
    )  # fmt: skip
    series.add(1.0, empty)
    assert series.segments(Curve.DRIVE, 1.0) == []


@given(st.lists(st.floats(0.01, 3.0), min_size=1, max_size=200))
def test_segments_are_ordered_within_the_window_and_keep_the_amount(gaps: list[float]) -> None:
    series = SampleSeries()
    now_s = 100.0
    for gap in gaps:
        now_s += gap
        series.add(now_s, sample(drive=50))
    points = [point for part in series.segments(Curve.DRIVE, now_s) for point in part]
    ages = [age for age, _ in points]
    assert ages == sorted(ages)
    assert all(-WINDOW_S <= age <= 0 for age in ages)
    assert all(value == pytest.approx(500.0) for _, value in points)
    assert len(points) <= WINDOW_S / BUCKET_S + 1


@given(st.dictionaries(st.sampled_from(list(Tier)), st.integers(0, 10**12)))
def test_shares_sum_to_one_in_order(amounts: dict[Tier, int]) -> None:
    found = shares(amounts)
    if sum(amounts.values()):
        assert math.isclose(sum(found.values()), 1.0)
        assert list(found) == list(Tier)
    else:
        assert found == {}


@given(st.floats(1e-6, 1e15))
def test_nice_ceiling_is_the_next_round_number(value: float) -> None:
    top = nice_ceiling(value)
    assert value <= top <= value * 2.5 * (1 + 1e-9)
    assert str(f"{top:.0e}")[0] in "125"


def test_nice_ceiling_of_nothing_is_one() -> None:
    assert nice_ceiling(0.0) == 1.0
    assert [nice_ceiling(value) for value in (1.0, 1.5, 3.0, 7.0, 0.03)] == [1, 2, 5, 10, 0.05]


@given(st.floats(0, 1e12), st.floats(0, 1e12))
def test_axis_holds_its_values_in_few_round_steps(one: float, other: float) -> None:
    low, high = sorted((one, other))
    start, end, step = axis(low, high)
    assert step > 0
    assert start <= low + 1e-6 * high
    assert end >= high * (1 - 1e-6)
    assert 1 <= round((end - start) / step) <= 6


def test_axis_starts_at_zero_unless_all_is_far_above() -> None:
    assert axis(0.0, 37.0) == (0.0, 40.0, 10.0)
    assert axis(120.0, 134.0) == (115.0, 140.0, 5.0)
    assert axis(65.0, 66.0) == (0.0, 80.0, 20.0)
    assert axis(0.0, 0.0) == (0.0, 1.0, 1.0)


def test_longer_window_has_as_many_points_in_wider_buckets() -> None:
    series = SampleSeries(300.0)
    assert series.bucket_s == pytest.approx(300 / NUM_BUCKETS)
    for step in range(3000):
        series.add(step * 0.1, sample())
    (part,) = series.segments(Curve.DRIVE, 300.0)
    assert len(part) == NUM_BUCKETS
    assert part[0][1] == pytest.approx(1000)


def test_longer_window_breaks_a_curve_only_after_four_of_its_buckets() -> None:
    series = SampleSeries(900.0)
    for at_s in (0.0, 10.0, 40.0):
        series.add(at_s, sample())
    assert [len(part) for part in series.segments(Curve.DRIVE, 40.0)] == [2, 1]


def test_amount_is_the_sum_within_the_window() -> None:
    series = SampleSeries()
    for at_s in (1.0, 30.0, 70.0):
        series.add(at_s, sample(drive=100))
    assert series.amount(Curve.DRIVE, 70.0) == 200
    assert SampleSeries().amount(Curve.DRIVE, 70.0) == 0


def test_outcomes_of_reading_ahead_are_summed() -> None:
    counted = msgspec.structs.replace(sample(), hints=HintCount(useful=3, late=2, wasted=1))
    assert total([counted, sample(), counted]).hints == (6, 4, 2)
