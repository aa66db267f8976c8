import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import LarderError
from runtime.memory.ledger import Ledger
from runtime.protocol.errors import ErrorCode
from runtime.protocol.plan import MemoryPart

STEPS = st.lists(st.tuples(st.sampled_from(MemoryPart), st.integers(-60, 60)), max_size=40)


@given(limit_bytes=st.integers(0, 200), steps=STEPS)
def test_ledger_any_steps_never_above_limit(
    limit_bytes: int, steps: list[tuple[MemoryPart, int]]
) -> None:
    ledger = Ledger(limit_bytes)
    model = dict.fromkeys(MemoryPart, 0)
    peak = 0
    for kind, change in steps:
        fits = sum(model.values()) + change <= limit_bytes
        if change >= 0 and fits:
            ledger.take(kind, change)
            model[kind] += change
        elif change >= 0:
            with pytest.raises(LarderError):
                ledger.take(kind, change)
        elif model[kind] + change >= 0:
            ledger.give_back(kind, -change)
            model[kind] += change
        else:
            with pytest.raises(ValueError, match="giving back"):
                ledger.give_back(kind, -change)
        peak = max(peak, sum(model.values()))
        assert ledger.by_kind() == model
        assert ledger.held_bytes == sum(model.values()) <= limit_bytes
        assert ledger.free_bytes == limit_bytes - ledger.held_bytes
    assert ledger.peak_bytes == peak


def test_ledger_refusal_names_budget_and_need() -> None:
    ledger = Ledger(100)
    ledger.take(MemoryPart.DENSE, 70)

    with pytest.raises(LarderError) as refused:
        ledger.take(MemoryPart.EXPERTS, 31)

    assert refused.value.code is ErrorCode.RAM_BUDGET_TOO_SMALL
    assert refused.value.parameters == {"budget_bytes": 100, "needed_bytes": 101}


@pytest.mark.parametrize("num_bytes", [-1, -4096])
def test_ledger_negative_amounts_refused(num_bytes: int) -> None:
    with pytest.raises(ValueError, match="bytes"):
        Ledger(num_bytes)
    with pytest.raises(ValueError, match="taking"):
        Ledger(10).take(MemoryPart.WORK, num_bytes)


def test_ledger_limit_moves_but_never_below_what_is_held() -> None:
    ledger = Ledger(100)
    ledger.take(MemoryPart.EXPERTS, 60)

    ledger.set_limit(60)
    with pytest.raises(ValueError, match="60 are held"):
        ledger.set_limit(59)
    with pytest.raises(LarderError):
        ledger.take(MemoryPart.EXPERTS, 1)
    ledger.set_limit(61)
    ledger.take(MemoryPart.EXPERTS, 1)

    assert ledger.limit_bytes == ledger.held_bytes == 61
