"""Gemma 4: layers of two kinds, and what only its smaller models have."""

from typing import Any

import pytest

from runtime.inspect.config import ConfigReader
from runtime.inspect.families.registry import FAMILIES
from runtime.spec.attention import AttentionSpec, QkNorm
from runtime.spec.blocks import ActivationKind, Routing
from runtime.spec.model import ModelSpec
from runtime.spec.rope import ProportionalScaling, RopeSpec

SMALL: dict[str, Any] = {
    "model_type": "gemma4_text",
    "hidden_size": 64,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 272,
    "max_position_embeddings": 512,
    "intermediate_size": 48,
    "hidden_size_per_layer_input": 0,
    "sliding_window": 128,
}
MOE: dict[str, Any] = {
    "enable_moe_block": True,
    "num_experts": 8,
    "top_k_experts": 3,
    "moe_intermediate_size": 32,
}
SLIDING = AttentionSpec(
    num_heads=4,
    num_kv_heads=2,
    head_dim=16,
    rope=RopeSpec(10_000.0, 16),
    window=128,
    scale=1.0,
    qk_norm=QkNorm.HEAD,
    has_value_norm=True,
)


def full(head_dim: int, num_kv_heads: int, *, has_value_matrix: bool) -> AttentionSpec:
    return AttentionSpec(
        num_heads=4,
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        rope=RopeSpec(1_000_000.0, head_dim, ProportionalScaling(0.25)),
        scale=1.0,
        qk_norm=QkNorm.HEAD,
        has_value_norm=True,
        has_value_matrix=has_value_matrix,
    )


def read(**changes: object) -> tuple[ModelSpec, list[str]]:
    """Read a small config; return the spec and everything that is refused."""
    reader = ConfigReader({**SMALL, **changes}, "config.json")
    spec = FAMILIES["gemma4_text"].read_spec(reader)
    found = [problem.parameters for problem in reader.problems]
    return spec, [str(each.get("architecture", each.get("field"))) for each in found]


def test_spec_without_lists_has_every_sixth_layer_see_everything() -> None:
    spec, refused = read()
    assert not refused
    assert spec.attention == (SLIDING,) * 5 + (full(512, 2, has_value_matrix=True),)
    assert (spec.moe_layers, spec.num_experts, spec.dense_width) == ((), 0, 48)
    assert (spec.scales.embedding, spec.scales.logits_cap) == (8.0, 0.0)
    assert spec.activation.kind is ActivationKind.GELU_TANH
    assert spec.is_tied


def test_spec_without_a_window_has_the_usual_one() -> None:
    reader = ConfigReader(
        {**SMALL, "sliding_window": None, "max_position_embeddings": 1024}, "config.json"
    )
    first = FAMILIES["gemma4_text"].read_spec(reader).attention[0]
    assert isinstance(first, AttentionSpec)
    assert first.window == 512


def test_spec_with_experts_has_them_in_all_layers_beside_the_dense_block() -> None:
    spec, refused = read(**MOE, final_logit_softcapping=30.0)
    assert not refused
    assert spec.moe_layers == (0, 1, 2, 3, 4, 5)
    assert spec.routing == Routing(top_k=3, is_normalised=True)
    assert spec.scales.logits_cap == 30.0
    shapes = FAMILIES["gemma4_text"].dense_shapes(spec)
    assert shapes["model.layers.0.router.per_expert_scale"] == (8,)
    assert shapes["model.layers.0.mlp.up_proj.weight"] == (48, 64)
    assert shapes["model.layers.0.layer_scalar"] == (1,)


def test_spec_whose_keys_are_values_takes_the_global_counts() -> None:
    spec, refused = read(attention_k_eq_v=True, global_head_dim=32, num_global_key_value_heads=1)
    assert not refused
    assert spec.attention[5] == full(32, 1, has_value_matrix=False)
    assert spec.attention[0] == SLIDING
    shapes = FAMILIES["gemma4_text"].dense_shapes(spec)
    assert "model.layers.5.self_attn.v_proj.weight" not in shapes
    assert shapes["model.layers.0.self_attn.v_proj.weight"] == (32, 64)


def test_spec_reads_the_sizes_of_single_layers() -> None:
    listed = {"5": {"head_dim": 32, "num_key_value_heads": 4}}
    spec, refused = read(per_layer_config=listed)
    assert not refused
    assert spec.attention == (SLIDING,) * 5 + (full(32, 4, has_value_matrix=True),)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"hidden_size_per_layer_input": None}, "embeddings for each layer"),
        ({"num_kv_shared_layers": 2}, "keys and values shared by layers"),
        ({"use_bidirectional_attention": "all"}, "attention to later tokens"),
        ({"layer_types": ["sliding_attention"] * 6}, "a window in the last layer"),
        ({"layer_types": ["full_attention"] * 5 + ["conv"]}, "layers of kind 'conv'"),
        ({"layer_types": "full"}, "layer_types"),
        ({"layer_types": ["full_attention"] * 5}, "layer_types"),
        ({"per_layer_config": {"5": {"rank": 8}}}, "per_layer_config"),
        ({"per_layer_config": {"5": 8}}, "per_layer_config"),
        ({"per_layer_config": {"5": {"head_dim": 0}}}, "head_dim"),
        ({"rope_parameters": {"full_attention": {}}}, "rope_parameters.sliding_attention"),
    ],
)
def test_spec_with_what_is_not_computed_is_refused_by_name(
    changes: dict[str, object], named: str
) -> None:
    _, refused = read(**changes)
    assert [item for item in refused if named in item]
