"""Slots of experts by layer: within the budget, all that fit, as before with one size."""

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from runtime.spec.footprint import policy_bytes, staging_slots
from runtime.spec.ram_slots import (
    Records,
    even_experts_bytes,
    even_slots,
    ram_experts_bytes,
    ram_slots_within,
)
from tests.support.plan_cases import spec

PAGE = 4096


@given(data=st.data(), slot_pages=st.lists(st.integers(1, 4), min_size=1, max_size=7))
def test_slots_by_layer_are_the_most_that_fit(data: st.DataObject, slot_pages: list[int]) -> None:
    num_experts = data.draw(st.integers(1, 12))
    top_k = data.draw(st.integers(1, num_experts))
    of = spec(num_layers=len(slot_pages), num_experts=num_experts, top_k=top_k)
    slot_bytes = tuple(PAGE * each for each in slot_pages)
    # Beside the largest record of a layer there may be smaller ones.
    saved_bytes = data.draw(st.integers(0, PAGE)) * (num_experts - 1)
    records = Records(sum(slot_bytes) * num_experts - saved_bytes, slot_bytes)
    num_all = num_experts * len(slot_pages)
    kept_bytes = policy_bytes(len(slot_pages), num_experts)
    budget = data.draw(st.integers(0, records.total_bytes + PAGE)) + kept_bytes

    def taken(number: int) -> int:
        return ram_experts_bytes(of, records, even_slots(number, len(slot_pages)))

    for number in range(num_all + 1):
        assert even_experts_bytes(of, records, number) == taken(number)
    found = ram_slots_within(of, records, budget)

    fitting = [number for number in range(1, num_all + 1) if taken(number) <= budget]
    assert found == max(fitting, default=0)
    assert taken(num_all) == records.total_bytes + kept_bytes
    for larger in (budget + 1, budget + PAGE):
        assert ram_slots_within(of, records, larger) >= found


@given(
    num_layers=st.integers(1, 6),
    num_experts=st.integers(1, 20),
    top_k=st.integers(1, 4),
    pages=st.integers(1, 3),
    share=st.floats(0, 1.1),
)
def test_slots_of_one_size_are_those_of_one_pool(
    num_layers: int, num_experts: int, top_k: int, pages: int, share: float
) -> None:
    of = spec(num_layers=num_layers, num_experts=num_experts, top_k=min(top_k, num_experts))
    records, num_all = Records.alike(PAGE * pages, of), num_layers * num_experts
    room = int(share * records.total_bytes)
    pool = room // (PAGE * pages)
    expected = num_all if pool >= num_all else max(0, pool - staging_slots(of))
    assert ram_slots_within(of, records, room + policy_bytes(num_layers, num_experts)) == expected


def test_layers_of_another_size_have_their_own_staging() -> None:
    of = spec(num_layers=4, num_experts=32, top_k=2)
    records = Records(32 * 6 * PAGE, (PAGE, 2 * PAGE, PAGE, 2 * PAGE))
    taken_bytes = ram_experts_bytes(of, records, (5, 6, 7, 8)) - policy_bytes(4, 32)
    assert taken_bytes == PAGE * (5 + 7 + 4) + 2 * PAGE * (6 + 8 + 4)
    # Where every expert of a size has a slot, none of that size is computed from elsewhere.
    taken_bytes = ram_experts_bytes(of, records, (32, 6, 32, 8)) - policy_bytes(4, 32)
    assert taken_bytes == PAGE * 64 + 2 * PAGE * (6 + 8 + 4)


def test_a_model_without_experts_has_no_slots() -> None:
    of = dataclasses.replace(spec(), moe_layers=())
    records = Records.alike(0, of)
    assert (records.largest_bytes, even_slots(0, 0)) == (0, [])
    assert ram_slots_within(of, records, 1 << 30) == 0
    assert ram_experts_bytes(of, records, ()) == even_experts_bytes(of, records, 0) == 0
