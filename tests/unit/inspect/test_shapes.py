"""Tensors that families have in common, and layers of several kinds."""

import dataclasses
from pathlib import Path

import pytest

from runtime.inspect.config import ConfigReader
from runtime.inspect.families.base import (
    PartPlace,
    check_sizes,
    read_activation,
    read_windows,
)
from runtime.inspect.families.shapes import attention_shapes, standard_shapes
from runtime.inspect.header import StoredTensor
from runtime.inspect.roles import Roles
from runtime.inspect.shards import Shards
from runtime.protocol.errors import ErrorCode
from runtime.spec.attention import AttentionSpec, LatentAttentionSpec
from runtime.spec.blocks import SILU, ActivationKind, NormSpec, Routing
from runtime.spec.model import ModelSpec
from runtime.spec.rope import RopeSpec
from runtime.spec.tensors import Weave

LATENT = LatentAttentionSpec(
    num_heads=4,
    latent_dim=16,
    plain_dim=8,
    rope_dim=4,
    value_dim=6,
    query_dim=0,
    rope=RopeSpec(10000.0, 4),
    scale=0.3,
    norm_eps=1e-6,
)


def test_latent_attention_with_direct_queries_names_its_tensors() -> None:
    assert attention_shapes(LATENT, 32, "a") == {
        "a.q_proj.weight": (48, 32),
        "a.kv_a_proj_with_mqa.weight": (20, 32),
        "a.kv_a_layernorm.weight": (16,),
        "a.kv_b_proj.weight": (56, 16),
        "a.o_proj.weight": (32, 24),
    }


def test_latent_attention_with_latent_queries_and_biases_names_its_tensors() -> None:
    spec = dataclasses.replace(LATENT, num_heads=2, query_dim=10, has_bias=True)
    shapes = attention_shapes(spec, 32, "a")
    assert shapes["a.q_a_proj.weight"] == (10, 32)
    assert shapes["a.q_a_proj.bias"] == (10,)
    assert shapes["a.q_a_layernorm.weight"] == (10,)
    assert shapes["a.q_b_proj.weight"] == (24, 10)
    assert shapes["a.kv_a_proj_with_mqa.bias"] == (20,)
    assert shapes["a.o_proj.bias"] == (32,)
    assert "a.q_proj.weight" not in shapes


def test_attention_with_sinks_has_one_for_each_query_head() -> None:
    spec = AttentionSpec(num_heads=4, num_kv_heads=2, head_dim=8, rope=None, has_sinks=True)
    assert attention_shapes(spec, 32, "a")["a.sinks"] == (4,)


def test_shared_expert_without_gate_needs_no_gate_tensor() -> None:
    attention = AttentionSpec(num_heads=4, num_kv_heads=2, head_dim=8, rope=None)
    spec = ModelSpec(
        model_type="any",
        hidden_size=32,
        num_layers=1,
        vocabulary_size=10,
        max_context_tokens=64,
        attention=(attention,),
        norm=NormSpec(1e-6),
        moe_layers=(0,),
        num_experts=4,
        routing=Routing(top_k=2),
        expert_width=8,
        shared_width=16,
    )
    shared = [name for name in standard_shapes(spec) if "shared" in name]
    assert shared == [
        f"model.layers.0.mlp.shared_expert.{part}_proj.weight" for part in ("gate", "up", "down")
    ]


def windows(**values: object) -> tuple[list[int], list[ErrorCode]]:
    reader = ConfigReader({"max_position_embeddings": 512, **values}, "config.json")
    found = read_windows(reader, 3, window=32, first=1)
    return found, [problem.code for problem in reader.problems]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, [0, 0, 0]),
        ({"sliding_window": 64}, [0, 0, 0]),
        ({"use_sliding_window": True}, [0, 32, 32]),
        ({"layer_types": ["sliding_attention"] + ["full_attention"] * 2}, [32, 0, 0]),
        (
            {"sliding_window": 64, "use_sliding_window": True, "max_window_layers": 0},
            [64, 64, 64],
        ),
        (
            {"sliding_window": 64, "use_sliding_window": True, "max_window_layers": 2},
            [0, 0, 64],
        ),
        (
            {
                "sliding_window": 64,
                "layer_types": ["full_attention", "sliding_attention", "full_attention"],
            },
            [0, 64, 0],
        ),
        ({"sliding_window": 512, "use_sliding_window": True}, [0, 0, 0]),
    ],
)
def test_read_windows_follows_the_config(values: dict[str, object], expected: list[int]) -> None:
    assert windows(**values) == (expected, [])


def test_read_windows_refuses_what_it_does_not_know() -> None:
    kinds = ["full_attention", "linear_attention", "full_attention"]
    assert windows(layer_types=kinds)[1] == [ErrorCode.ARCHITECTURE_UNSUPPORTED]
    assert windows(layer_types=["full_attention"])[1] == [ErrorCode.CONFIG_INVALID]
    assert windows(layer_types="full_attention")[1] == [ErrorCode.CONFIG_INVALID]


def test_read_activation_takes_the_first_name_that_is_there() -> None:
    reader = ConfigReader({"activation_function": "gelu_pytorch_tanh"}, "config.json")
    found = read_activation(reader, "hidden_act", "activation_function")
    assert found.kind is ActivationKind.GELU_TANH
    assert read_activation(ConfigReader({}, "config.json"), "hidden_act") == SILU


def test_sizes_of_latent_attention_are_not_those_of_grouped_heads() -> None:
    reader = ConfigReader({}, "config.json")
    spec = ModelSpec(
        model_type="any",
        hidden_size=32,
        num_layers=2,
        vocabulary_size=10,
        max_context_tokens=64,
        attention=(LATENT, LATENT),
        norm=NormSpec(1e-6),
    )
    check_sizes(reader, spec)
    assert not reader.problems
    assert LATENT.kv.num_channels == 20


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (
            PartPlace(name="t", shape=(3, 4, 6), index=2, first_row=1, row_step=2),
            (1000 + 2 * 96, 96, Weave(4, 6, 1, 2)),
        ),
        (
            PartPlace(name="t", shape=(3, 4, 6), index=1, is_transposed=True),
            (1000 + 96, 96, Weave(4, 6, is_transposed=True)),
        ),
        (PartPlace(name="t", shape=(3, 4, 6), index=1, first_row=2), (1000 + 96 + 48, 48, None)),
    ],
)
def test_part_of_a_stack_lies_in_its_own_block(
    place: PartPlace, expected: tuple[int, int, Weave | None]
) -> None:
    stored = StoredTensor("t", "F32", (3, 4, 6), 1000, 3 * 4 * 6 * 4)
    shards = Shards(tensors={"t": (Path("file"), stored)})
    entry = Roles().take_part(shards, place, (2, 6))
    assert entry is not None
    assert (entry.offset_bytes, entry.num_bytes, entry.weave) == expected
    assert entry.shape == (2, 6)
