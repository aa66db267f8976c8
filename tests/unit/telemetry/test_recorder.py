from hypothesis import given
from hypothesis import strategies as st

from runtime.protocol.values import Tier
from runtime.telemetry.recorder import Counters

AMOUNTS = st.integers(0, 1000)


def counters(hits: int, misses: int, tokens: int, seconds: float) -> Counters:
    return Counters(
        num_decoded_tokens=tokens,
        expert_hits=hits,
        expert_misses=misses,
        expert_hit_bytes=hits * 100,
        expert_miss_bytes=misses * 100,
        decode_s=seconds,
        compute_s=seconds * 0.5,
        drive_wait_s=seconds * 0.25,
    )


@given(first=st.tuples(AMOUNTS, AMOUNTS, AMOUNTS), second=st.tuples(AMOUNTS, AMOUNTS, AMOUNTS))
def test_counters_difference_is_what_was_added(
    first: tuple[int, int, int], second: tuple[int, int, int]
) -> None:
    older = counters(*first, seconds=1.0)
    newer = older.copy()
    newer.expert_hits += second[0]
    newer.expert_miss_bytes += second[1]
    newer.num_prompt_tokens += second[2]

    added = newer.since(older)

    assert added == Counters(
        expert_hits=second[0], expert_miss_bytes=second[1], num_prompt_tokens=second[2]
    )


def test_counters_tiers_show_the_device_where_there_is_one() -> None:
    amounts = counters(hits=7, misses=2, tokens=1, seconds=1.0)
    amounts.device_hits, amounts.device_misses, amounts.device_hit_bytes = 4, 9, 400

    without, with_device = amounts.tiers(has_device=False), amounts.tiers(has_device=True)

    assert [(tier.tier, tier.hits, tier.misses, tier.bytes) for tier in with_device] == [
        (Tier.VRAM, 4, 9, 400),
        (Tier.RAM, 7, 2, 700),
        (Tier.DRIVE, 2, 0, 200),
    ]
    assert without == with_device[1:]


def test_counters_seconds_name_every_cause_and_leave_the_rest_to_other() -> None:
    amounts = Counters(compute_s=0.5, drive_wait_s=0.2, device_s=0.1)

    causes = amounts.seconds(1.0, has_device=True)

    assert {cause: round(value, 9) for cause, value in causes.items()} == {
        "compute": 0.5,
        "drive_wait": 0.2,
        "device": 0.1,
        "other": 0.2,
    }
    assert "device" not in amounts.seconds(1.0, has_device=False)
    assert amounts.seconds(0.1, has_device=True)["other"] == 0
