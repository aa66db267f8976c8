"""Drives a policy as the engine and the laboratory do, checking each answer."""

from hypothesis import strategies as st

from runtime.policy.base import Policy, RankingPolicy
from runtime.policy.catalogue import LayerFacts

NUM_EXPERTS = 8
STEPS = st.lists(
    st.lists(st.integers(0, NUM_EXPERTS - 1), min_size=1, max_size=4, unique=True), max_size=25
)


def facts_of(steps: list[list[int]]) -> LayerFacts:
    """Return what a policy may know of these steps."""
    needs = [expert for step in steps for expert in step]
    profile = {expert: float(needs.count(expert)) for expert in range(NUM_EXPERTS)}
    return LayerFacts(NUM_EXPERTS, profile=profile, future=steps)


def drive(
    policy: Policy, steps: list[list[int]], num_slots: int, *, is_forced: bool
) -> list[tuple[int, bool, int | None]]:
    """Run all steps; return (expert, whether it entered, who left) for each miss.

    With ``is_forced`` everybody enters as long as somebody unlocked can leave.
    """
    residents: set[int] = set()
    events: list[tuple[int, bool, int | None]] = []
    for now, step in enumerate(steps):
        if isinstance(policy, RankingPolicy):
            policy.need(step, now)
        policy.touch([expert for expert in step if expert in residents], now)
        locked = set(step) if is_forced else set()
        for expert in [expert for expert in step if expert not in residents]:
            left = None
            if not policy.admit(expert, now) and not is_forced:
                events.append((expert, False, None))
                continue
            if len(residents) == num_slots:
                left = policy.victim(locked, now)
                assert left == policy.victim(locked, now), "the answer changed"
                assert (left is None) == (residents <= locked)
                if left is None:
                    continue
                assert left in residents - locked
                policy.remove(left)
                residents.remove(left)
            policy.insert(expert, now)
            residents.add(expert)
            events.append((expert, True, left))
        assert policy.victim(set(range(NUM_EXPERTS)), now) is None
    return events
