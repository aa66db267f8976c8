"""A pretended PC with a card: what its pieces cost, and the engine's choice run on a trace."""

import dataclasses

import numpy as np
import pytest

from runtime.policy.device_choice import DeviceChoice, UploadTerms
from runtime.simulate.card import CardMachine, LayerCosts, ModelBytes
from runtime.simulate.card_run import Steps, hits_of, run_choice, time_hits
from runtime.simulate.trace import Trace, TraceOrigin

MACHINE = CardMachine(
    name="round numbers",
    ram_per_s=4e9,
    link_per_s=1e9,
    card_per_s=10e9,
    kernel_ratio=1.0,
    card_ratio=1.0,
    layer_s=1e-6,
    hop_s=2e-6,
    copy_s=3e-6,
    begin_s=5e-6,
    chunk_bytes=1000,
)
MODEL = ModelBytes(record=4000, layer=10_000, token=20_000)
COSTS = LayerCosts.of(MACHINE, MODEL)


def trace_of(rows: list[list[list[int]]], num_experts: int, sequences: tuple[int, ...]) -> Trace:
    """Return a trace of rows [tokens][layers][experts]."""
    ids = np.array(rows, np.uint16)
    origin = TraceOrigin("a model", "decode", "made here", "")
    return Trace("made", origin, num_experts, tuple(range(ids.shape[1])), sequences, ids)


def test_layer_costs_are_rates_and_fixed_parts() -> None:
    assert pytest.approx(2e-6) == COSTS.dense_s
    assert pytest.approx(0.4e-6) == COSTS.hit_s
    assert pytest.approx(1e-6) == COSTS.miss_s
    assert pytest.approx(7e-6) == COSTS.copy_s
    assert pytest.approx(2e-6) == COSTS.token_s
    # Three quarters of the RAM's rate are left to the processor while weights are copied.
    assert pytest.approx(0.75) == COSTS.slowed_ratio


def test_split_layer_lasts_as_long_as_the_later_of_both() -> None:
    found = COSTS.split(np.array([8, 8, 0]), np.array([0, 1, 8]))

    assert found.tolist() == pytest.approx([2e-6 + 3.2e-6, 2e-6 + 5e-6, 2e-6 + 12e-6])


def test_copied_layer_computes_each_when_it_is_there() -> None:
    found = COSTS.copied(np.array([8, 4, 0]), np.array([0, 1, 2]))

    assert found.tolist() == pytest.approx(
        [2e-6 + 3.2e-6, 2e-6 + 2e-6 + 7e-6 + 0.4e-6, 2e-6 + 2e-6 + 14e-6 + 0.4e-6]
    )


@pytest.mark.parametrize(
    ("misses", "link_free_s", "expected_s"),
    [
        (0, 1.0, 2e-6 + 0.8e-6),
        # An upload that ends before the hidden state comes changes nothing.
        (3, 0.0, 2e-6 + 2e-6 + 3e-6 + 2e-6),
        # One piece first; at three quarters of the pace; another piece before the way back.
        (3, 1.0, 2e-6 + 2e-6 + 1e-6 + 4e-6 + 1e-6 + 2e-6),
        # Slowed for 2 us out of which 1.5 us of work come; the rest at full pace.
        (3, 7e-6, 2e-6 + 2e-6 + 1e-6 + 2e-6 + 1.5e-6 + 2e-6),
    ],
)
def test_layer_beside_uploads_waits_for_one_piece_and_shares_ram(
    misses: int, link_free_s: float, expected_s: float
) -> None:
    assert COSTS.beside_copies(0.0, 2, misses, link_free_s) == pytest.approx(expected_s)


def test_run_of_one_layer_counts_every_second() -> None:
    """Four tokens need the same expert: uploaded after the first, there after the second."""
    steps = Steps.of(trace_of([[[0]]] * 4, 2, (4,)), prompt_part=0.0, timed_part=1.0)

    found = run_choice(steps, DeviceChoice([1], 2), COSTS)

    miss_s, hit_s = 2e-6 + 2e-6 + 1e-6 + 2e-6, 2e-6 + 0.4e-6
    # The second token begins the upload and meets it on the link: 5 us, then a piece each way.
    slowed_s = 5e-6 + 2e-6 + 2e-6 + 1e-6 + 1e-6 / 0.75 + 1e-6 + 2e-6
    assert (found.hits, found.misses, found.uploads) == (2, 2, 1)
    assert found.seconds == pytest.approx(miss_s + slowed_s + 2 * hit_s + 4 * 2e-6)
    assert found.token_s == pytest.approx(found.seconds / 4)
    assert found.hit_ratio == 0.5


def test_steps_prompts_are_seen_and_not_timed() -> None:
    trace = trace_of([[[0]], [[0]], [[1]], [[1]]] * 2, 2, (4, 4))
    steps = Steps.of(trace, prompt_part=0.5, timed_part=0.5)
    assert steps.is_prompt.tolist() == [True, True, False, False] * 2
    assert steps.is_timed.tolist() == [False] * 6 + [True] * 2

    choice = DeviceChoice([1], 2, UploadTerms(min_gain=10.0))
    found = run_choice(steps, choice, COSTS)

    # The prompt alone brought the first expert in; nobody takes its place.
    assert (found.num_tokens, found.hits, found.misses) == (2, 0, 2)
    assert hits_of(trace, choice.residents).ravel().tolist() == [1, 1, 0, 0] * 2


def test_time_of_residents_that_stay_is_that_of_a_run_without_uploads() -> None:
    draw = np.random.default_rng(1)
    rows = [[draw.permutation(8)[:2].tolist() for _ in range(3)] for _ in range(60)]
    trace = trace_of(rows, 8, (60,))
    steps = Steps.of(trace)
    choice = DeviceChoice([4] * 3, 8, UploadTerms(max_per_layer=0))

    run = run_choice(steps, choice, COSTS)
    still = time_hits(steps, hits_of(trace, choice.residents), COSTS)

    assert run.seconds == pytest.approx(still.seconds)
    assert run.hits == still.hits == run.uploads == 0
    copied = time_hits(steps, hits_of(trace, choice.residents), COSTS, is_copied=True)
    assert copied.uploads == copied.misses == still.misses
    assert copied.seconds > still.seconds


def test_program_that_computes_one_after_the_other_takes_both_times() -> None:
    costs = LayerCosts.of(dataclasses.replace(MACHINE, is_overlapped=False), MODEL)

    assert costs.split(np.array([2]), np.array([3])).item() == pytest.approx(2e-6 + 0.8e-6 + 7e-6)
    assert costs.beside_copies(0.0, 2, 3, 0.0) == pytest.approx(2e-6 + 0.8e-6 + 7e-6)
