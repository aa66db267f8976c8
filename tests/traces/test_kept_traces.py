"""The kept traces are sound, and policies do on them what is published of them."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from benchmarks.calibrated.likeness import MAX_POINTS, points_apart
from runtime.policy.catalogue import DEFAULT_POLICY, POLICIES, PolicyKind
from runtime.policy.clairvoyant import ClairvoyantPolicy
from runtime.policy.frequency import LfuPolicy
from runtime.policy.split import even_split
from runtime.simulate.gap import judge, slots_of_share
from runtime.simulate.hygiene import complaints
from runtime.simulate.replay import Entry, replay
from runtime.simulate.synthetic import likeness_of, synthesize
from runtime.simulate.trace import Trace
from runtime.simulate.trace_files import HEADER, read_trace

TRACES = Path(__file__).resolve().parents[2] / "resources" / "traces"
GOLDEN = TRACES.parents[1] / "tests" / "golden" / "replay" / "default.json"
NAMES = sorted(path.parent.name for path in TRACES.glob(f"*/{HEADER}"))
POINT = 0.01
# Percent: lowest and highest published over works, Qwen3-30B layer 24, by slots of 128. Below two
# tokens' worth of slots the published figures depend on an order within tokens that is not told.
PUBLISHED = {
    17: {"static": (50, 59), "lfu": (49, 60), "lru": (52, 66), "clairvoyant": (70, 79)},
    25: {"static": (61, 68), "lfu": (61, 71), "lru": (65, 78), "clairvoyant": (80, 87)},
    38: {"static": (75, 81), "lfu": (75, 83), "lru": (79, 88), "clairvoyant": (89, 94)},
    64: {"static": (91, 93), "lfu": (92, 95), "lru": (93, 97), "clairvoyant": (97, 98)},
    89: {"static": (98, 98), "lfu": (98, 99), "lru": (98, 99), "clairvoyant": (99, 99)},
}
NEVER_HALVED = PolicyKind("lfu", "", lambda slots, _: LfuPolicy(slots, 10**9))


def kept(name: str) -> Trace:
    return read_trace(TRACES / name)


def test_kept_traces_are_small_files_and_little_in_all() -> None:
    sizes = [path.stat().st_size for path in TRACES.rglob("*") if path.is_file()]

    assert len(NAMES) == 7
    assert max(sizes) < 1 << 20
    assert sum(sizes) < 12_000_000


@pytest.mark.parametrize("name", NAMES)
def test_kept_trace_has_the_marks_of_real_routing(name: str) -> None:
    trace = kept(name)

    assert complaints(trace) == []
    assert trace.origin.licence
    assert trace.origin.source
    if trace.scores is not None and trace.is_ranked:
        assert (trace.scores[:, :, :-1] >= trace.scores[:, :, 1:]).all()


@pytest.mark.parametrize(
    ("name", "shares", "expected"),
    [
        ("qwen3-30b-a3b-code", (0.125, 0.25, 0.5, 0.75), (0.624, 0.823, 0.956, 0.992)),
        ("qwen3-30b-a3b-general", (0.125, 0.25, 0.5, 0.75), (0.565, 0.766, 0.942, 0.990)),
        ("qwen3-30b-a3b-math", (0.125, 0.25, 0.5, 0.75), (0.513, 0.732, 0.921, 0.988)),
        ("gpt-oss-20b-answers", (0.125, 0.25, 0.5, 0.75), (0.427, 0.640, 0.892, 0.980)),
        ("deepseek-v2-lite-translation", (0.25, 0.5), (0.616, 0.850)),
    ],
)
def test_lru_on_a_kept_trace_hits_what_was_noted(
    name: str, shares: tuple[float, ...], expected: tuple[float, ...]
) -> None:
    trace = kept(name)
    if name.startswith("qwen3"):
        # Noted for every fourth layer and one expert after the other.
        trace = trace.part(layer_stride=4).one_by_one()
    for share, hit_ratio in zip(shares, expected, strict=True):
        slots = [int(share * trace.num_experts)] * trace.num_layers
        assert replay(trace, POLICIES["lru"], slots).hit_ratio == pytest.approx(
            hit_ratio, abs=POINT
        )


def test_lru_that_barely_holds_a_token_hits_what_was_noted() -> None:
    # With 8 slots for 6 experts a token it counts who of one token goes first. Noted was an LRU
    # that orders them as the router does, whether they were missing or not.
    trace = kept("deepseek-v2-lite-translation")
    num_hits = 0
    for layer in range(trace.num_layers):
        recent: dict[int, None] = {}
        for row in trace.rows(layer):
            num_hits += len(recent.keys() & set(row))
            recent = {expert: None for expert in recent if expert not in row} | dict.fromkeys(row)
            recent = dict.fromkeys(list(recent)[-8:])

    assert num_hits / trace.ids.size == pytest.approx(0.324, abs=POINT)


def published_bound(whole: Trace) -> PolicyKind:
    """Return the bound as it was published: an expert may leave before its turn in a token."""
    rows = whole.rows(0)

    class ByToken(ClairvoyantPolicy):
        def need(self, experts: Iterable[int], now: int) -> None:
            super().need(rows[now // whole.top_k], now // whole.top_k)

    return PolicyKind("clairvoyant", "", lambda slots, _: ByToken(slots, rows))


@pytest.mark.parametrize("work", ["code", "general", "math"])
def test_policies_on_layer_24_lie_in_the_published_ranges(work: str) -> None:
    whole = kept(f"qwen3-30b-a3b-{work}").only_layers([24])
    single = whole.one_by_one()
    # A static list is made from the first part and used on all.
    profile = whole.part(2000)
    for num_slots, ranges in PUBLISHED.items():
        found = {
            "static": replay(whole, POLICIES["static"], [num_slots], profile=profile),
            "lfu": replay(single, NEVER_HALVED, [num_slots], Entry.REQUIRED),
            "lru": replay(single, POLICIES["lru"], [num_slots], Entry.REQUIRED),
            "clairvoyant": replay(single, published_bound(whole), [num_slots]),
        }
        for name, (low, high) in ranges.items():
            hit_ratio = found[name].hit_ratio
            assert low / 100 - POINT <= hit_ratio <= high / 100 + POINT, (name, num_slots)


def test_default_closes_a_third_of_the_gap_and_never_falls_below_even_lru() -> None:
    closed, above = [], []
    for name in NAMES:
        trace = kept(name).part(700, 6)
        for share in (0.0625, 0.125, 0.25, 0.5, 0.75):
            kinds = [POLICIES[DEFAULT_POLICY]]
            (judged,) = judge(trace, kinds, slots_of_share(trace, share))
            above.append((judged.points_above_base, name, share))
            if share in (0.125, 0.25, 0.5):
                closed.append(judged.gap_closed_ratio)
    assert min(above)[0] >= -0.5, min(above)
    assert len(closed) == 21
    assert sum(closed) / len(closed) >= 0.33
    assert min(closed) > 0.1


@pytest.mark.parametrize("name", NAMES)
def test_default_on_a_kept_trace_decides_as_it_did(name: str) -> None:
    trace = kept(name).part(300, 12)
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    expected = {key: value for key, value in golden.items() if key.split()[0] == name}
    assert expected
    for key, layers in expected.items():
        _, share, entry = key.split()
        slots = even_split(trace.num_layers, slots_of_share(trace, float(share)), trace.num_experts)
        found = replay(trace, POLICIES[DEFAULT_POLICY], slots, Entry(entry)).layers
        assert [[layer.misses, layer.entered] for layer in found] == layers, key


@pytest.mark.parametrize("name", NAMES)
def test_synthetic_trace_has_reuse_skew_and_hits_of_the_kept_one(name: str) -> None:
    trace = kept(name).part(4000)
    trace = trace.only_layers(range(1, trace.num_layers, trace.num_layers // 3))

    made = synthesize(likeness_of(trace), 4000, seed=5)

    assert complaints(made) == []
    apart = points_apart(made, trace)
    assert len(apart) == 12
    assert max(map(abs, apart.values())) < MAX_POINTS, apart
