"""The card bench on small parts of real routing: rivals do what they say, and ours beats them."""

import numpy as np
import pytest
from bench_vram import ROOT, Case
from card_models import ABOUT_NUMBERS, MACHINES, topics_of
from card_published import (
    ANSWER_TOKENS,
    BAND,
    BY_SLOTS,
    TOLD,
    Told,
    costs_of,
    in_turns,
    published,
    rate_of,
)
from card_rivals import LruUploads, lru_hits, most_used, uses_of, whole_layers

from runtime.policy.catalogue import POLICIES
from runtime.simulate.card_run import Steps, hits_of, run_choice
from runtime.simulate.replay import Entry, replay
from runtime.simulate.trace import Trace
from runtime.simulate.trace_files import read_trace

TRACES = ROOT / "resources" / "traces"
TOKENS, STRIDE = 800, 12


def part_of(name: str) -> Trace:
    """Return some layers of the first tokens of a kept trace."""
    return read_trace(TRACES / name).part(TOKENS, STRIDE)


@pytest.fixture(scope="module")
def code() -> Trace:
    return part_of("qwen3-30b-a3b-code")


def test_ours_beats_profiles_layers_and_copying_on_real_routing(code: Trace) -> None:
    slots = code.num_experts // 3
    case = Case(
        Steps.of(code),
        slots,
        [part_of("qwen3-30b-a3b-general")],
        1 / 3,
        lru_hits(code, slots),
        1 / STRIDE,
    )
    for machine in MACHINES:
        ours = case.ours(machine)
        ratios = {name: seconds / ours.token_s for name, seconds in case.rivals(machine).items()}
        assert ratios["another topic's profile"] > 1.5
        assert ratios["whole layers"] > 1.5
        assert ratios["copying instead of computing"] > 1.05
        assert ratios["this topic's profile"] > 1.0
        # Nobody knows what will be needed; this rival does.
        assert ratios["what this topic will need most"] > 0.9
        # Uploads are few and far between, and yet experts come in.
        assert 0 < ours.uploads / ours.num_tokens < code.num_layers * code.top_k / 8


def test_lru_rival_hits_what_the_laboratory_counts(code: Trace) -> None:
    slots = 40
    counted = replay(code, POLICIES["lru"], [slots] * code.num_layers, Entry.REQUIRED)

    found = lru_hits(code, slots)

    # The laboratory keeps the needed ones of a step together, which moves a hit here and there.
    assert found.sum() == pytest.approx(counted.hits, rel=0.01)


def test_lru_uploads_keep_to_their_limits(code: Trace) -> None:
    short = code.part(60)
    seldom, often = (
        LruUploads(short.num_layers, short.num_experts, 20, memory_steps=steps, max_per_layer=2)
        for steps in (8, 0)
    )
    case = Case(Steps.of(short), 20, (), 1 / 3, uses_of(short), 1.0)
    costs = case.costs(MACHINES[0])

    few, many = (run_choice(case.steps, rival, costs) for rival in (seldom, often))

    assert 0 < few.uploads < many.uploads
    assert (often.residents.sum(axis=1) <= 20).all()


def test_static_rivals_keep_what_they_say(code: Trace) -> None:
    uses = uses_of(code)
    kept = most_used(uses, 10)
    layers = whole_layers(code, 0.5)

    assert uses.sum() == code.ids.size
    assert (kept.sum(axis=1) == 10).all()
    assert hits_of(code, kept).sum() == np.sort(uses, axis=1)[:, -10:].sum()
    assert layers.all(axis=1).tolist() == [False, False, True, True]


def test_topics_of_gpt_oss_are_two_that_share_no_answer() -> None:
    whole = read_trace(TRACES / "gpt-oss-20b-answers")

    numbers, people = topics_of(whole)

    assert len(numbers.sequence_tokens) == len(ABOUT_NUMBERS)
    assert numbers.num_tokens + people.num_tokens == whole.num_tokens
    assert numbers.sequence_tokens[0] == whole.sequence_tokens[0]
    assert {numbers.name, people.name} == {"gpt-oss-20b-numbers", "gpt-oss-20b-people"}


@pytest.mark.parametrize("told", TOLD, ids=lambda told: told.what)
def test_published_counts_give_the_published_rates(told: Told) -> None:
    assert rate_of(told.hits, told.uploads, costs_of()) == pytest.approx(told.per_s, rel=BAND)


def test_published_rate_falls_with_misses_and_with_uploads() -> None:
    costs = costs_of()
    rates = [rate_of(hits, 20, costs) for hits in (1.0, 0.95, 0.9, 0.5)]

    assert rates == sorted(rates, reverse=True)
    assert rate_of(0.9, 10, costs) > rate_of(0.9, 30, costs)
    # The published fit: all on the card, 4.18 ms.
    assert rate_of(1.0, 0, costs) == pytest.approx(1000 / 4.18, rel=0.05)


def test_topics_in_turns_are_answers_of_one_after_the_other(code: Trace) -> None:
    general = part_of("qwen3-30b-a3b-general")

    mixed = in_turns([code, general], 450)

    assert mixed.sequence_tokens == (ANSWER_TOKENS, ANSWER_TOKENS, 50)
    assert (mixed.ids[:ANSWER_TOKENS] == code.ids[:ANSWER_TOKENS]).all()
    assert (mixed.ids[ANSWER_TOKENS : 2 * ANSWER_TOKENS] == general.ids[:ANSWER_TOKENS]).all()
    assert (mixed.ids[2 * ANSWER_TOKENS :] == code.ids[512:562]).all()


def test_published_pair_is_reached_from_replayed_hits(code: Trace) -> None:
    names = ("qwen3-30b-a3b-general", "qwen3-30b-a3b-math")
    rows = published([code, *map(part_of, names)], 1000)

    assert len(rows) == len(TOLD) + 1 + len(BY_SLOTS) + 1
    assert [row["what"] for row in rows if not row["is_reached"]] == []
