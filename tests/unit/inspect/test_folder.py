"""Inspecting whole folders: good ones, and every kind of broken one."""

import json
import os
import shutil
from pathlib import Path

import pytest

from runtime.inspect.folder import inspect_folder
from runtime.protocol.errors import ErrorCode, ErrorReport, Severity
from runtime.protocol.model import ModelReport
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import ExpertId, ExpertPart
from tests.support.checkpoint_folders import (
    TinyModel,
    edit_json,
    shard_name,
    tiny_tensors,
    write_checkpoint,
    write_json,
    write_safetensors,
)

FAMILIES = ("qwen2_moe", "qwen3_moe", "mixtral")


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


@pytest.mark.parametrize("model_type", FAMILIES)
@pytest.mark.parametrize("is_tied", [False, True])
def test_inspect_of_good_folder_finds_every_tensor(
    tmp_path: Path, model_type: str, is_tied: bool
) -> None:
    model = TinyModel(model_type=model_type, is_tied=is_tied)
    inspection = inspect_folder(str(write_checkpoint(tmp_path / "m", model)))
    assert inspection.report.problems == []
    tensors = tiny_tensors(model)
    dense = {name for name in tensors if ".experts." not in name}
    assert inspection.tensors.keys() == dense
    expected = {ExpertId(layer, number) for layer in range(4) for number in range(8)}
    assert inspection.experts.keys() == expected
    assert all(parts.keys() == set(ExpertPart) for parts in inspection.experts.values())


@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16"])
@pytest.mark.parametrize("num_shards", [0, 1, 3])
def test_inspect_entries_point_at_the_published_bytes(
    tmp_path: Path, dtype: str, num_shards: int
) -> None:
    model = TinyModel(dtype=dtype, num_shards=num_shards)
    inspection = inspect_folder(str(write_checkpoint(tmp_path / "m", model)))
    tensors = tiny_tensors(model)
    experts = [entry for parts in inspection.experts.values() for entry in parts.values()]
    entries = [*inspection.tensors.values(), *experts]
    assert len(entries) == len(tensors)
    for entry in entries:
        _, shape, data = tensors[entry.name]
        assert entry.shape == shape
        assert entry.format is WeightFormat(dtype.lower())
        with Path(entry.file).open("rb") as file:
            file.seek(entry.offset_bytes)
            assert file.read(entry.num_bytes) == data


def test_inspect_report_states_sizes_and_counts(folder: Path) -> None:
    report = inspect_folder(str(folder)).report
    model = TinyModel()
    tensors = tiny_tensors(model)
    values = {name: len(data) // 2 for name, (_, _, data) in tensors.items()}
    expert = 3 * model.hidden_size * model.expert_width
    dense = sum(count for name, count in values.items() if ".experts." not in name)
    assert report.num_parameters == sum(values.values())
    assert report.num_active_parameters == dense + model.num_layers * model.top_k * expert
    assert report.dense_bytes == 2 * dense
    assert report.expert_bytes == 2 * expert
    assert report.file_bytes == sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    assert report.num_shards == 4
    assert report.stored_format is WeightFormat.BF16
    assert report.kv_bytes_per_token == 4 * 2 * 2 * 16 * 4
    assert (report.name, report.model_type, report.licence) == (
        "tiny-model",
        "qwen3_moe",
        "apache-2.0",
    )


def test_inspect_of_tied_model_counts_the_embedding_once(tmp_path: Path) -> None:
    tied = write_checkpoint(tmp_path / "tied", TinyModel(is_tied=True))
    untied = write_checkpoint(tmp_path / "untied", TinyModel(is_tied=False))
    one, two = inspect_folder(str(tied)), inspect_folder(str(untied))
    assert one.spec is not None
    assert one.spec.is_tied
    assert "lm_head.weight" not in one.tensors
    head_bytes = two.tensors["lm_head.weight"].num_bytes
    assert two.report.dense_bytes - one.report.dense_bytes == head_bytes
    assert one.report.notes == []


def test_inspect_of_tied_model_with_stored_head_ignores_the_head(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m", TinyModel())
    edit_json(folder / "config.json", tie_word_embeddings=True)
    inspection = inspect_folder(str(folder))
    assert inspection.report.is_runnable
    assert "lm_head.weight" not in inspection.tensors


def test_inspect_of_untied_model_without_head_names_the_head(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m", TinyModel(is_tied=True))
    edit_json(folder / "config.json", tie_word_embeddings=False)
    (problem,) = problems_of(folder)
    assert problem.code is ErrorCode.TENSOR_MISSING
    assert problem.parameters == {"tensor": "lm_head.weight", "num_missing": 1}


def test_inspect_missing_folder_says_so(tmp_path: Path) -> None:
    (problem,) = problems_of(tmp_path / "nowhere")
    assert problem.code is ErrorCode.FOLDER_NOT_FOUND
    assert problem.parameters == {"folder": str(tmp_path / "nowhere")}


@pytest.mark.parametrize("folder", ["", "a\0b", "x" * 300, "\udcff"])
def test_inspect_impossible_path_is_not_found(folder: str) -> None:
    inspection = inspect_folder(folder)
    assert [problem.code for problem in inspection.report.problems] == [ErrorCode.FOLDER_NOT_FOUND]
    inspection.report.folder.encode()


def test_inspect_missing_shard_names_file_and_tensors(folder: Path) -> None:
    file = shard_name(3, 4)
    (folder / file).unlink()
    weight_map = json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"]
    lost = [name for name, place in weight_map.items() if place == file]
    (problem,) = problems_of(folder)
    assert problem.code is ErrorCode.SHARD_MISSING
    assert problem.parameters == {
        "file": file,
        "num_tensors": len(lost),
        "first_tensor": lost[0],
    }


def test_inspect_missing_shard_without_index_is_told_by_its_number(folder: Path) -> None:
    (folder / "model.safetensors.index.json").unlink()
    assert inspect_folder(str(folder)).report.is_runnable
    (folder / shard_name(2, 4)).unlink()
    (problem,) = problems_of(folder)
    assert problem.code is ErrorCode.SHARD_MISSING
    assert problem.parameters["file"] == shard_name(2, 4)
    assert int(problem.parameters["num_tensors"]) > 0
    assert str(problem.parameters["first_tensor"]).startswith("model.layers.")


def test_inspect_truncated_shard_states_found_and_expected_bytes(folder: Path) -> None:
    path = folder / shard_name(2, 4)
    full = path.stat().st_size
    os.truncate(path, full * 6 // 10)
    (problem,) = problems_of(folder)
    assert problem.code is ErrorCode.SHARD_TRUNCATED
    assert problem.parameters == {
        "file": str(path),
        "found_bytes": full * 6 // 10,
        "expected_bytes": full,
    }


@pytest.mark.parametrize("kept_bytes", [0, 5, 100])
def test_inspect_shard_without_whole_header_expects_its_tensors(
    folder: Path, kept_bytes: int
) -> None:
    path = folder / shard_name(2, 4)
    full = path.stat().st_size
    os.truncate(path, kept_bytes)
    (problem,) = problems_of(folder)
    assert problem.code is ErrorCode.SHARD_TRUNCATED
    assert problem.parameters["found_bytes"] == kept_bytes
    assert full * 0.5 < int(problem.parameters["expected_bytes"]) <= full


def test_inspect_broken_shards_are_all_named(folder: Path) -> None:
    (folder / shard_name(1, 4)).unlink()
    os.truncate(folder / shard_name(3, 4), 3)
    (folder / "tokenizer.json").unlink()
    assert codes_of(folder) == [
        ErrorCode.SHARD_MISSING,
        ErrorCode.SHARD_TRUNCATED,
        ErrorCode.TOKENIZER_MISSING,
    ]


def test_inspect_lfs_pointer_says_download_is_incomplete(folder: Path) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n"
    (folder / shard_name(4, 4)).write_bytes(pointer)
    (folder / "tokenizer.json").write_bytes(pointer)
    first, second = problems_of(folder)
    assert (first.code, second.code) == (ErrorCode.SHARD_INVALID, ErrorCode.TOKENIZER_INVALID)
    assert "Git LFS" in str(first.parameters["reason"])
    assert "Git LFS" in str(second.parameters["reason"])


def test_inspect_missing_tensor_is_named_with_the_count(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m", TinyModel(num_shards=0))
    tensors = tiny_tensors(TinyModel())
    lost = [name for name in tensors if ".experts.3." in name]
    kept = {name: tensor for name, tensor in tensors.items() if name not in lost}
    write_safetensors(folder / "model.safetensors", kept)
    (problem,) = problems_of(folder)
    assert problem.code is ErrorCode.TENSOR_MISSING
    assert problem.parameters["num_missing"] == len(lost)
    assert problem.parameters["tensor"] in lost
    assert problem.detail


def test_inspect_mismatched_shape_states_both(folder: Path) -> None:
    edit_json(folder / "config.json", vocab_size=300)
    (problem,) = problems_of(folder)
    assert problem.code is ErrorCode.TENSOR_MISMATCHED
    assert problem.parameters == {
        "tensor": "model.embed_tokens.weight",
        "found": "272 x 64",
        "expected": "300 x 64",
    }


def test_inspect_unsupported_architecture_lists_supported_ones(folder: Path) -> None:
    edit_json(folder / "config.json", model_type="deepseek_v3", architectures=["DeepseekV3"])
    (problem,) = problems_of(folder)
    assert problem.code is ErrorCode.ARCHITECTURE_UNSUPPORTED
    assert problem.parameters == {
        "architecture": "deepseek_v3",
        "supported": "mixtral, qwen2_moe, qwen3_moe",
    }


def test_inspect_class_that_cannot_chat_is_refused_by_its_name(folder: Path) -> None:
    edit_json(folder / "config.json", architectures=["Qwen3MoeForSequenceClassification"])
    (problem,) = problems_of(folder)
    assert problem.parameters["architecture"] == "Qwen3MoeForSequenceClassification"


def test_inspect_config_without_name_is_refused(folder: Path) -> None:
    write_json(folder / "config.json", {})
    (problem,) = problems_of(folder)
    assert problem.parameters["architecture"] == "an unnamed architecture"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"a": 1, "a": 2}', "[" * 5000, "nul"])
def test_inspect_config_that_is_not_json_is_named(folder: Path, content: str) -> None:
    (folder / "config.json").write_text(content)
    (problem,) = problems_of(folder)
    assert problem.code is ErrorCode.CONFIG_INVALID
    assert problem.parameters["file"] == str(folder / "config.json")
    assert problem.parameters["expected"] == "valid JSON"


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
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "yarn"),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "linear"),
        ({"rope_parameters": {"rope_type": "llama3"}}, "llama3"),
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
    assert problem.parameters["supported"] == "bf16, f16, f32"


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
    assert problem.parameters == {"tensor": name, "found": "f32", "expected": "bf16"}
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


@pytest.mark.parametrize(
    "name",
    [
        "Модель",
        "モデル　一",
        "Übergröße",
        "🦙 hot",
        "trailing dot.",
        "a" * 250,
        'it\'s "quoted" & %s {x}',
    ],
)
def test_inspect_folder_with_any_name_works_and_keeps_the_name(tmp_path: Path, name: str) -> None:
    folder = write_checkpoint(tmp_path / name)
    report = inspect_folder(str(folder)).report
    assert report.is_runnable
    assert report.name == name
    assert report.folder == str(folder)


def test_inspect_under_a_deep_path_works(tmp_path: Path) -> None:
    deep = tmp_path / ("д" * 100) / ("日" * 80) / "m"
    write_checkpoint(deep)
    assert inspect_folder(str(deep)).report.is_runnable


def test_inspect_prepared_copy_asks_for_the_original(folder: Path) -> None:
    write_json(folder / "larder-manifest.json", {})
    (problem,) = problems_of(folder)
    assert problem.code is ErrorCode.NOT_A_MODEL
    assert "prepared copy" in str(problem.parameters["reason"])


@pytest.mark.parametrize(
    ("name", "words"),
    [("pytorch_model.bin", "pickle"), ("model.gguf", "GGUF"), ("weights.txt", "")],
)
def test_inspect_folder_without_safetensors_says_what_is_needed(
    folder: Path, name: str, words: str
) -> None:
    for file in folder.glob("*.safetensors*"):
        file.unlink()
    (folder / name).write_bytes(b"x")
    (problem,) = problems_of(folder)
    if words:
        assert problem.code is ErrorCode.NOT_A_MODEL
        assert words in str(problem.parameters["reason"])
    else:
        assert problem.code is ErrorCode.SHARD_MISSING
        assert problem.parameters["file"] == "model.safetensors"


def test_inspect_fingerprint_follows_config_headers_and_sizes_but_not_the_place(
    folder: Path, tmp_path: Path
) -> None:
    first = inspect_folder(str(folder)).report.fingerprint
    copy = shutil.copytree(folder, tmp_path / "other")
    assert inspect_folder(str(copy)).report.fingerprint == first
    edit_json(copy / "config.json", rope_theta=20000.0)
    second = inspect_folder(str(copy)).report.fingerprint
    (copy / shard_name(1, 4)).unlink()
    third = inspect_folder(str(copy)).report.fingerprint
    assert len({first, second, third}) == 3
    assert len(first) == 32


def test_inspect_report_of_broken_folder_can_be_sent(folder: Path) -> None:
    (folder / shard_name(1, 4)).write_bytes(b"\xff" * 64)
    report = inspect_folder(str(folder)).report
    assert isinstance(report, ModelReport)
    assert [problem.code for problem in report.problems] == [ErrorCode.SHARD_INVALID]


def test_inspect_eos_ids_come_from_the_generation_config_first(folder: Path) -> None:
    spec = inspect_folder(str(folder)).spec
    assert spec is not None
    assert spec.eos_ids == (258, 256)
    (folder / "generation_config.json").unlink()
    spec = inspect_folder(str(folder)).spec
    assert spec is not None
    assert spec.eos_ids == (256,)


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
