"""The expert map as colour indices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.graphs.expert_grid import NUM_LEVELS, ExpertGrid, MapMode
from app.text import map_phrases
from runtime.protocol.telemetry import ExpertMap


def some_map(use: bytes, tier: bytes = b"", bits: bytes = b"", *, layers: int = 1) -> ExpertMap:
    return ExpertMap(
        num_layers=layers, num_experts=len(use) // layers, use=use, tier=tier, bits=bits
    )


def test_grid_by_tier_stands_in_three_bands_strongest_first() -> None:
    grid = ExpertGrid()
    grid.take(some_map(bytes([10, 200, 100, 50]), bytes([2, 1, 0, 1])))
    groups = (grid.indices()[0] // NUM_LEVELS).tolist()
    assert groups == [0, 1, 1, 2]
    assert [grid.expert_at(0, column) for column in range(4)] == [2, 1, 3, 0]
    assert [grid.column_of(0, expert) for expert in range(4)] == [3, 1, 0, 2]


def test_grid_unsorted_stands_by_number() -> None:
    grid = ExpertGrid()
    grid.is_sorted = False
    grid.take(some_map(bytes([10, 200, 100]), bytes([2, 1, 0])))
    assert (grid.indices()[0] // NUM_LEVELS).tolist() == [2, 1, 0]
    assert grid.expert_at(0, 1) == grid.column_of(0, 1) == 1


def test_grid_by_use_is_one_falling_ramp() -> None:
    grid = ExpertGrid()
    grid.mode = MapMode.USE
    grid.take(some_map(bytes([0, 255, 128]), bytes([0, 2, 1])))
    assert grid.indices()[0].tolist() == [63, 31, 0]


def test_grid_by_bits_groups_the_formats() -> None:
    grid = ExpertGrid()
    grid.mode = MapMode.BITS
    grid.take(some_map(bytes(6), bytes(6), bytes([16, 4, 32, 8, 3, 6])))
    assert (grid.indices()[0] // NUM_LEVELS).tolist() == [0, 0, 1, 1, 2, 3]
    assert grid.num_of_bits() == [(3, 4, 2), (6, 8, 2), (16, 16, 1), (32, 32, 1)]
    legend = map_phrases.bits_legend(grid.num_of_bits())
    assert list(legend.values()) == ["3–4 bits: 2", "6–8 bits: 2", "16 bits: 1", "32 bits: 1"]
    grid.take(some_map(bytes(2), bytes(2), bytes([255, 4])))
    assert list(map_phrases.bits_legend(grid.num_of_bits())) == ["bits_4", "bits_32"]


def test_grid_empty_tier_and_bits_stay_as_before() -> None:
    grid = ExpertGrid()
    assert grid.take(some_map(bytes([1, 2]), bytes([1, 2]), bytes([8, 8])))
    assert not grid.take(some_map(bytes([1, 2])))
    assert grid.facts(0, 1)[:2] == (2, 8)
    assert grid.take(some_map(bytes([1, 3])))
    assert grid.take(some_map(bytes([1, 3]), bytes([0, 2])))
    assert grid.num_in_tiers() == (1, 0, 1)


def test_grid_of_another_shape_forgets_the_one_before() -> None:
    grid = ExpertGrid()
    assert grid.is_empty
    grid.take(some_map(bytes([1, 2]), bytes([1, 2])))
    grid.take(some_map(bytes(6), layers=2))
    assert (grid.num_layers, grid.num_experts) == (2, 3)
    assert grid.facts(1, 2)[0] == 0


def test_grid_of_wrong_length_is_blank() -> None:
    grid = ExpertGrid()
    grid.take(ExpertMap(num_layers=2, num_experts=2, use=b"\x01", tier=b"\x01", bits=b"\x08"))
    assert grid.indices().tolist() == [[0, 0], [0, 0]]


def test_grid_facts_turn_use_into_times() -> None:
    grid = ExpertGrid()
    grid.take(some_map(bytes([0, 16, 64]), bytes(3), bytes([4, 4, 4])))
    assert [grid.facts(0, expert)[2] for expert in range(3)] == pytest.approx([0, 1, 15])


@given(st.integers(1, 6), st.integers(1, 20), st.randoms(use_true_random=False))
def test_grid_sorted_is_a_permutation_that_never_rises_within_a_band(
    layers: int, experts: int, random: object
) -> None:
    draw = getattr(random, "randrange")  # noqa: B009 — the type of st.randoms is not exported
    size = layers * experts
    use = bytes(draw(256) for _ in range(size))
    tier = bytes(draw(3) for _ in range(size))
    grid = ExpertGrid()
    grid.take(some_map(use, tier, layers=layers))
    picture = grid.indices().astype(int)
    for layer in range(layers):
        order = [grid.expert_at(layer, column) for column in range(experts)]
        assert sorted(order) == list(range(experts))
        assert all(grid.column_of(layer, expert) == at for at, expert in enumerate(order))
        groups = picture[layer] // NUM_LEVELS
        assert groups.tolist() == sorted(tier[layer * experts + expert] for expert in order)
        for group in range(3):
            levels = picture[layer][groups == group] % NUM_LEVELS
            assert np.all(np.diff(levels) <= 0)


def test_grid_hits_of_layers_are_parts_and_bars() -> None:
    grid = ExpertGrid()
    use = bytes(6)
    hits = bytes([128, 64, 64, 0, 0, 0, 0, 0, 255])
    assert grid.take(
        ExpertMap(num_layers=3, num_experts=2, use=use, tier=use, bits=use, layer_hits=hits)
    )
    assert grid.layer_hits(0) == (0.5, 0.25, 0.25)
    assert grid.layer_hits(1) == (0.0, 0.0, 0.0)
    assert grid.hit_pixels((1, 2, 3, 4), 4).tolist() == [[1, 1, 2, 3], [4] * 4, [3] * 4]
    other = bytes([0, 255, 0]) + hits[3:]
    assert grid.take(
        ExpertMap(num_layers=3, num_experts=2, use=use, tier=use, bits=use, layer_hits=other)
    )
    assert grid.hit_pixels((1, 2, 3, 4), 2).tolist()[0] == [2, 2]
