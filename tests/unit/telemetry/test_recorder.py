from hypothesis import given
from hypothesis import strategies as st

from runtime.protocol.plan import MemoryPart
from runtime.protocol.values import Tier
from runtime.telemetry.recorder import Counters, Sampler

AMOUNTS = st.integers(0, 1000)


def counters(hits: int, misses: int, tokens: int, seconds: float) -> Counters:
    return Counters(
        num_decoded_tokens=tokens,
        expert_hits=hits,
        expert_misses=misses,
        expert_hit_bytes=hits * 100,
        expert_miss_bytes=misses * 100,
        drive_bytes_read=misses * 128,
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


def test_sampler_two_samples_each_hold_their_interval_alone() -> None:
    live = counters(hits=5, misses=1, tokens=3, seconds=1.0)
    sampler = Sampler(live)
    live.expert_hits += 7
    live.expert_hit_bytes += 700
    live.expert_misses += 2
    live.expert_miss_bytes += 200
    live.drive_bytes_read += 256
    live.num_decoded_tokens += 4
    live.decode_s += 0.4
    live.compute_s += 0.2
    live.drive_wait_s += 0.1

    first = sampler.sample(0.5, 1234, {MemoryPart.DENSE: 10})
    second = sampler.sample(0.5, 1234, {MemoryPart.DENSE: 10})

    assert first.num_tokens == 4
    assert round(first.decode_tokens_per_s, 6) == 10
    assert [(tier.tier, tier.hits, tier.misses, tier.bytes) for tier in first.tiers] == [
        (Tier.RAM, 7, 2, 700),
        (Tier.DRIVE, 2, 0, 200),
    ]
    assert first.drive_bytes_read == 256
    assert {cause: round(value, 6) for cause, value in first.seconds.items()} == {
        "compute": 0.2,
        "drive_wait": 0.1,
        "other": 0.1,
    }
    assert first.resident_bytes == 1234
    assert first.ram_by_kind == {"dense": 10}
    assert second.num_tokens == second.drive_bytes_read == 0
    assert second.decode_tokens_per_s == 0
    assert sum(second.seconds.values()) == 0
