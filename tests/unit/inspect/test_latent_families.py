"""DeepSeek-V2, -V3 and GLM-4.7-Flash: what their configs mean, and what is refused by name."""

import gzip
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runtime.inspect.config import ConfigReader
from runtime.inspect.families.registry import FAMILIES, find_family
from runtime.inspect.families.shapes import part_shape
from runtime.inspect.folder import inspect_folder
from runtime.spec.attention import LatentAttentionSpec
from runtime.spec.blocks import ExpertGroups, Score
from runtime.spec.footprint import KV_PAGE_TOKENS, kv_cache_bytes
from runtime.spec.model import ModelSpec
from runtime.spec.rope import RopeSpec, YarnScaling
from runtime.spec.tensors import ExpertId, ExpertPart
from tests.support.family_folders import tensor_values, write_family

GOLDEN = Path(__file__).parents[2] / "golden"
SMALL: dict[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 5,
    "num_attention_heads": 4,
    "vocab_size": 272,
    "max_position_embeddings": 512,
    "intermediate_size": 96,
    "moe_intermediate_size": 32,
    "n_routed_experts": 16,
    "num_experts_per_tok": 4,
}


def read(model_type: str, **changes: object) -> tuple[ModelSpec, list[str], list[str]]:
    """Read a small config; return the spec, the refused variants and the refused fields."""
    reader = ConfigReader({**SMALL, "model_type": model_type, **changes}, "config.json")
    spec = FAMILIES[model_type].read_spec(reader)
    found = [problem.parameters for problem in reader.problems]
    variants = [str(each["architecture"]) for each in found if "architecture" in each]
    return spec, variants, [str(each["field"]) for each in found if "field" in each]


def attention_of(spec: ModelSpec) -> LatentAttentionSpec:
    (attention,) = set(spec.attention)
    assert isinstance(attention, LatentAttentionSpec)
    return attention


def golden(name: str) -> ModelSpec:
    config = json.loads((GOLDEN / "model-configs" / f"{name}.config.json").read_text())
    family = find_family(config["model_type"], config["architectures"])
    assert family is not None
    reader = ConfigReader(config, name)
    spec = family.read_spec(reader)
    assert not reader.problems
    return spec


def test_spec_of_v3_has_its_published_attention_and_routing() -> None:
    spec = golden("deepseek-ai--DeepSeek-V3")
    stretched = 0.1 * 3.6888794541139363 + 1
    attention = attention_of(spec)
    assert attention.scale == pytest.approx(192**-0.5 * stretched**2, rel=1e-12)
    assert attention == LatentAttentionSpec(
        num_heads=128,
        latent_dim=512,
        plain_dim=128,
        rope_dim=64,
        value_dim=128,
        query_dim=1536,
        rope=RopeSpec(10000.0, 64, YarnScaling(40.0, 4096, 1.0), is_interleaved=True),
        scale=attention.scale,
        norm_eps=1e-6,
    )
    routing = spec.routing
    assert (routing.score, routing.has_correction, routing.is_normalised) == (
        Score.SIGMOID,
        True,
        True,
    )
    assert (routing.scale, routing.groups) == (2.5, ExpertGroups(8, 4, 2))
    assert (spec.moe_layers[0], spec.shared_width, spec.dense_width) == (3, 2048, 18432)


def test_spec_of_kimi_k2_is_one_of_v3_without_groups() -> None:
    spec = golden("moonshotai--Kimi-K2-Instruct")
    assert spec.model_type == "deepseek_v3"
    assert spec.routing.groups is None
    assert spec.routing.scale == 2.827
    scaling = attention_of(spec).rope.scaling
    assert isinstance(scaling, YarnScaling)
    assert (scaling.fast_turns, scaling.slow_turns) == (1.0, 1.0)


def test_spec_of_v2_lite_projects_queries_directly_and_needs_only_published_tensors() -> None:
    spec = golden("deepseek-ai--DeepSeek-V2-Lite")
    assert attention_of(spec).query_dim == 0
    assert spec.shared_width == 2 * 1408
    family = FAMILIES["deepseek_v2"]
    names = set(family.dense_shapes(spec))
    for layer in spec.moe_layers:
        for number in range(spec.num_experts):
            names |= {family.expert_part(spec, ExpertId(layer, number), p).name for p in ExpertPart}
    index = gzip.decompress((GOLDEN / "indexes" / "DeepSeek-V2-Lite-Chat.json.gz").read_bytes())
    assert names == set(json.loads(index)["weight_map"])


def test_spec_takes_the_published_defaults_for_absent_fields() -> None:
    for model_type, shared, dense, dims, scale, groups in (
        ("deepseek_v2", 64, 0, (1536, 128, 128), 1.0, None),
        ("deepseek_v3", 32, 3, (1536, 128, 128), 2.5, ExpertGroups(8, 4, 2)),
        ("glm4_moe_lite", 32, 1, (768, 192, 256), 1.8, None),
    ):
        spec, variants, fields = read(model_type)
        assert (variants, fields) == ([], [])
        own = attention_of(spec)
        assert (own.query_dim, own.plain_dim, own.value_dim) == dims
        assert (own.latent_dim, own.rope_dim, own.rope.is_interleaved) == (512, 64, True)
        assert own.scale == (own.plain_dim + 64) ** -0.5
        assert (spec.shared_width, spec.moe_layers[0]) == (shared, dense)
        assert spec.dense_width == (96 if dense else 0)
        assert (spec.routing.scale, spec.routing.groups) == (scale, groups)


def test_spec_of_v2_with_groups_takes_the_best_of_each() -> None:
    method = {"topk_method": "group_limited_greedy", "n_group": 4, "topk_group": 2}
    spec, variants, fields = read("deepseek_v2", **method)
    assert (variants, fields) == ([], [])
    assert spec.routing.groups == ExpertGroups(4, 2, 1)


def test_spec_of_v2_that_chooses_greedily_has_no_groups() -> None:
    spec, _, _ = read("deepseek_v2", topk_method="greedy", n_group=4, topk_group=2)
    assert spec.routing.groups is None


def test_spec_without_shared_experts_needs_no_tensors_of_them() -> None:
    spec, variants, fields = read("deepseek_v3", n_shared_experts=None)
    assert (variants, fields) == ([], [])
    assert not [name for name in FAMILIES["deepseek_v3"].dense_shapes(spec) if "shared" in name]


def test_spec_names_shared_experts_and_correction_as_published() -> None:
    spec, _, _ = read("deepseek_v3")
    shapes = FAMILIES["deepseek_v3"].dense_shapes(spec)
    assert shapes["model.layers.3.mlp.shared_experts.up_proj.weight"] == (32, 64)
    assert shapes["model.layers.3.mlp.gate.e_score_correction_bias"] == (16,)
    assert "model.layers.2.mlp.gate.e_score_correction_bias" not in shapes


def test_spec_of_glm_4_7_flash_comes_to_its_published_facts() -> None:
    """Its config is made of the defaults of its class."""
    own = {
        "hidden_size": 2048,
        "num_hidden_layers": 47,
        "num_attention_heads": 20,
        "vocab_size": 154880,
        "max_position_embeddings": 202752,
        "intermediate_size": 10240,
        "moe_intermediate_size": 1536,
        "n_routed_experts": 64,
    }
    spec, variants, fields = read("glm4_moe_lite", **own)
    assert (variants, fields) == ([], [])
    dense = sum(map(math.prod, FAMILIES["glm4_moe_lite"].dense_shapes(spec).values()))
    expert = sum(math.prod(part_shape(spec, part)) for part in ExpertPart)
    assert (len(spec.moe_layers), spec.top_k, expert) == (46, 4, 9437184)
    assert (dense + 46 * 64 * expert) / 1e9 == pytest.approx(30, rel=0.04)
    embedding = 2048 * 154880
    # Published as 3 billions, rounded and without the embedding.
    assert (dense - embedding + 46 * 4 * expert) / 1e9 == pytest.approx(3.5, abs=0.5)
    assert kv_cache_bytes(spec, KV_PAGE_TOKENS) == 4 * KV_PAGE_TOKENS * 47 * 576


def test_spec_of_glm_lists_sparse_layers() -> None:
    kinds = ["dense", "sparse", "dense", "sparse", "sparse"]
    spec, variants, fields = read("glm4_moe_lite", mlp_layer_types=kinds)
    assert (variants, fields) == ([], [])
    assert spec.moe_layers == (1, 3, 4)


YARN = {"type": "yarn", "factor": 4, "original_max_position_embeddings": 128}


@pytest.mark.parametrize(
    ("model_type", "changes", "variant"),
    [
        ("deepseek_v2", {"scoring_func": "sigmoid"}, "scoring_func 'sigmoid'"),
        ("deepseek_v2", {"topk_method": ["x"]}, "topk_method ['x']"),
        ("deepseek_v2", {"norm_topk_prob": True}, "normalised weights of experts"),
        ("deepseek_v2", {"mlp_bias": True}, "feed-forward biases"),
        ("deepseek_v3", {"scoring_func": "softmax"}, "scoring_func 'softmax'"),
        ("deepseek_v3", {"topk_method": "greedy"}, "topk_method 'greedy'"),
        ("deepseek_v3", {"index_topk": 2048}, "sparse attention by an indexer"),
        ("deepseek_v3", {"moe_layer_freq": 2}, "moe_layer_freq 2"),
        ("deepseek_v3", {"first_k_dense_replace": 9}, "no experts"),
        (
            "deepseek_v3",
            {"rope_scaling": {"type": "linear", "factor": 2, "mscale_all_dim": 1}},
            "mscale_all_dim without yarn",
        ),
        ("glm4_moe_lite", {"mlp_layer_types": ["dense"] * 5}, "no experts"),
        ("glm4_moe_lite", {"mlp_layer_types": ["odd"] * 5}, "layers of kind 'odd'"),
    ],
)
def test_spec_with_what_the_family_does_not_compute_is_refused(
    model_type: str, changes: dict[str, object], variant: str
) -> None:
    _, variants, _ = read(model_type, **changes)
    assert variants[0] == f"{model_type} with {variant}"


@pytest.mark.parametrize(
    ("model_type", "changes", "field"),
    [
        ("deepseek_v3", {"n_group": 3}, "n_group"),
        ("deepseek_v3", {"n_group": 16}, "n_group"),
        ("deepseek_v3", {"n_group": 4, "topk_group": 5}, "topk_group"),
        ("deepseek_v3", {"topk_group": 1}, "num_experts_per_tok"),
        ("deepseek_v3", {"qk_rope_head_dim": 7}, "qk_rope_head_dim"),
        ("deepseek_v3", {"q_lora_rank": -1}, "q_lora_rank"),
        ("deepseek_v2", {"n_routed_experts": None}, "n_routed_experts"),
        ("glm4_moe_lite", {"mlp_layer_types": ["dense"]}, "mlp_layer_types"),
        ("deepseek_v3", {"rope_scaling": {**YARN, "mscale_all_dim": "x"}}, "mscale_all_dim"),
    ],
)
def test_spec_with_impossible_value_names_the_field(
    model_type: str, changes: dict[str, object], field: str
) -> None:
    _, _, fields = read(model_type, **changes)
    assert field in fields


def test_spec_without_mscale_leaves_the_scale_alone() -> None:
    spec, variants, fields = read("deepseek_v3", rope_scaling=YARN)
    assert (variants, fields) == ([], [])
    assert attention_of(spec).scale == 192**-0.5


def test_layer_that_predicts_further_tokens_is_passed_over(tmp_path: Path) -> None:
    values = tensor_values("deepseek_v3")
    plain = inspect_folder(str(write_family(tmp_path / "plain", "deepseek_v3", values)))
    further = {
        f"model.layers.2.{name}": np.zeros((3, 5), np.float32)
        for name in ("eh_proj.weight", "enorm.weight", "embed_tokens.weight", "shared_head.norm")
    }
    folder = write_family(tmp_path / "further", "deepseek_v3", values | further)
    found = inspect_folder(str(folder))
    assert not plain.report.problems
    assert not found.report.problems
    assert found.report.num_parameters == plain.report.num_parameters
    assert found.tensors.keys() == plain.tensors.keys()
