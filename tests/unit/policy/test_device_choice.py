"""Who lies on a device: uploads that pay, slots that go where they are used, prompts that count."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.policy.device_choice import MIN_COMING, DeviceChoice, Upload, UploadTerms

NUM_EXPERTS = 8
STEPS_TO_LEARN = 200


def step(choice: DeviceChoice, *rows: list[int]) -> list[Upload]:
    """Let one token need a row of each layer; what is chosen arrives before the next one."""
    for layer, row in enumerate(rows):
        choice.need(layer, row)
    choice.end_step()
    chosen = choice.choose()
    for upload in chosen:
        choice.publish(upload.layer, upload.expert)
    choice.check()
    return chosen


def here(choice: DeviceChoice, layer: int = 0) -> list[int]:
    """Return the residents of a layer."""
    return [int(expert) for expert in np.nonzero(choice.residents[layer])[0]]


def test_device_choice_free_slots_take_what_is_needed_few_at_a_time() -> None:
    choice = DeviceChoice([4], NUM_EXPERTS)

    first = step(choice, [1, 3, 5])
    second = step(choice, [1, 3, 5])

    assert [upload.left for upload in [*first, *second]] == [None] * 3
    assert len(first) == UploadTerms().max_per_layer
    assert here(choice) == [1, 3, 5]


def test_device_choice_nothing_needed_or_no_slots_uploads_nothing() -> None:
    choice = DeviceChoice([2], NUM_EXPERTS)
    choice.end_step()
    assert choice.choose() == []
    assert step(DeviceChoice([0, 0], NUM_EXPERTS), [1], [2]) == []
    assert DeviceChoice([], NUM_EXPERTS).choose() == []


def test_device_choice_one_use_takes_no_slot_of_what_is_used_again_and_again() -> None:
    choice = DeviceChoice([1], NUM_EXPERTS)
    for _ in range(STEPS_TO_LEARN):
        step(choice, [0])

    assert step(choice, [7]) == []

    for _ in range(STEPS_TO_LEARN):
        step(choice, [7])
    assert here(choice) == [7]


def test_device_choice_layers_exchange_slots_by_what_they_would_gain() -> None:
    """The first layer needs two experts in turn, the second always the same one."""
    shared, even = (
        DeviceChoice([2, 2], NUM_EXPERTS, UploadTerms(is_shared=is_shared))
        for is_shared in (True, False)
    )
    for number in range(STEPS_TO_LEARN):
        for choice in (shared, even):
            step(choice, [number % 3], [6])

    assert shared.slots == (3, 1)
    assert here(shared) == [0, 1, 2]
    assert even.slots == (2, 2)
    assert len(here(even)) == 2
    assert here(even, 1) == [6]


def test_device_choice_full_layer_takes_slot_of_least_of_all_layers() -> None:
    choice = DeviceChoice([1, 1], NUM_EXPERTS)
    step(choice, [0], [1])
    for _ in range(STEPS_TO_LEARN):
        step(choice, [0, 2])

    assert here(choice) == [0, 2]
    assert choice.slots == (2, 0)


def test_device_choice_uneven_slots_without_exchange_leave_a_full_layer_alone() -> None:
    choice = DeviceChoice([1, 0], NUM_EXPERTS, UploadTerms(is_shared=False))
    step(choice, [0], [1])

    assert here(choice) == [0]
    assert here(choice, 1) == []


@pytest.mark.parametrize(("follows_prompts", "expected"), [(True, [4, 5]), (False, [0, 1])])
def test_device_choice_prompt_of_many_rows_chooses_anew(
    follows_prompts: bool, expected: list[int]
) -> None:
    choice = DeviceChoice([2], NUM_EXPERTS, UploadTerms(follows_prompts=follows_prompts))
    for _ in range(STEPS_TO_LEARN):
        step(choice, [0, 1])
    counts = np.zeros(NUM_EXPERTS, np.int64)
    counts[[4, 5, 6]] = 300, 250, 10

    choice.need_rows(0, counts, 300)
    step(choice)

    assert here(choice) == expected


def test_device_choice_slow_link_keeps_few_on_their_way() -> None:
    choice = DeviceChoice([2] * 8, NUM_EXPERTS)
    coming: list[Upload] = []
    for number in range(6):
        for layer in range(8):
            choice.need(layer, [number, number + 1])
        choice.end_step()
        coming += choice.choose()
        if number:
            # One ends while a step is computed.
            done = coming.pop(0)
            choice.publish(done.layer, done.expert)
        choice.check()
        assert choice.num_coming == len(coming)
    assert MIN_COMING <= len(coming) <= 16
    for upload in coming[MIN_COMING - 1 :]:
        choice.forget(upload.layer, upload.expert)
    choice.choose()
    assert choice.num_coming <= MIN_COMING


def test_device_choice_asks_whether_an_expert_can_be_uploaded() -> None:
    choice = DeviceChoice([4], NUM_EXPERTS)
    choice.need(0, [1, 2, 3])
    choice.end_step()

    chosen = choice.choose(lambda layer, expert: (layer, expert) == (0, 2))

    assert chosen == [Upload(0, 2, None)]


def test_device_choice_shrinks_by_the_least_and_grows_where_there_are_fewest() -> None:
    choice = DeviceChoice([3, 1], NUM_EXPERTS)
    for _ in range(3):
        step(choice, [0, 1], [2])
    step(choice, [0], [2])

    assert choice.shrink(3) == []
    assert choice.shrink(2) == [(0, 1)]
    choice.check()
    assert choice.shrink(5) == []
    choice.grow(4)
    choice.grow(1)

    assert sum(choice.slots) == 4
    assert min(choice.slots) == 2
    with pytest.raises(ValueError, match="17 slots for 2 x 8"):
        choice.grow(17)


@given(st.integers(0, 1 << 30), st.booleans(), st.integers(0, 3), st.integers(1, 12))
def test_device_choice_any_steps_keep_to_slots_and_limits(
    seed: int, is_shared: bool, max_per_layer: int, num_slots: int
) -> None:
    terms = UploadTerms(is_shared=is_shared, max_per_layer=max_per_layer, min_gain=0.01)
    choice = DeviceChoice([num_slots // 3 + (num_slots % 3 > i) for i in range(3)], 5, terms)
    draws = random.Random(seed)
    coming: list[Upload] = []
    for _ in range(12):
        for layer in range(3):
            choice.need(layer, draws.sample(range(5), draws.randrange(5)))
        choice.end_step()
        coming += choice.choose()
        for layer in range(3):
            assert sum(upload.layer == layer for upload in coming) <= max_per_layer
        assert len({upload[:2] for upload in coming}) == len(coming)
        choice.check()
        assert sum(choice.slots) == num_slots
        assert is_shared or max(choice.slots) - min(choice.slots) <= 1
        for _ in range(draws.randint(0, len(coming))):
            done = coming.pop()
            choice.publish(done.layer, done.expert)
