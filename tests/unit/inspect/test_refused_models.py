"""Inspecting folders that state something this version does not compute."""

from pathlib import Path

import pytest

from runtime.inspect.families.registry import SUPPORTED
from runtime.inspect.folder import inspect_folder
from runtime.inspect.quantization import READABLE
from runtime.protocol.errors import ErrorCode, ErrorReport, Severity
from runtime.protocol.values import WeightFormat
from tests.support.checkpoint_folders import (
    TinyModel,
    edit_json,
    tiny_tensors,
    write_checkpoint,
    write_json,
    write_safetensors,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "tiny-model")


def problems_of(folder: Path | str) -> list[ErrorReport]:
    inspection = inspect_folder(str(folder))
    assert not inspection.report.is_runnable
    assert all(problem.severity is Severity.MODEL for problem in inspection.report.problems)
    return inspection.report.problems


def codes_of(folder: Path | str) -> list[ErrorCode]:
    return [problem.code for problem in problems_of(folder)]


def test_inspect_unsupported_architecture_lists_supported_ones(folder: Path) -> None:
    edit_json(folder / "config.json", model_type="jamba", architectures=["DeepseekV3"])
    (problem,) = problems_of(folder)
    assert problem.code is ErrorCode.ARCHITECTURE_UNSUPPORTED
    assert problem.parameters == {
        "architecture": "jamba",
        "supported": SUPPORTED,
    }


def test_inspect_class_that_cannot_chat_is_refused_by_its_name(folder: Path) -> None:
    edit_json(folder / "config.json", architectures=["Qwen3MoeForSequenceClassification"])
    (problem,) = problems_of(folder)
    assert problem.parameters["architecture"] == "Qwen3MoeForSequenceClassification"


def test_inspect_config_without_name_is_refused(folder: Path) -> None:
    write_json(folder / "config.json", {})
    (problem,) = problems_of(folder)
    assert problem.parameters["architecture"] == "an unnamed architecture"


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"a": 1, "a": 2}', "[" * 5000, "nul", "\ufeff{}"]
)
def test_inspect_config_that_is_not_json_is_named(folder: Path, content: str) -> None:
    (folder / "config.json").write_text(content)
    (problem,) = problems_of(folder)
    assert problem.code is ErrorCode.FILE_INVALID
    assert problem.parameters["file"] == str(folder / "config.json")
    assert problem.parameters["reason"] == "it is empty" or "JSON" in str(
        problem.parameters["reason"]
    )


def test_inspect_config_that_is_a_broken_link_is_no_model(folder: Path) -> None:
    (folder / "config.json").unlink()
    (folder / "config.json").symlink_to(folder / "gone")
    assert codes_of(folder) == [ErrorCode.NOT_A_MODEL]


def test_inspect_wrong_types_in_config_are_all_named(folder: Path) -> None:
    edit_json(folder / "config.json", hidden_size="64", num_hidden_layers=True, rope_theta=-1)
    fields = {problem.parameters["field"] for problem in problems_of(folder)}
    assert {"hidden_size", "num_hidden_layers", "rope_theta"} <= fields


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"rope_scaling": {"rope_type": "spiral", "factor": 4.0}}, "spiral"),
        ({"rope_scaling": {"type": ["yarn"]}}, "yarn"),
        ({"rope_parameters": {"full_attention": {"rope_type": "default"}}}, "one rope for each"),
        ({"partial_rotary_factor": 0.5}, "partial rope 0.5"),
        ({"hidden_act": "gelu"}, "gelu"),
        ({"attention_bias": True}, "attention biases"),
        ({"use_sliding_window": True, "sliding_window": 128}, "sliding windows"),
        ({"layer_types": ["sliding_attention"] * 4, "sliding_window": 4}, "sliding windows"),
        ({"mlp_only_layers": [0, 1, 2, 3]}, "no experts"),
    ],
)
def test_inspect_variant_that_would_be_computed_wrongly_is_refused_by_name(
    folder: Path, changes: dict[str, object], named: str
) -> None:
    edit_json(folder / "config.json", **changes)
    problem = problems_of(folder)[0]
    assert problem.code is ErrorCode.ARCHITECTURE_UNSUPPORTED
    assert named in str(problem.parameters["architecture"])


@pytest.mark.parametrize(
    ("stated", "method"),
    [
        ({"quant_method": "compressed-tensors", "format": "float-quantized"}, "float-quantized"),
        ({"quant_method": "squeeze-magic"}, "squeeze-magic"),
        ("awq", "awq"),
    ],
)
def test_inspect_quantised_model_is_refused_by_method(
    folder: Path, stated: object, method: str
) -> None:
    edit_json(folder / "config.json", quantization_config=stated)
    (problem,) = problems_of(folder)
    assert problem.code is ErrorCode.QUANTIZATION_UNSUPPORTED
    assert method in str(problem.parameters["method"])
    assert problem.parameters["supported"] == READABLE


@pytest.mark.parametrize("name", ["hf_quant_config.json", "quantize_config.json"])
def test_inspect_quantised_model_is_told_by_its_files(folder: Path, name: str) -> None:
    write_json(folder / name, {})
    assert codes_of(folder) == [ErrorCode.QUANTIZATION_UNSUPPORTED]


def test_inspect_weights_stored_as_bytes_are_not_reinterpreted(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m", TinyModel(num_shards=0))
    tensors = {
        name: ("F8_E4M3", shape, data[: len(data) // 2])
        for name, (_, shape, data) in tiny_tensors(TinyModel()).items()
    }
    write_safetensors(folder / "model.safetensors", tensors)
    (problem,) = problems_of(folder)
    assert problem.code is ErrorCode.QUANTIZATION_UNSUPPORTED
    assert problem.parameters["method"] == "F8_E4M3"


@pytest.mark.parametrize(
    ("packed", "scale"), [("weight_packed", "weight_scale"), ("qweight", "scales")]
)
def test_inspect_packed_experts_without_scales_name_the_first_scale(
    tmp_path: Path, packed: str, scale: str
) -> None:
    folder = write_checkpoint(tmp_path / "m", TinyModel(num_shards=0))
    tensors = {
        name.replace("proj.weight", f"proj.{packed}") if ".experts." in name else name: tensor
        for name, tensor in tiny_tensors(TinyModel()).items()
    }
    write_safetensors(folder / "model.safetensors", tensors)
    problem = problems_of(folder)[0]
    assert problem.code is ErrorCode.TENSOR_MISSING
    first = f"model.layers.0.mlp.experts.0.down_proj.{scale}"
    assert problem.parameters == {"tensor": first, "num_missing": 96}


def test_inspect_bias_that_the_family_does_not_add_is_refused(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m", TinyModel(num_shards=0))
    tensors = tiny_tensors(TinyModel())
    tensors["model.layers.0.self_attn.q_proj.bias"] = ("BF16", (64,), bytes(128))
    write_safetensors(folder / "model.safetensors", tensors)
    (problem,) = problems_of(folder)
    assert problem.code is ErrorCode.TENSOR_MISMATCHED
    assert problem.parameters["tensor"] == "model.layers.0.self_attn.q_proj.bias"


def test_inspect_experts_of_two_formats_are_refused(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m", TinyModel(num_shards=0))
    tensors = tiny_tensors(TinyModel())
    name = "model.layers.1.mlp.experts.2.up_proj.weight"
    dtype, shape, data = tensors[name]
    tensors[name] = ("F32", shape, data * 2)
    write_safetensors(folder / "model.safetensors", tensors)
    (problem,) = problems_of(folder)
    assert problem.code is ErrorCode.TENSOR_MISMATCHED
    assert problem.parameters == {
        "file": str(folder / "model.safetensors"),
        "tensor": name,
        "found": "f32",
        "expected": "bf16",
    }
    assert dtype == "BF16"


def test_inspect_dense_tensors_may_have_their_own_format(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m", TinyModel(num_shards=0))
    tensors = tiny_tensors(TinyModel())
    name = "model.layers.1.mlp.gate.weight"
    _, shape, data = tensors[name]
    tensors[name] = ("F32", shape, data * 2)
    write_safetensors(folder / "model.safetensors", tensors)
    inspection = inspect_folder(str(folder))
    assert inspection.report.is_runnable
    assert inspection.tensors[name].format is WeightFormat.F32


def test_inspect_missing_template_is_a_problem(folder: Path) -> None:
    edit_json(folder / "tokenizer_config.json", chat_template=None)
    assert codes_of(folder) == [ErrorCode.CHAT_TEMPLATE_MISSING]
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    assert inspect_folder(str(folder)).report.is_runnable


@pytest.mark.parametrize("value", [-1, "x", [1.5], True])
def test_inspect_eos_ids_of_wrong_type_are_named(folder: Path, value: object) -> None:
    edit_json(folder / "generation_config.json", eos_token_id=value)
    (problem,) = problems_of(folder)
    assert problem.code is ErrorCode.CONFIG_INVALID
    assert problem.parameters["field"] == "eos_token_id"


def test_inspect_broken_generation_config_is_named(folder: Path) -> None:
    (folder / "generation_config.json").write_text("{")
    (problem,) = problems_of(folder)
    assert problem.parameters["file"] == str(folder / "generation_config.json")
