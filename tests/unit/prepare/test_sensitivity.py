"""Groups of matrices that are tried, and what trials make of errors."""

import pytest

from runtime.plan.mix import Choice, Part
from runtime.prepare.sensitivity import (
    EVERYTHING,
    NUM_BANDS,
    group_of,
    groups_of,
    is_mixable,
    unavoidable,
    weighed,
)
from runtime.protocol.values import WeightFormat
from runtime.spec.mix import MIX_FORMATS
from runtime.spec.tensors import ExpertId, TensorEntry
from tests.support.plan_cases import spec

_SPEC = spec(num_layers=10)


def _dense(layer: int, name: str) -> str:
    return f"model.layers.{layer}.{name}.weight"


def test_the_first_layer_and_shares_of_the_others_are_tried_apart() -> None:
    bands = [group_of(ExpertId(layer, 3), _SPEC) for layer in range(_SPEC.num_layers)]
    assert bands == [f"experts, {band}" for band in (0, 1, 1, 1, 2, 2, 2, 3, 3, 3)]
    only = spec(num_layers=1)
    assert group_of(ExpertId(0, 0), only) == "experts, 0"
    assert len(groups_of([ExpertId(layer, 0) for layer in range(10)], _SPEC)) == 1 + NUM_BANDS


def test_where_attention_looks_is_tried_apart_from_what_it_finds() -> None:
    names = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.q_b_proj", "self_attn.v_proj")
    groups = [group_of(_dense(1, name), _SPEC) for name in (*names, "self_attn.o_proj")]
    assert groups == ["self_attn, looking, 1"] * 3 + ["self_attn, 1"] * 2
    assert group_of(_dense(9, "mlp.shared_expert.up_proj"), _SPEC) == "mlp.shared_expert, 3"
    assert group_of("lm_head.weight", _SPEC) == "lm_head.weight"


@pytest.mark.parametrize(
    ("name", "shape", "weight_format", "expected"),
    [
        (_dense(0, "self_attn.q_proj"), (8, 8), WeightFormat.BF16, True),
        (_dense(0, "self_attn.q_proj"), (8, 8), WeightFormat.Q8_G32, False),
        (_dense(0, "input_layernorm"), (8,), WeightFormat.BF16, False),
        (_dense(0, "mlp.gate"), (8, 8), WeightFormat.BF16, False),
        (_dense(0, "mlp.gate_proj"), (8, 8), WeightFormat.BF16, True),
        ("model.layers.0.mlp.experts.down_proj_bias", (8, 8), WeightFormat.BF16, False),
    ],
)
def test_matrices_of_plain_numbers_that_route_nothing_can_be_rounded(
    name: str, shape: tuple[int, ...], weight_format: WeightFormat, *, expected: bool
) -> None:
    entry = TensorEntry(name, "file", 0, 128, weight_format, shape)
    assert is_mixable(entry) is expected


def _part(name: ExpertId | str, error: float) -> Part[ExpertId | str]:
    """A part whose error halves from format to format."""
    return Part(name, [Choice(each, 1, error / 2**place) for place, each in enumerate(MIX_FORMATS)])


def _first(part: Part[ExpertId | str]) -> float:
    return part.choices[0].error


def test_errors_become_parts_of_what_answers_changed_by() -> None:
    parts = [
        _part(ExpertId(1, 0), 3.0),
        _part(ExpertId(1, 1), 1.0),
        _part("lm_head.weight", 0.01),
        _part("model.embed_tokens.weight", 0.5),
        _part(ExpertId(9, 0), 0.0),
    ]
    trials = {"experts, 1": 0.4, "lm_head.weight": 0.5, "experts, 3": 0.1}
    found = weighed(parts, _SPEC, trials)
    assert [part.name for part in found] == [part.name for part in parts]
    assert [_first(part) for part in found[:3]] == pytest.approx([0.3, 0.1, 0.5])
    assert found[0].choices[1].error == pytest.approx(0.15)
    # What was not tried counts as others do: 50, the upper one of 0.1 and 50.
    assert _first(found[3]) == pytest.approx(25.0)
    assert _first(found[4]) == 0.0


@pytest.mark.parametrize("kl", [0.0, -1.0, float("nan"), float("inf")])
def test_a_trial_that_shows_nothing_changes_nothing(kl: float) -> None:
    parts = [_part(ExpertId(1, 0), 3.0)]
    assert [_first(part) for part in weighed(parts, _SPEC, {"experts, 1": kl})] == [3.0]


def test_what_is_unavoidable_is_nothing_where_no_trial_has_told_it() -> None:
    assert unavoidable({EVERYTHING: 0.03}) == 0.03
    assert unavoidable({}) == unavoidable({EVERYTHING: float("nan")}) == 0.0
