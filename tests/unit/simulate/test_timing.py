"""Time on a pretended machine: sums by hand, overlap, hints, and that nothing is lost."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.policy.catalogue import POLICIES
from runtime.protocol.machine import DeviceReport, MachineReport, Measured
from runtime.simulate.machine import MachineCosts, costs_of
from runtime.simulate.prefetch import HintLane, HintOutcomes
from runtime.simulate.records import LayerBytes
from runtime.simulate.replay import replay
from runtime.simulate.resources import AffineCost, Drive
from runtime.simulate.timing import Load, Timing, time_replay
from runtime.simulate.trace import Trace
from tests.support.plan_cases import machine
from tests.support.traces import sticky_trace, trace_of

# Expert: 1 s, dense part: 4 s, read: 10 s and 100 s for its bytes, one after the other.
COSTS = MachineCosts(
    drive=AffineCost(10.0, 1.0),
    drive_depth=2,
    expert=AffineCost(0.0, 0.01),
    dense=AffineCost(4.0),
    token_s=7.0,
)
LOAD = Load(record_bytes=100)
TRACE = sticky_trace(num_tokens=60, num_layers=3)


def timed(rows: list[list[list[int]]], num_slots: int, **more: bool) -> Timing:
    trace = trace_of(rows, 8)
    slots = [num_slots] * trace.num_layers
    return time_replay(trace, POLICIES["lru"], slots, COSTS, LOAD, **more)


def test_time_of_hits_is_what_computing_takes() -> None:
    timing = timed([[[0, 1]]] * 3, 2)

    # The first token reads two experts: both wait 10 s, their bytes pass one by one.
    first_s = 4 + (10 + 100) + 100 + 1 + 7
    assert timing.seconds == pytest.approx(first_s + 2 * (4 + 2 + 7))
    # The first expert is computed while the second arrives.
    assert timing.wait_s == pytest.approx(110 + 99)
    assert timing.drive_s == pytest.approx(210)
    assert timing.drive_bytes == 200
    assert (timing.hits, timing.misses) == (4, 2)
    assert timing.tokens_per_s == pytest.approx(3 / timing.seconds)


def test_hits_before_a_miss_are_computed_while_it_arrives() -> None:
    after = timed([[[0, 1]], [[0, 5]]], 2)
    before = timed([[[1, 5]], [[0, 5]]], 2)

    # A hit that comes before the miss in the order of addition is computed in its shadow.
    assert after.seconds + 1 == pytest.approx(before.seconds)


@pytest.mark.parametrize("depth", [1, 3])
def test_drive_fixed_parts_overlap_as_far_as_it_is_deep(depth: int) -> None:
    drive = Drive(AffineCost(10.0, 1.0), depth)

    ends = [drive.read(0.0, 5) for _ in range(3)]

    assert ends == ([15.0, 30.0, 45.0] if depth == 1 else [15.0, 20.0, 25.0])
    assert drive.busy_s == ends[-1]
    assert drive.read(100.0, 5) == 115.0
    assert drive.busy_s == ends[-1] + 15
    assert drive.num_bytes == 20


def test_drive_without_depth_is_refused() -> None:
    with pytest.raises(ValueError, match="0 reads at once"):
        Drive(AffineCost(), 0)


def test_hints_end_as_useful_late_wasted_or_overtaken() -> None:
    lane = HintLane(Drive(AffineCost(0.0, 1.0), 1), [[10] * 10] * 10)

    lane.hint(1, [1, 2, 3, 4], 0.0)
    arrivals = lane.demand(1, [1, 3, 4, 7], 25.0)

    assert arrivals == {1: 10.0, 3: 30.0, 4: 40.0, 7: 50.0}
    assert lane.outcomes == HintOutcomes(useful=1, late=1, wasted=1, overtaken=1)
    lane.hint(2, [5], 30.0)
    assert lane.demand(2, [5], 45.0) == {5: 60.0}
    assert lane.outcomes == HintOutcomes(useful=1, late=1, wasted=1, overtaken=2)


def test_hints_that_are_right_save_time_and_those_that_are_wrong_are_wasted() -> None:
    rows = [[[token % 8], [(token + 3) % 8]] for token in range(24)]
    trace = trace_of(rows, 8)
    slow = dataclasses.replace(COSTS, dense=AffineCost(300.0))
    right = dataclasses.replace(trace, hints=trace.ids)
    wrong = dataclasses.replace(trace, hints=(trace.ids + 1) % 8)

    def run(of: Trace, *, follows_hints: bool) -> Timing:
        return time_replay(of, POLICIES["lru"], [1, 1], slow, LOAD, follows_hints=follows_hints)

    plain, led, misled = (
        run(right, follows_hints=False),
        run(right, follows_hints=True),
        run(wrong, follows_hints=True),
    )
    assert plain.hints == HintOutcomes()
    assert led.hints == HintOutcomes(useful=24)
    assert led.seconds == pytest.approx(plain.seconds - 24 * 110)
    assert led.drive_bytes == plain.drive_bytes
    assert misled.hints == HintOutcomes(wasted=24)
    assert misled.seconds == pytest.approx(plain.seconds)
    assert misled.drive_bytes == plain.drive_bytes + 24 * 100
    with pytest.raises(ValueError, match="no hints"):
        run(trace, follows_hints=True)


@pytest.mark.parametrize("name", ["lru", "expected-shared", "slru", "clairvoyant-shared"])
def test_timed_replay_misses_what_the_plain_replay_misses(name: str) -> None:
    slots = [4] * TRACE.num_layers

    timing = time_replay(TRACE, POLICIES[name], slots, COSTS, LOAD)

    plain = replay(TRACE, POLICIES[name], slots)
    assert (timing.hits, timing.misses) == (plain.hits, plain.misses)
    assert timing.drive_bytes == plain.misses * 100


@pytest.mark.parametrize("name", ["score-average", "score-distance-shared"])
def test_timed_replay_of_scores_misses_what_the_plain_replay_misses(name: str) -> None:
    scores = np.random.default_rng(1).integers(0, 256, TRACE.ids.shape).astype(np.uint8)
    trace = dataclasses.replace(TRACE, scores=scores)
    slots = [4] * trace.num_layers

    timing = time_replay(trace, POLICIES[name], slots, COSTS, LOAD)

    assert timing.misses == replay(trace, POLICIES[name], slots).misses
    assert timing != time_replay(TRACE, POLICIES[name], slots, COSTS, LOAD)


@given(
    draw=st.randoms(use_true_random=False),
    num_slots=st.integers(0, 16),
    depth=st.integers(1, 4),
)
def test_timed_replay_any_hints_time_and_hints_are_accounted(
    draw: object, num_slots: int, depth: int
) -> None:
    chance = np.random.default_rng(draw.getrandbits(32))  # type: ignore[attr-defined]
    short = TRACE.part(12)
    hints = chance.integers(0, 16, (12, 3, 2)).astype(np.uint16)
    hints[:, :, 1] = (hints[:, :, 0] + 1) % 16
    trace = dataclasses.replace(short, hints=hints)
    costs = dataclasses.replace(COSTS, drive_depth=depth)

    timing = time_replay(
        trace, POLICIES["expected-shared"], [num_slots] * 3, costs, LOAD, follows_hints=True
    )

    told = timing.hints
    assert timing.drive_bytes == 100 * (timing.misses + told.wasted)
    assert told.useful + told.late <= timing.misses
    assert timing.seconds == pytest.approx(timing.wait_s + timing.compute_s + 12 * COSTS.token_s)
    assert timing.drive_s <= timing.seconds + 110 * (told.wasted + 1)


def test_costs_of_a_machine_take_measured_rates_and_its_device() -> None:
    plain = costs_of(machine())
    card = DeviceReport(
        device="simulated:0",
        name="Card",
        total_bytes=1,
        free_bytes=1,
        is_simulated=True,
        link_bytes_per_s=Measured(value=4e9, method="profile"),
        is_used=True,
    )
    with_card: MachineReport = machine(devices=(card,))

    assert plain.link is None
    assert costs_of(with_card).link == AffineCost(0.0, 1 / 4e9)
    slots = [4] * TRACE.num_layers
    load = Load(record_bytes=10_000, layer_bytes=1000, row_bytes=4096)
    there = time_replay(TRACE, POLICIES["lru"], slots, costs_of(with_card), load)
    assert there.link_s == pytest.approx(2 * 60 * 3 * 4096 / 4e9)
    assert there.device_s > 0
    here = time_replay(TRACE, POLICIES["lru"], slots, plain, load)
    assert here.link_s == here.device_s == 0
    assert here.seconds < there.seconds


def test_time_of_records_of_many_sizes_is_that_of_their_own_bytes() -> None:
    trace = trace_of([[[0, 1], [2, 3]]] * 2, 4)
    sizes = [[100, 200, 1, 1], [1, 1, 300, 400]]
    one_by_one = dataclasses.replace(COSTS, drive=AffineCost(0.0, 1.0), drive_depth=1)

    timing = time_replay(trace, POLICIES["lru"], [2, 2], one_by_one, Load(record_bytes=sizes))

    assert timing.drive_bytes == 100 + 200 + 300 + 400
    assert timing.drive_s == pytest.approx(1000)
    assert timing.compute_s == pytest.approx(2 * 1000 * 0.01 + 4 * 4)


@pytest.mark.parametrize("name", ["lru", "expected-shared", "clairvoyant-shared"])
def test_time_counts_the_misses_of_a_replay_with_mixed_records(name: str) -> None:
    sizes: list[LayerBytes] = [100, 1, [100, *[50] * 15]]
    kind = POLICIES[name]

    timing = time_replay(TRACE, kind, [3, 4, 5], COSTS, Load(record_bytes=sizes))

    counted = replay(TRACE, kind, [3, 4, 5], record_bytes=sizes)
    assert (timing.hits, timing.misses) == (counted.hits, counted.misses)
    assert timing.drive_bytes == counted.miss_bytes
