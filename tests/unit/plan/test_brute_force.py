"""On small models every division of a budget is tried: none is better by more than its rounding."""

import itertools

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from runtime.plan.memory import MIN_CONTEXT_TOKENS, Needs, divide
from runtime.protocol.values import WeightFormat
from runtime.spec.footprint import KV_PAGE_TOKENS
from runtime.spec.ram_slots import Records
from runtime.spec.tensors import expert_layout
from tests.support.plan_cases import spec

FORMAT = WeightFormat.BF16


@st.composite
def small_needs(draw: st.DrawFn) -> Needs:
    num_experts = draw(st.integers(1, 9))
    of = spec(
        hidden_size=64,
        num_layers=draw(st.integers(1, 3)),
        num_experts=num_experts,
        top_k=draw(st.integers(1, num_experts)),
        expert_width=draw(st.sampled_from([96, 1024])),
        max_context_tokens=draw(st.sampled_from([256, 700, 1024])),
    )
    wanted = of.max_context_tokens
    record_bytes = expert_layout(FORMAT, of.hidden_size, of.expert_width).record_bytes
    slot_bytes = tuple(record_bytes * draw(st.integers(1, 3)) for _ in of.moe_layers)
    return Needs(
        spec=of,
        dense_bytes=draw(st.sampled_from([4096, 300_000])),
        records=Records(sum(slot_bytes) * num_experts, slot_bytes),
        wanted_context_tokens=wanted,
        min_context_tokens=min(wanted, MIN_CONTEXT_TOKENS),
        num_min_slots=len(of.moe_layers) * min(of.top_k, 2),
        has_policy=draw(st.booleans()),
    )


def contexts(needs: Needs) -> list[int]:
    pages = range(needs.min_context_tokens, needs.wanted_context_tokens, KV_PAGE_TOKENS)
    return [*pages, needs.wanted_context_tokens]


@settings(max_examples=150)
@given(needs=small_needs(), share=st.floats(0, 1.2))
def test_division_is_within_the_budget_and_nothing_that_fits_is_better(
    needs: Needs, share: float
) -> None:
    budget = int(needs.min_bytes + share * max(0, needs.all_bytes - needs.min_bytes))
    assume(budget >= needs.min_bytes)
    found = divide(needs, budget)
    num_slots, context = sum(found.slots_per_layer), found.context_tokens

    def taken(slots: int, tokens: int) -> int:
        return needs.dense_bytes + needs.experts_bytes(slots) + needs.context_bytes(tokens)

    fitting = [
        (slots, tokens)
        for slots in range(needs.num_min_slots, needs.num_all_slots + 1)
        for tokens in contexts(needs)
        if taken(slots, tokens) <= budget
    ]
    assert taken(num_slots, context) <= budget
    # Slots and pages are whole: what the last of each leaves is all that is not given out.
    steps = itertools.pairwise(map(needs.context_bytes, contexts(needs)))
    page_bytes = max((longer - shorter for shorter, longer in steps), default=0)
    most_slots = max(slots for slots, tokens in fitting if tokens >= context)
    longest = max(tokens for slots, tokens in fitting if slots >= num_slots)
    rounding = page_bytes + needs.record_bytes
    assert needs.experts_bytes(most_slots) - needs.experts_bytes(num_slots) <= rounding
    assert needs.context_bytes(longest) - needs.context_bytes(context) <= rounding
