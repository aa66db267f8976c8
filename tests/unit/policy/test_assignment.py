"""Experts of a prompt: the choice is the best of all there are."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from runtime.policy.assignment import CopyCosts, choose_copied, lasts_s

SECONDS = st.floats(0.0, 10.0)


@given(
    st.lists(st.integers(0, 40), max_size=7),
    st.builds(CopyCosts, expert_s=SECONDS, row_s=SECONDS, copy_s=SECONDS, card_s=SECONDS),
)
def test_choice_is_the_best_of_all_sets(rows: list[int], costs: CopyCosts) -> None:
    every = itertools.chain.from_iterable(
        itertools.combinations(range(len(rows)), number) for number in range(len(rows) + 1)
    )
    best_s = min(lasts_s(rows, frozenset(copied), costs) for copied in every)

    chosen = choose_copied(rows, costs)

    assert lasts_s(rows, chosen, costs) <= best_s * (1 + 1e-12)


def test_experts_of_many_rows_are_copied_and_those_of_few_are_not() -> None:
    costs = CopyCosts(row_s=1.0, copy_s=10.0)

    assert choose_copied([30, 1, 2, 25, 3], costs) == {0, 3}
    assert choose_copied([1, 1, 1], costs) == frozenset()
    assert choose_copied([], costs) == frozenset()


def test_copies_and_their_computation_are_a_pipeline() -> None:
    costs = CopyCosts(row_s=1.0, copy_s=4.0, card_s=1.0)

    assert lasts_s([9, 9, 2], {0, 1}, costs) == 2 * 4.0 + 1.0
    assert lasts_s([9, 9, 20], {0, 1}, costs) == 20.0
    assert lasts_s([9, 9], (), costs) == 18.0
