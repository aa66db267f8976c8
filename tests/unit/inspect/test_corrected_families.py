"""GLM-4.5, MiniMax-M2 and ERNIE 4.5: what their configs mean, and what is refused by name."""

from typing import Any

import pytest

from runtime.inspect.config import ConfigReader
from runtime.inspect.families.registry import FAMILIES
from runtime.spec.attention import AttentionSpec, QkNorm
from runtime.spec.blocks import ExpertGroups, Routing, Score
from runtime.spec.model import ModelSpec
from runtime.spec.rope import RopeSpec

COMMON: dict[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 272,
    "max_position_embeddings": 512,
}
SMALL: dict[str, dict[str, Any]] = {
    "glm4_moe": {
        **COMMON,
        "intermediate_size": 96,
        "moe_intermediate_size": 32,
        "n_routed_experts": 8,
        "num_experts_per_tok": 3,
    },
    "minimax_m2": {
        **COMMON,
        "head_dim": 32,
        "rotary_dim": 16,
        "intermediate_size": 32,
        "num_local_experts": 8,
        "num_experts_per_tok": 3,
    },
    "ernie4_5_moe": {
        **COMMON,
        "intermediate_size": 96,
        "moe_intermediate_size": 32,
        "moe_num_experts": 8,
        "moe_k": 3,
    },
}


def read(model_type: str, **changes: object) -> tuple[ModelSpec, list[str]]:
    """Read a small config; return the spec and everything that is refused."""
    values = {**SMALL[model_type], "model_type": model_type, **changes}
    reader = ConfigReader(values, "config.json")
    spec = FAMILIES[model_type].read_spec(reader)
    found = [problem.parameters for problem in reader.problems]
    return spec, [str(each.get("architecture", each.get("field"))) for each in found]


def only_attention(spec: ModelSpec) -> AttentionSpec:
    (attention,) = set(spec.attention)
    assert isinstance(attention, AttentionSpec)
    return attention


def test_spec_of_glm4_moe_turns_half_of_each_head_behind_one_dense_layer() -> None:
    spec, refused = read("glm4_moe", attention_bias=True, use_qk_norm=True)
    assert not refused
    assert spec.moe_layers == (1, 2, 3)
    assert (spec.dense_width, spec.shared_width, spec.num_experts) == (96, 32, 8)
    assert spec.routing == Routing(
        top_k=3, score=Score.SIGMOID, is_normalised=True, least_sum=1e-20, has_correction=True
    )
    assert only_attention(spec) == AttentionSpec(
        num_heads=4,
        num_kv_heads=2,
        head_dim=16,
        rope=RopeSpec(10_000.0, 8),
        has_qkv_bias=True,
        qk_norm=QkNorm.HEAD,
    )
    shapes = FAMILIES["glm4_moe"].dense_shapes(spec)
    assert shapes["model.layers.1.mlp.gate.e_score_correction_bias"] == (8,)
    assert shapes["model.layers.1.mlp.shared_experts.up_proj.weight"] == (32, 64)
    assert "model.layers.0.mlp.gate.weight" not in shapes
    assert "model.layers.0.self_attn.o_proj.bias" not in shapes


def test_spec_of_glm4_moe_follows_what_the_config_says() -> None:
    spec, refused = read(
        "glm4_moe",
        n_group=4,
        topk_group=2,
        first_k_dense_replace=0,
        n_shared_experts=2,
        partial_rotary_factor=0.25,
        routed_scaling_factor=2.5,
    )
    assert not refused
    assert spec.moe_layers == (0, 1, 2, 3)
    assert (spec.dense_width, spec.shared_width) == (0, 64)
    assert spec.routing.groups == ExpertGroups(4, 2, 2)
    assert spec.routing.scale == 2.5
    assert only_attention(spec).rope == RopeSpec(10_000.0, 4)
    assert only_attention(spec).qk_norm is QkNorm.NONE


def test_spec_of_minimax_m2_turns_the_named_channels() -> None:
    spec, refused = read("minimax_m2", use_qk_norm=True, attn_type_list=[1, 1, 1, 1])
    assert not refused
    assert spec.routing == Routing(
        top_k=3, score=Score.SIGMOID, is_normalised=True, has_correction=True
    )
    assert only_attention(spec).rope == RopeSpec(5_000_000.0, 16)
    assert only_attention(spec).qk_norm is QkNorm.WHOLE
    shapes = FAMILIES["minimax_m2"].dense_shapes(spec)
    assert shapes["model.layers.3.block_sparse_moe.e_score_correction_bias"] == (8,)
    assert shapes["model.layers.3.self_attn.q_norm.weight"] == (128,)


def test_spec_of_minimax_m2_takes_the_share_of_newer_configs() -> None:
    parameters = {"rope_theta": 10_000.0, "partial_rotary_factor": 0.25}
    spec, refused = read("minimax_m2", rotary_dim=None, rope_parameters=parameters)
    assert not refused
    assert only_attention(spec).rope == RopeSpec(10_000.0, 8)


def test_spec_of_ernie_turns_neighbours_and_has_two_shared_experts() -> None:
    spec, refused = read("ernie4_5_moe")
    assert not refused
    assert spec.moe_layers == (1, 2, 3)
    assert (spec.dense_width, spec.shared_width, spec.is_tied) == (96, 64, True)
    assert spec.routing == Routing(
        top_k=3, is_normalised=True, least_sum=1e-12, has_correction=True
    )
    assert only_attention(spec).rope == RopeSpec(500_000.0, 16, is_interleaved=True)
    shapes = FAMILIES["ernie4_5_moe"].dense_shapes(spec)
    assert shapes["model.layers.1.mlp.moe_statics.e_score_correction_bias"] == (1, 8)


@pytest.mark.parametrize(
    ("first", "last", "interval", "expected"),
    [(1, -1, 1, (1, 2, 3)), (0, 2, 2, (1,)), (0, 3, 1, (0, 1, 2, 3)), (2, 99, 1, (2, 3))],
)
def test_spec_of_ernie_counts_its_layers_with_experts(
    first: int, last: int, interval: int, expected: tuple[int, ...]
) -> None:
    spec, refused = read(
        "ernie4_5_moe",
        moe_layer_start_index=first,
        moe_layer_end_index=last,
        moe_layer_interval=interval,
        moe_num_shared_experts=0,
    )
    assert not refused
    assert spec.moe_layers == expected
    assert spec.dense_width == (0 if len(expected) == 4 else 96)
    names = FAMILIES["ernie4_5_moe"].dense_shapes(spec)
    assert not [name for name in names if "shared" in name]


@pytest.mark.parametrize(
    ("model_type", "changes", "named"),
    [
        ("glm4_moe", {"first_k_dense_replace": 4}, "glm4_moe with no experts"),
        ("glm4_moe", {"scoring_func": "softmax"}, "glm4_moe with scoring_func 'softmax'"),
        ("minimax_m2", {"scoring_func": "softmax"}, "minimax_m2 with scoring_func 'softmax'"),
        ("minimax_m2", {"use_qk_norm": False}, "minimax_m2 with use_qk_norm False"),
        ("minimax_m2", {"shared_intermediate_size": 8}, "shared_intermediate_size 8"),
        ("minimax_m2", {"attn_type_list": [1, 0, 1, 1]}, "attention of other kinds"),
        ("minimax_m2", {"rotary_dim": 64}, "rotary_dim"),
        ("ernie4_5_moe", {"use_bias": True}, "ernie4_5_moe with biases"),
        ("ernie4_5_moe", {"compression_ratio": 2.0}, "ernie4_5_moe with compression_ratio 2.0"),
        ("ernie4_5_moe", {"moe_layer_start_index": 4}, "ernie4_5_moe with no experts"),
        ("ernie4_5_moe", {"moe_num_experts": [8, 8]}, "moe_num_experts"),
    ],
)
def test_spec_with_what_is_not_computed_is_refused_by_name(
    model_type: str, changes: dict[str, object], named: str
) -> None:
    _, refused = read(model_type, **changes)
    assert [item for item in refused if named in item]
