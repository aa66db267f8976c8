"""Steps that are told before they come: the very same decisions as without."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.policy.expected import Expectation, ExpectedUsePolicy
from runtime.policy.foretold import ForetoldUse
from runtime.policy.keeper import Admission, SlotKeeper

NUM_EXPERTS = 6
NUM_LAYERS = 3
SHARP = Expectation((1e-3, 0.5, 0.9), follower_rate=0.999)
"""Units grow so fast that they are often begun anew."""


def policies_of(slots: int, expectation: Expectation) -> list[ExpectedUsePolicy]:
    return [ExpectedUsePolicy(slots, NUM_EXPERTS, expectation) for _ in range(NUM_LAYERS)]


def tokens(top_k: int) -> st.SearchStrategy[list[list[list[int]]]]:
    """Return a strategy of needs, [tokens, layers, experts]."""
    row = st.lists(st.integers(0, NUM_EXPERTS - 1), min_size=top_k, max_size=top_k, unique=True)
    return st.lists(st.lists(row, min_size=NUM_LAYERS, max_size=NUM_LAYERS), max_size=12)


def run(
    needs: list[list[list[int]]],
    slots: int,
    expectation: Expectation,
    *,
    is_told: bool,
    is_shared: bool,
    is_required: bool,
) -> list[Admission | float | None]:
    """Run all steps; return what came of each miss, and every worth after every step."""
    policies = policies_of(slots, expectation)
    foreteller = ForetoldUse(policies) if is_told else None
    keeper = SlotKeeper(policies, [slots] * NUM_LAYERS, is_shared=is_shared)
    keeper.preload(1, range(min(slots, 1)), 0)
    found: list[Admission | float | None] = []
    for now, token in enumerate(needs, start=1):
        if foreteller is not None:
            foreteller.foretell(np.array(token, np.uint16))
        keeper.preload(2, [0] if now == 3 and slots > 1 and not keeper.residents(2) else [], now)
        for layer, row in enumerate(token):
            missing = keeper.begin(layer, row, now)
            locked = row if is_required else ()
            found += [
                keeper.admit(layer, expert, now, locked, is_required=is_required)
                for expert in missing
            ]
            keeper.end(layer, now, is_changed=bool(missing))
            found += [policies[layer].worth(expert, now) for expert in range(NUM_EXPERTS)]
    keeper.check()
    return found


@pytest.mark.parametrize("expectation", [Expectation(), SHARP], ids=["default", "sharp"])
@given(
    needs=st.integers(0, 4).flatmap(tokens),
    slots=st.integers(0, NUM_EXPERTS),
    is_shared=st.booleans(),
    is_required=st.booleans(),
)
def test_foretold_steps_decide_to_the_last_bit_as_without(
    expectation: Expectation,
    needs: list[list[list[int]]],
    slots: int,
    is_shared: bool,
    is_required: bool,
) -> None:
    told, untold = (
        run(
            needs,
            slots,
            expectation,
            is_told=is_told,
            is_shared=is_shared,
            is_required=is_required,
        )
        for is_told in (True, False)
    )

    assert told == untold


def test_foretold_expert_that_comes_or_goes_before_its_step_changes_who_is_lowest() -> None:
    policies = policies_of(3, Expectation())
    foreteller = ForetoldUse(policies)
    for expert in (2, 4):
        policies[0].preload(expert)

    foreteller.foretell(np.array([[4], [1], [1]]))
    policies[0].remove(2)
    policies[0].need([4], 1)
    assert policies[0].victim((), 1) == 4

    foreteller.foretell(np.array([[4], [1], [1]]))
    policies[0].preload(0)
    policies[0].need([4], 2)
    assert policies[0].victim((), 2) == 0


def test_foretold_step_that_comes_otherwise_is_refused() -> None:
    policies = policies_of(2, Expectation())
    foreteller = ForetoldUse(policies)
    foreteller.foretell(np.array([[1, 2], [0, 1], [3, 4]]))

    with pytest.raises(ValueError, match=r"needs \[2, 5\], and \[1, 2\] was foretold"):
        policies[0].need([2, 5], 1)
    policies[0].need([1, 2], 1)
    with pytest.raises(ValueError, match=r"needs \[5\] too"):
        policies[0].need([5], 1)
    with pytest.raises(ValueError, match="and None was foretold"):
        policies[0].need([1, 2], 2)


def test_foretold_begun_too_late_is_refused() -> None:
    policies = policies_of(2, Expectation())
    policies[1].need([1], 0)

    with pytest.raises(ValueError, match="cannot be foretold any more"):
        ForetoldUse(policies)
