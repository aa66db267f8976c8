import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.policy.base import Policy
from runtime.policy.lru import LruPolicy

NUM_EXPERTS = 8


class ModelOfLru:
    """The same decisions by looking at the time of every use."""

    def __init__(self) -> None:
        self.last_use: dict[int, int] = {}
        self.uses = 0

    def use(self, expert: int) -> None:
        self.uses += 1
        self.last_use[expert] = self.uses

    def victim(self, locked: set[int]) -> int | None:
        free = set(self.last_use) - locked
        return min(free, key=self.last_use.__getitem__) if free else None


@given(
    num_slots=st.integers(1, NUM_EXPERTS),
    steps=st.lists(st.sets(st.integers(0, NUM_EXPERTS - 1), min_size=1), max_size=30),
    locked=st.sets(st.integers(0, NUM_EXPERTS - 1)),
)
def test_lru_any_requests_victims_equal_the_model(
    num_slots: int, steps: list[set[int]], locked: set[int]
) -> None:
    policy: Policy = LruPolicy(num_slots)
    model = ModelOfLru()
    for now, wanted in enumerate(steps):
        for expert in sorted(wanted)[:num_slots]:
            if expert in model.last_use:
                policy.touch([expert], now)
            else:
                if len(model.last_use) == num_slots:
                    victim = policy.victim(set(), now)
                    assert victim == model.victim(set())
                    assert victim is not None
                    policy.remove(victim)
                    del model.last_use[victim]
                assert policy.admit(expert, now)
                policy.insert(expert, now)
            model.use(expert)
        assert policy.victim(locked, now) == model.victim(locked)
        assert policy.victim(locked, now) == policy.victim(locked, now)
    assert policy.victim(set(range(NUM_EXPERTS)), len(steps)) is None


def test_lru_more_experts_than_slots_is_refused() -> None:
    policy = LruPolicy(1)
    policy.insert(3, 0)

    with pytest.raises(ValueError, match="resident already"):
        policy.insert(3, 1)
    with pytest.raises(ValueError, match="slots are taken"):
        policy.insert(4, 1)


def test_lru_without_slots_admits_nobody() -> None:
    assert not LruPolicy(0).admit(1, 0)


def test_lru_resized_keeps_order_and_refuses_to_lose_residents() -> None:
    policy = LruPolicy(2)
    for expert in (4, 1):
        policy.insert(expert, 0)

    policy.resize(3)
    policy.insert(7, 1)
    with pytest.raises(ValueError, match="2 slots for 3"):
        policy.resize(2)

    assert policy.victim((), 1) == 4
    policy.remove(4)
    policy.resize(2)
    assert policy.victim((), 1) == 1
