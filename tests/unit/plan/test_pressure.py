"""When a loaded model gives memory back and when it takes it again."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.plan.pressure import (
    CALM_S,
    MAX_SWAPPED_BYTES,
    NORMAL_S,
    RETRY_S,
    SELDOM_S,
    SOON_S,
    Hold,
    MemoryNow,
    PressureRule,
)

MIB = 1024**2
RESERVE = 1600 * MIB
HOLD = Hold(base_bytes=250 * MIB, ram_bytes=4000 * MIB, wanted_bytes=4000 * MIB)


def memory(available: int, **more: float) -> MemoryNow:
    """Return memory of which so much is available; ``own``, ``stalled`` and ``swapped`` as said."""
    return MemoryNow(
        available_bytes=available,
        own_bytes=int(more.get("own", 4250 * MIB)),
        reserve_bytes=RESERVE,
        stalled_ratio=more.get("stalled", 0.0),
        swapped_bytes=int(more.get("swapped", 0)),
    )


def test_rule_with_room_left_changes_nothing() -> None:
    rule = PressureRule()
    for available in (RESERVE, RESERVE // 2, RESERVE // 4, RESERVE * 3 // 16):
        assert PressureRule().look(0.0, memory(available), HOLD) is None
    assert rule.look(1000.0, memory(100 * RESERVE), HOLD) is None


def test_rule_below_the_mark_gives_back_to_half_of_what_the_system_has() -> None:
    target = PressureRule().look(0.0, memory(RESERVE * 3 // 16 - 1), HOLD)

    assert target == HOLD.ram_bytes - (RESERVE // 2 - (RESERVE * 3 // 16 - 1))


def test_rule_while_others_go_on_taking_gives_back_before_the_mark() -> None:
    rule = PressureRule()
    assert rule.look(0.0, memory(RESERVE), HOLD) is None
    target = rule.look(0.5, memory(RESERVE // 2), HOLD)

    assert target == HOLD.ram_bytes - RESERVE // 2


def test_rule_counts_what_the_model_has_still_to_take() -> None:
    rule = PressureRule()
    assert rule.look(0.0, memory(RESERVE, own=4200 * MIB), HOLD) is None
    target = PressureRule().look(0.0, memory(RESERVE, own=250 * MIB), HOLD)

    assert target == RESERVE - RESERVE // 2


@pytest.mark.parametrize("sign", [{"stalled": 0.1}, {"swapped": MAX_SWAPPED_BYTES}])
def test_rule_signs_of_a_short_pc_count_only_where_little_is_left(sign: dict[str, float]) -> None:
    assert PressureRule().look(0.0, memory(RESERVE // 4, **sign), HOLD) == (
        HOLD.ram_bytes - RESERVE // 4
    )
    assert PressureRule().look(0.0, memory(RESERVE, **sign), HOLD) is None
    # There is hardly anything that would help.
    assert PressureRule().look(0.0, memory(RESERVE * 7 // 16, **sign), HOLD) is None


def given_back() -> Hold:
    return dataclasses.replace(HOLD, ram_bytes=3000 * MIB)


def test_rule_takes_all_again_after_calm_and_no_sooner() -> None:
    rule = PressureRule()
    roomy = memory(1000 * MIB + RESERVE // 4, own=3250 * MIB)

    assert rule.look(0.0, roomy, given_back()) is None
    assert rule.look(CALM_S - 0.1, roomy, given_back()) is None
    assert rule.look(CALM_S, roomy, given_back()) == HOLD.wanted_bytes


def test_rule_calm_that_is_broken_begins_anew() -> None:
    rule = PressureRule()
    roomy = memory(1000 * MIB + RESERVE // 4, own=3250 * MIB)
    tight = memory(RESERVE // 2, own=3250 * MIB)

    rule.look(0.0, roomy, given_back())
    assert rule.look(CALM_S / 2, tight, given_back()) is None
    assert rule.look(CALM_S, roomy, given_back()) is None
    assert rule.look(CALM_S * 2, roomy, given_back()) == HOLD.wanted_bytes


def test_rule_takes_a_part_again_as_far_as_the_least_room_of_the_calm_goes() -> None:
    rule = PressureRule()
    hold = dataclasses.replace(HOLD, ram_bytes=1000 * MIB)

    rule.look(0.0, memory(RESERVE + 200 * MIB, own=1250 * MIB), hold)
    rule.look(10.0, memory(RESERVE, own=1250 * MIB), hold)
    target = rule.look(CALM_S, memory(RESERVE + 900 * MIB, own=1250 * MIB), hold)

    assert target == 1000 * MIB + RESERVE // 2


def test_rule_after_giving_back_rests() -> None:
    """What one change leaves is neither short nor roomy: nothing swings."""
    rule = PressureRule()
    target = rule.look(0.0, memory(100 * MIB), HOLD)
    assert target is not None
    freed = HOLD.ram_bytes - target
    rule.note_changed()
    hold = dataclasses.replace(HOLD, ram_bytes=target)
    after = memory(100 * MIB + freed, own=4250 * MIB - freed)

    assert [rule.look(float(second), after, hold) for second in range(1, 600)] == [None] * 599


def test_rule_after_a_change_that_failed_waits() -> None:
    rule = PressureRule()
    rule.note_failed(5.0)

    assert rule.look(5.0 + RETRY_S - 0.1, memory(0), HOLD) is None
    assert rule.look(5.0 + RETRY_S, memory(0), HOLD) is not None


def test_rule_looks_seldom_where_there_is_plenty() -> None:
    assert PressureRule().interval_s(memory(2 * RESERVE), HOLD) == SELDOM_S
    assert PressureRule().interval_s(memory(2 * RESERVE - 1), HOLD) == NORMAL_S
    assert PressureRule().interval_s(memory(RESERVE * 3 // 4 - 1), HOLD) == SOON_S


@given(
    available=st.lists(st.integers(0, 8 * RESERVE), min_size=1, max_size=30),
    ram_mib=st.integers(0, 4000),
    stalled=st.floats(0, 1),
)
def test_rule_never_goes_above_what_was_wanted_and_less_only_when_short(
    available: list[int], ram_mib: int, stalled: float
) -> None:
    rule = PressureRule()
    hold = dataclasses.replace(HOLD, ram_bytes=ram_mib * MIB)
    for number, free in enumerate(available):
        now = memory(free, own=hold.base_bytes + hold.ram_bytes, stalled=stalled)
        target = rule.look(number * CALM_S, now, hold)
        if target is not None:
            assert target <= hold.wanted_bytes
            assert target != hold.ram_bytes
            # What is taken again leaves no less than where giving back begins.
            assert target < hold.ram_bytes or free - (target - hold.ram_bytes) >= RESERVE // 4
