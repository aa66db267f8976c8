"""What no caller may do to a policy is refused, and the rest still works afterwards."""

import pytest

from runtime.policy.admission import SecondTouch
from runtime.policy.base import Policy
from runtime.policy.fixed import StaticPolicy
from runtime.policy.lru import LruPolicy
from runtime.policy.recency import Lru2Policy
from runtime.policy.segmented import SlruPolicy


def policies() -> list[Policy]:
    """Return one of each way to keep residents, with two slots."""
    filtered = SecondTouch(LruPolicy(2))
    return [Lru2Policy(2), SlruPolicy(2), StaticPolicy(2, {1: 2.0, 4: 1.0}), filtered]


@pytest.mark.parametrize("policy", policies(), ids=lambda policy: type(policy).__name__)
def test_policy_misused_refuses_and_keeps_its_residents(policy: Policy) -> None:
    policy.insert(4, 0)
    with pytest.raises(ValueError, match="resident already"):
        policy.insert(4, 0)
    policy.insert(1, 1)
    with pytest.raises(ValueError, match="slots are taken"):
        policy.insert(7, 1)
    with pytest.raises(ValueError, match="1 slots for 2"):
        policy.resize(1)

    assert policy.victim((), 1) == 4
    policy.remove(4)
    policy.resize(1)
    policy.touch([1], 2)
    assert policy.victim((), 2) == 1
    policy.remove(1)
    policy.resize(0)
    assert not policy.admit(7, 3)
    assert policy.victim((), 3) is None
