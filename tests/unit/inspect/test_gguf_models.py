"""A GGUF model is told by its family, whichever of its files is named, and refused by name."""

import dataclasses
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from runtime.inspect.folder import inspect_folder
from runtime.inspect.gguf import roles
from runtime.protocol.errors import ErrorCode
from runtime.protocol.values import WeightFormat
from runtime.spec.gguf import GgufKind, Join
from runtime.spec.rope import LinearScaling, LongScaling, YarnScaling
from runtime.spec.tensors import ExpertId, ExpertPart
from tests.support.gguf_files import Declared, tiny_llama, write_gguf
from tests.support.gguf_models import (
    MODELS,
    changed,
    inspected,
    model_tensors,
    model_values,
    problem,
    published_spec,
    write_model,
)


@pytest.mark.parametrize("family", MODELS)
def test_spec_is_that_of_a_config_of_the_same_model(tmp_path: Path, family: str) -> None:
    found = inspected(write_model(tmp_path / "m.gguf", family, "Q8_0"))
    assert found.spec is not None
    assert dataclasses.replace(found.spec, eos_ids=()) == published_spec(family)
    assert found.spec.eos_ids == (258,)
    assert found.report.model_type == family
    assert len(found.experts) == len(found.spec.moe_layers) * found.spec.num_experts
    if found.experts:
        assert found.report.gguf_kinds[0] in ("Q8_0", "F32")
        assert found.report.stored_format is WeightFormat.Q8_G32


def test_experts_are_extents_of_their_stack(tmp_path: Path) -> None:
    found = inspected(write_model(tmp_path / "m.gguf", "qwen3_moe", "Q8_0"))
    first, third = (found.experts[ExpertId(1, number)][ExpertPart.UP] for number in (0, 2))
    assert third.offset_bytes - first.offset_bytes == 2 * 32 * 2 * 34
    assert third.gguf is not None
    assert third.gguf.kind is GgufKind.Q8_0
    assert found.report.expert_bytes == 3 * 32 * 2 * 34


def test_fused_and_single_experts_are_found(tmp_path: Path) -> None:
    tensors: dict[str, Any] = {}
    for layer in range(2):
        tensors[f"blk.{layer}.ffn_gate_exps.weight"] = None
        tensors[f"blk.{layer}.ffn_up_exps.weight"] = None
        tensors[f"blk.{layer}.ffn_gate_up_exps.weight"] = Declared((4, 64, 64))
    found = inspected(changed(tmp_path / "fused.gguf", "qwen3_moe", tensors=tensors))
    parts_ = found.experts[ExpertId(0, 1)]
    assert parts_[ExpertPart.UP].offset_bytes - parts_[ExpertPart.GATE].offset_bytes == 32 * 64 * 4
    tensors = {}
    for layer in range(2):
        for part in ExpertPart:
            shape = (64, 32) if part is ExpertPart.DOWN else (32, 64)
            tensors[f"blk.{layer}.ffn_{part}_exps.weight"] = None
            for number in range(4):
                tensors[f"blk.{layer}.ffn_{part}.{number}.weight"] = Declared(shape)
    path = changed(tmp_path / "single.gguf", "mixtral", tensors=tensors)
    assert len(inspected(path).experts) == 8
    tensors["blk.1.ffn_up.3.weight"] = None
    tensors["blk.0.ffn_up.2.weight"] = Declared((64, 32))
    report = inspect_folder(str(changed(path, "mixtral", tensors=tensors))).report
    assert [each.code for each in report.problems] == [
        ErrorCode.TENSOR_MISSING,
        ErrorCode.TENSOR_MISMATCHED,
    ]
    assert report.problems[0].parameters["tensor"] == "blk.1.ffn_up.3.weight"


def test_fused_queries_keys_and_values_are_found(tmp_path: Path) -> None:
    tensors: dict[str, Any] = {}
    for layer in range(2):
        for letter in "qkv":
            tensors[f"blk.{layer}.attn_{letter}.weight"] = None
            tensors[f"blk.{layer}.attn_{letter}.bias"] = None
        tensors[f"blk.{layer}.attn_qkv.weight"] = Declared((128, 64))
        tensors[f"blk.{layer}.attn_qkv.bias"] = Declared((128,))
    found = inspected(changed(tmp_path / "m.gguf", "phimoe", tensors=tensors))
    name = "model.layers.1.self_attn"
    query, value = (found.tensors[f"{name}.{letter}_proj.weight"] for letter in "qv")
    assert value.offset_bytes - query.offset_bytes == 96 * 64 * 4
    query, key = (found.tensors[f"{name}.{letter}_proj.bias"] for letter in "qk")
    assert key.offset_bytes - query.offset_bytes == 64 * 4
    tensors["blk.1.attn_qkv.weight"] = Declared((129, 64))
    assert problem(changed(tmp_path / "m.gguf", "phimoe", tensors=tensors)).code is (
        ErrorCode.TENSOR_MISMATCHED
    )


def test_latent_rows_are_expanded_by_whole_or_split_matrices(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    name = "model.layers.0.self_attn.kv_b_proj.weight"
    split = inspected(changed(path, "deepseek_v2")).tensors[name].gguf
    assert split is not None
    assert split.join is Join.KEYS_AND_VALUES
    tensors: dict[str, Any] = {}
    for layer in range(2):
        tensors[f"blk.{layer}.attn_k_b.weight"] = tensors[f"blk.{layer}.attn_v_b.weight"] = None
        tensors[f"blk.{layer}.attn_kv_b.weight"] = Declared((128, 32), "Q8_0")
    old = {
        "deepseek2.attention.key_length_mla": None,
        "deepseek2.attention.value_length_mla": None,
        "deepseek2.attention.key_length": 24,
        "deepseek2.attention.value_length": 16,
        "deepseek2.expert_gating_func": None,
        "deepseek2.expert_shared_count": 1,
    }
    whole = inspected(changed(path, "deepseek_v2", old, tensors=tensors)).tensors[name]
    assert whole.format is WeightFormat.F16
    for wrong in (
        {"blk.0.attn_kv_b.weight": None},
        {"blk.0.attn_kv_b.weight": Declared((64, 32))},
    ):
        assert problem(changed(path, "deepseek_v2", old, tensors=tensors | wrong)).code in (
            ErrorCode.TENSOR_MISSING,
            ErrorCode.TENSOR_MISMATCHED,
        )
    for wrong in (
        {"blk.0.attn_v_b.weight": None},
        {"blk.0.attn_k_b.weight": Declared((4, 16, 32))},
        {"blk.0.attn_v_b.weight": Declared((4, 32, 16))},
    ):
        assert problem(changed(path, "deepseek_v2", tensors=wrong)).code in (
            ErrorCode.TENSOR_MISSING,
            ErrorCode.TENSOR_MISMATCHED,
        )


def test_alternating_biases_need_both(tmp_path: Path) -> None:
    for wrong in (None, Declared((4, 33))):
        path = changed(tmp_path / "m.gguf", "gpt_oss", tensors={"blk.0.ffn_up_exps.bias": wrong})
        assert problem(path).code in (ErrorCode.TENSOR_MISSING, ErrorCode.TENSOR_MISMATCHED)


def factors(*values: float) -> Declared:
    return Declared((len(values),), data=struct.pack(f"<{len(values)}f", *values))


def test_rope_is_stretched_as_files_of_any_year_say(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"

    def scaling(
        family: str, values: Mapping[str, Any], tensors: Mapping[str, Declared] | None = None
    ) -> object:
        spec = inspected(changed(path, family, values, tensors)).spec
        assert spec is not None
        return spec.ropes[0].scaling

    linear = {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 2.0}
    assert scaling("llama", linear) == LinearScaling(2.0)
    assert scaling("llama", {"llama.rope.scale_linear": 4.0}) == LinearScaling(4.0)
    assert scaling("llama", {"llama.rope.scaling.type": "none"}) is None
    yarn = {
        "gpt-oss.rope.scaling.type": "yarn",
        "gpt-oss.rope.scaling.factor": 4.0,
        "gpt-oss.rope.scaling.original_context_length": 128,
    }
    found = scaling("gpt_oss", yarn)
    assert isinstance(found, YarnScaling)
    assert (found.factor, found.original_tokens, found.is_truncated) == (4.0, 128, False)
    latent = {key.replace("gpt-oss", "deepseek2"): value for key, value in yarn.items()}
    latent["deepseek2.rope.scaling.yarn_log_multiplier"] = 0.0707
    spec = inspected(changed(path, "deepseek_v2", latent)).spec
    assert spec is not None
    assert spec.attention[0].scale > 24**-0.5
    eight = [1.0, 1.0, 1.0, 1.5, 2.0, 4.0, 8.0, 8.0]
    found = scaling("llama", {}, tensors={"rope_freqs.weight": factors(*eight)})
    assert isinstance(found, LongScaling)
    assert (found.short_factors, found.short_magnitude) == (tuple(eight), 1.0)
    long = {
        "rope_factors_long.weight": factors(*[2.0] * 8),
        "rope_factors_short.weight": factors(*eight),
    }
    key = "phimoe.rope.scaling.original_context_length"
    found = scaling("phimoe", {key: 128}, tensors=long)
    assert isinstance(found, LongScaling)
    assert (found.original_tokens, found.long_factors[0]) == (128, 2.0)
    found = scaling("phimoe", {key: 4096, "phimoe.context_length": 131_072}, tensors=long)
    assert isinstance(found, LongScaling)
    assert found.long_magnitude == 1.243163121016122
    other = {"llama.rope.scaling.type": "strange"}
    assert problem(changed(path, "llama", other)).code is ErrorCode.ARCHITECTURE_UNSUPPORTED
    half = {"rope_freqs.weight": Declared((8,), "F16")}
    assert scaling("llama", {}, tensors=half) is None


def test_keys_that_older_files_lack_are_taken_from_shapes(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    for family, key in (
        ("qwen3_moe", "qwen3moe.expert_feed_forward_length"),
        ("qwen2_moe", "qwen2moe.expert_shared_feed_forward_length"),
    ):
        spec = inspected(changed(path, family, {key: None})).spec
        assert spec is not None
        assert (spec.expert_width, spec.shared_width) == (32, 48 if family == "qwen2_moe" else 0)
    tensors = {
        f"blk.{layer}.ffn_{part}_shexp.weight": None for layer in range(2) for part in ExpertPart
    }
    tensors |= {f"blk.{layer}.ffn_gate_inp_shexp.weight": None for layer in range(2)}
    key = "qwen2moe.expert_shared_feed_forward_length"
    spec = inspected(changed(path, "qwen2_moe", {key: None}, tensors=tensors)).spec
    assert spec is not None
    assert spec.shared_width == 0
    spec = inspected(
        changed(
            path,
            "gemma4_text",
            {
                "gemma4.attention.sliding_window_pattern": [True, False],
                "gemma4.rope.freq_base_swa": None,
            },
            tensors={"rope_freqs.weight": factors(*[1.0] * 8, *[1e30] * 8)},
        )
    ).spec
    assert spec is not None


def test_gemma_without_its_lists_has_the_usual_pattern(tmp_path: Path) -> None:
    keys = {
        "gemma4.attention.sliding_window_pattern": None,
        "gemma4.attention.head_count_kv": 2,
    }
    assert inspect_folder(str(changed(tmp_path / "m.gguf", "gemma4_text", keys))).report.problems


@pytest.mark.parametrize(
    ("family", "values", "code", "words"),
    [
        ("llama", {"general.architecture": "mamba"}, "architecture_unsupported", "mamba"),
        ("llama", {"general.architecture": 7}, "architecture_unsupported", "unnamed"),
        ("llama", {"general.architecture": None}, "shard_invalid", "architecture"),
        ("llama", {"llama.context_length": None}, "config_invalid", "llama.context_length"),
        ("llama", {"llama.embedding_length": "x"}, "config_invalid", "'x'"),
        ("llama", {"llama.block_count": 5000}, "config_invalid", "5000"),
        ("llama", {"tokenizer.ggml.model": None}, "tokenizer_missing", "tokens"),
        ("llama", {"tokenizer.ggml.model": "no_vocab"}, "tokenizer_missing", "tokens"),
        ("llama", {"tokenizer.ggml.model": "bert"}, "tokenizer_invalid", "bert"),
        ("llama", {"tokenizer.ggml.tokens": None}, "tokenizer_invalid", "equally long"),
        ("llama", {"tokenizer.ggml.token_type": [1]}, "tokenizer_invalid", "equally long"),
        ("llama", {"tokenizer.chat_template": None}, "chat_template_missing", "m.gguf"),
        ("qwen3_moe", {"qwen3moe.block_count": "many"}, "config_invalid", "many"),
        ("mixtral", {"llama.expert_count": 5}, "tensor_mismatched", "5 x"),
        ("ernie4_5_moe", {"ernie4_5-moe.block_count": 1}, "architecture_unsupported", "experts"),
    ],
)
def test_what_cannot_be_used_is_told_by_name(
    tmp_path: Path, family: str, values: dict[str, Any], code: str, words: str
) -> None:
    report = inspect_folder(str(changed(tmp_path / "m.gguf", family, values))).report
    first = report.problems[0]
    assert first.code.value == code
    assert words in str(first.parameters)


def test_granite_with_a_shared_expert_and_vectors_in_blocks_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    tensors = {"blk.0.ffn_gate_shexp.weight": Declared((32, 64))}
    assert "shared" in str(problem(changed(path, "granitemoe", tensors=tensors)).parameters)
    tensors = {"output_norm.weight": Declared((64,), "Q8_0")}
    assert problem(changed(path, "llama", tensors=tensors)).parameters["found"] == "Q8_0"


@pytest.mark.parametrize("kind", ["IQ2_XXS", "IQ3_S", "IQ1_M", "NVFP4", "TQ1_0"])
def test_kinds_that_are_not_read_are_refused_with_what_to_fetch(tmp_path: Path, kind: str) -> None:
    found = problem(write_gguf(tmp_path / "m.gguf", *tiny_llama(kind)))
    assert found.code is ErrorCode.QUANTIZATION_UNSUPPORTED
    assert found.parameters["method"] == f"GGUF {kind}"
    assert "Q4_K_M" in str(found.parameters["supported"])


def test_experts_of_several_kinds_have_a_format_for_each_matrix(tmp_path: Path) -> None:
    path = changed(
        tmp_path / "m.gguf",
        "qwen3_moe",
        tensors={"blk.0.ffn_down_exps.weight": Declared((4, 64, 32), "Q8_0")},
    )
    found = inspected(path)
    assert found.report.stored_format is WeightFormat.F32
    assert sorted(found.report.gguf_kinds) == ["F32", "Q8_0"]
    for expert, parts in found.experts.items():
        is_small = expert.layer == 0
        assert parts[ExpertPart.GATE].format is parts[ExpertPart.UP].format is WeightFormat.F32
        down = parts[ExpertPart.DOWN]
        assert down.format is (WeightFormat.Q8_G32 if is_small else WeightFormat.F32)
        assert down.num_bytes == (64 * 34 if is_small else 64 * 32 * 4)
    mixed = found.report.mixed_experts
    assert mixed is not None
    assert list(mixed.format_bytes) == [WeightFormat.F32, WeightFormat.Q8_G32]


def test_experts_of_plain_kinds_stay_as_they_are(tmp_path: Path) -> None:
    tensors = {"blk.1.ffn_up_exps.weight": Declared((4, 32, 64), "BF16")}
    found = inspected(changed(tmp_path / "m.gguf", "qwen3_moe", tensors=tensors))
    up = found.experts[ExpertId(1, 2)][ExpertPart.UP]
    assert up.format is WeightFormat.BF16
    assert up.gguf is None


def test_large_dense_part_is_kept_in_few_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_gguf(tmp_path / "m.gguf", *tiny_llama("Q8_0"))
    name = "model.layers.0.mlp.up_proj.weight"
    assert inspected(path).tensors[name].format is WeightFormat.F16
    monkeypatch.setattr(roles, "MAX_PLAIN_WEIGHTS", 0)
    assert inspected(path).tensors[name].format is WeightFormat.Q8_G32


def test_many_missing_tensors_end_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roles, "MAX_MISSING", 3)
    tensors = {
        name: each
        for name, each in model_tensors("qwen3_moe").items()
        if not name.endswith(("exps.weight", "attn_q.weight", "attn_k.weight"))
    }
    path = write_gguf(tmp_path / "m.gguf", model_values("qwen3_moe"), tensors)
    assert problem(path).parameters["num_missing"] == 4


def test_turned_biases_and_fused_names_in_latent_models(tmp_path: Path) -> None:
    biases = {
        f"blk.{layer}.attn_{letter}.bias": Declared((32 if letter in "kv" else 64,))
        for layer in range(2)
        for letter in ("q", "k", "v", "output")
    }
    heads = {"llama.attention.head_count": [4, 4], "llama.attention.head_count_kv": [2, 2]}
    found = inspected(changed(tmp_path / "m.gguf", "llama", heads, tensors=biases))
    bias = found.tensors["model.layers.1.self_attn.k_proj.bias"]
    assert bias.gguf is not None
    assert (bias.gguf.heads, bias.num_bytes) == (2, 32 * 4)
    stray = {"blk.0.attn_qkv.weight": Declared((8, 8))}
    assert inspected(changed(tmp_path / "m.gguf", "deepseek_v2", tensors=stray)).spec is not None


def test_values_that_contradict_shapes_are_told(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    key = "ernie4_5-moe.expert_feed_forward_length"
    assert problem(changed(path, "ernie4_5_moe", {key: "wide"})).parameters["found"] == "'wide'"
    spec = inspected(changed(path, "glm4_moe", {"glm4moe.rope.dimension_count": None})).spec
    assert spec is not None
    assert spec.ropes[0].num_channels == 8
    groups = {"deepseek2.expert_group_count": 2, "deepseek2.expert_group_used_count": 1}
    spec = inspected(changed(path, "deepseek_v2", groups)).spec
    assert spec is not None
    assert spec.routing.groups is not None
