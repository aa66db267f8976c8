"""Tests of the exact split into experts, on a small made-up block."""

from __future__ import annotations

import numpy as np
import pytest

from resources.demo.failure import DemoBuildError
from resources.demo.rounding import from_bf16_bits, to_bf16_bits
from resources.demo.split import SHARED, SplitShape, split_feed_forward

SHAPE = SplitShape(num_experts=4, expert_size=3, shared_size=5, top_k=2)
HIDDEN = 8


def _bf16(values: np.ndarray) -> np.ndarray:
    return from_bf16_bits(to_bf16_bits(values.astype(np.float32)))


def _block() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    gate, up = _bf16(rng.normal(size=(17, HIDDEN))), _bf16(rng.normal(size=(17, HIDDEN)))
    down = _bf16(rng.normal(size=(HIDDEN, 17)))
    marks = [SHARED] * 5 + [0, 1, 2, 3] * 3
    assignment = rng.permutation(np.asarray(marks, np.uint8))
    router = _bf16(rng.normal(size=(4, HIDDEN)))
    return gate, up, down, assignment, router


def _feed_forward(x: np.ndarray, gate: np.ndarray, up: np.ndarray, down: np.ndarray) -> np.ndarray:
    inner = x @ gate.T
    return (inner / (1 + np.exp(-inner)) * (x @ up.T)) @ down.T


def test_split_with_every_expert_equals_the_dense_block() -> None:
    gate, up, down, assignment, router = _block()
    tensors = split_feed_forward(gate, up, down, assignment, router, SHAPE)
    x = np.random.default_rng(8).normal(size=(6, HIDDEN))
    scores = x @ tensors["gate.weight"].T
    weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    shared = "shared_expert."
    total = 0.5 * _feed_forward(
        x,
        tensors[shared + "gate_proj.weight"],
        tensors[shared + "up_proj.weight"],
        tensors[shared + "down_proj.weight"],
    )
    for expert in range(SHAPE.num_experts):
        prefix = f"experts.{expert}."
        own = _feed_forward(
            x,
            tensors[prefix + "gate_proj.weight"],
            tensors[prefix + "up_proj.weight"],
            tensors[prefix + "down_proj.weight"],
        )
        total = total + weights[:, [expert]] * own
    # The flat router still leans by up to a few times its scale.
    np.testing.assert_allclose(total, _feed_forward(x, gate, up, down), rtol=1e-3, atol=5e-3)


def test_split_changes_down_projections_by_powers_of_two_only() -> None:
    gate, up, down, assignment, router = _block()
    tensors = split_feed_forward(gate, up, down, assignment, router, SHAPE)
    for expert in range(SHAPE.num_experts):
        own = np.flatnonzero(assignment == expert)
        stored = tensors[f"experts.{expert}.down_proj.weight"]
        np.testing.assert_array_equal(_bf16(stored), stored)
        np.testing.assert_array_equal(stored / 4, down[:, own])


def test_split_keeps_the_order_of_the_router() -> None:
    gate, up, down, assignment, router = _block()
    tensors = split_feed_forward(gate, up, down, assignment, router, SHAPE)
    x = np.random.default_rng(9).normal(size=(50, HIDDEN))
    stored = tensors["gate.weight"]
    np.testing.assert_array_equal((x @ stored.T).argsort(axis=1), (x @ router.T).argsort(axis=1))


def test_split_into_a_number_of_experts_that_is_no_power_of_two_is_refused() -> None:
    with pytest.raises(DemoBuildError, match="power of two"):
        SplitShape(num_experts=3, expert_size=4, shared_size=5, top_k=1).check(17)


def test_split_with_missing_channels_is_refused() -> None:
    with pytest.raises(DemoBuildError, match="do not add up"):
        SHAPE.check(18)


def test_split_with_an_assignment_of_another_shape_is_refused() -> None:
    gate, up, down, assignment, router = _block()
    assignment[np.flatnonzero(assignment == 0)[0]] = 1
    with pytest.raises(DemoBuildError, match="assignment"):
        split_feed_forward(gate, up, down, assignment, router, SHAPE)
