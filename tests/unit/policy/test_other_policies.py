"""Policies that are not a worth of the history alone, against plain models of them."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from runtime.policy.admission import SecondTouch
from runtime.policy.catalogue import POLICIES, LayerFacts
from runtime.policy.clairvoyant import ClairvoyantPolicy
from runtime.policy.fixed import NonePolicy, StaticPolicy
from runtime.policy.lru import LruPolicy
from runtime.policy.segmented import SlruPolicy
from runtime.policy.window_swap import WindowSwapPolicy
from tests.support.policy_drive import NUM_EXPERTS, STEPS, drive


class ModelOfSlru:
    """Two plain lists, the oldest first."""

    def __init__(self, num_slots: int) -> None:
        self.num_slots = num_slots
        self.probation: list[int] = []
        self.protected: list[int] = []

    def use(self, expert: int) -> int | None:
        """Use an expert; return who left."""
        left = None
        if expert in self.probation + self.protected:
            for part in (self.probation, self.protected):
                if expert in part:
                    part.remove(expert)
            self.protected.append(expert)
            if len(self.protected) > int(0.8 * self.num_slots):
                self.probation.append(self.protected.pop(0))
            return None
        if len(self.probation) + len(self.protected) == self.num_slots:
            left = (self.probation or self.protected).pop(0)
        self.probation.append(expert)
        return left


@given(needs=st.lists(st.integers(0, NUM_EXPERTS - 1), max_size=40), num_slots=st.integers(1, 6))
def test_slru_any_needs_leave_as_in_two_lists(needs: list[int], num_slots: int) -> None:
    model = ModelOfSlru(num_slots)
    residents: set[int] = set()
    expected = []
    for expert in needs:
        is_hit = expert in residents
        left = model.use(expert)
        if not is_hit:
            expected.append((expert, True, left))
            residents = residents - {left} | {expert}

    events = drive(SlruPolicy(num_slots), [[expert] for expert in needs], num_slots, is_forced=True)

    assert events == expected


def test_slru_fewer_slots_sends_protected_back() -> None:
    policy = SlruPolicy(5)
    for expert in range(4):
        policy.insert(expert, 0)
    policy.touch([0, 1, 2, 3], 1)
    policy.touch([1], 2)

    policy.resize(4)

    assert policy.victim((), 2) == 0
    policy.remove(0)
    assert policy.victim({2}, 2) == 3


@given(steps=STEPS, num_slots=st.integers(1, NUM_EXPERTS))
def test_second_touch_any_needs_admits_who_was_refused_lately(
    steps: list[list[int]], num_slots: int
) -> None:
    memory_steps = 4
    policy = SecondTouch(LruPolicy(num_slots), memory_steps)
    refused: dict[int, int] = {}
    residents: set[int] = set()
    expected = []
    for now, step in enumerate(steps):
        for expert in [expert for expert in step if expert not in residents]:
            is_in = 0 < now - refused.get(expert, -memory_steps) < memory_steps
            expected.append((expert, is_in))
            if is_in:
                residents.add(expert)
                del refused[expert]
            else:
                refused[expert] = now
        if len(residents) > num_slots:
            return  # who leaves is the other policy's matter

    events = drive(policy, steps, num_slots, is_forced=False)

    assert [(expert, is_in) for expert, is_in, _ in events] == expected


def best_hits(steps: list[list[int]], num_slots: int) -> int:
    """Return the most hits that any choice of residents after each step can have."""
    best = {frozenset[int](): 0}
    for step in steps:
        following: dict[frozenset[int], int] = {}
        for residents, hits in best.items():
            now = hits + len(residents.intersection(step))
            known = sorted(residents.union(step))
            for chosen in itertools.combinations(known, min(num_slots, len(known))):
                key = frozenset(chosen)
                following[key] = max(following.get(key, 0), now)
        best = following
    return max(best.values())


@given(
    steps=st.lists(
        st.lists(st.integers(0, 4), min_size=1, max_size=3, unique=True), min_size=1, max_size=8
    ),
    num_slots=st.integers(1, 4),
)
def test_clairvoyant_any_needs_equals_the_best_of_all_choices(
    steps: list[list[int]], num_slots: int
) -> None:
    events = drive(ClairvoyantPolicy(num_slots, steps), steps, num_slots, is_forced=False)

    assert sum(map(len, steps)) - len(events) == best_hits(steps, num_slots)


def test_clairvoyant_need_that_was_not_foretold_is_worth_nothing_later() -> None:
    policy = ClairvoyantPolicy(2, [[1], [1]])

    policy.need([1, 5], 0)

    assert policy.worth(1, 0) > policy.worth(5, 0) == -float("inf")


@given(steps=STEPS, uses=st.lists(st.integers(0, 3), min_size=NUM_EXPERTS, max_size=NUM_EXPERTS))
def test_static_any_needs_admits_the_top_of_the_profile(
    steps: list[list[int]], uses: list[int]
) -> None:
    policy = StaticPolicy(3, dict(enumerate(map(float, uses))))
    hot = sorted(range(NUM_EXPERTS), key=lambda expert: (uses[expert], expert))[-3:]

    events = drive(policy, steps, 3, is_forced=False)

    assert {expert for expert, is_in, _ in events if is_in} <= set(hot)
    assert all(is_in == (expert in hot) for expert, is_in, _ in events)
    policy.resize(NUM_EXPERTS)
    assert all(policy.admit(expert, 99) for expert in range(NUM_EXPERTS))


def test_none_forced_to_keep_lets_anybody_leave() -> None:
    policy = NonePolicy(2)
    policy.insert(5, 0)
    policy.insert(2, 0)

    assert policy.victim((), 0) == 2
    assert not policy.admit(2, 0)


@given(steps=STEPS, num_slots=st.integers(1, NUM_EXPERTS))
def test_window_swap_any_needs_swaps_the_best_absent_for_the_worst(
    steps: list[list[int]], num_slots: int
) -> None:
    window_steps, max_swaps = 3, 2
    policy = WindowSwapPolicy(num_slots, window_steps, max_swaps)
    residents: set[int] = set()
    incoming: set[int] = set()
    counts: dict[int, int] = {}
    expected: list[tuple[int, bool, int | None]] = []
    for index, step in enumerate(steps):
        if index and index % window_steps == 0:
            window = steps[index - window_steps : index]
            counts = {
                expert: sum(expert in needed for needed in window) for expert in range(NUM_EXPERTS)
            }
            absent = sorted(
                (-counts[expert], expert) for expert in counts if expert not in residents
            )
            worst = sorted(counts[expert] for expert in residents)
            incoming = {
                expert
                for (uses, expert), least in zip(absent[:max_swaps], worst, strict=False)
                if -uses > least
            }
        for expert in [expert for expert in step if expert not in residents]:
            left = None
            is_in = len(residents) < num_slots or expert in incoming
            if is_in and len(residents) == num_slots:
                left = min(residents, key=lambda resident: (counts.get(resident, 0), resident))
                residents.remove(left)
            if is_in:
                residents.add(expert)
                incoming.discard(expert)
            expected.append((expert, is_in, left))

    assert drive(policy, steps, num_slots, is_forced=False) == expected


def test_catalogue_any_kind_can_be_made_from_facts_alone() -> None:
    for kind in POLICIES.values():
        kind.make(2, LayerFacts(4)).insert(1, 0)
