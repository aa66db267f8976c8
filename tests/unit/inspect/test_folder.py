"""Inspecting good folders: what is found, stated and named."""

import json
import os
import shutil
from pathlib import Path

import pytest

from runtime.inspect.folder import inspect_folder
from runtime.protocol.errors import ErrorCode, ErrorReport, Severity
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import ExpertId, ExpertPart
from tests.support.checkpoint_folders import (
    TinyModel,
    edit_json,
    shard_name,
    tiny_tensors,
    write_checkpoint,
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


def test_inspect_and_read_behind_a_path_longer_than_a_name_can_be(tmp_path: Path) -> None:
    """Longer than the 260 signs of older Windows; such paths come with hub caches in deep homes."""
    deep = tmp_path.joinpath(*(f"{number}-" + "ü" * 60 for number in range(12)))
    deep.mkdir(parents=True)
    inspection = inspect_folder(str(write_checkpoint(deep / "m")))
    assert len(str(deep)) > 700
    assert inspection.report.is_runnable
    assert inspection.report.folder == str(deep / "m")
    entry = inspection.tensors["model.norm.weight"]
    with Path(entry.file).open("rb") as file:
        assert os.fstat(file.fileno()).st_size > entry.offset_bytes


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


def test_inspect_of_tied_model_with_stored_head_takes_the_head(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m", TinyModel())
    edit_json(folder / "config.json", tie_word_embeddings=True)
    inspection = inspect_folder(str(folder))
    assert inspection.report.is_runnable
    assert inspection.spec is not None
    assert not inspection.spec.is_tied
    assert "lm_head.weight" in inspection.tensors


def test_inspect_of_untied_model_without_head_names_the_head(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m", TinyModel(is_tied=True))
    edit_json(folder / "config.json", tie_word_embeddings=False)
    (problem,) = problems_of(folder)
    assert problem.code is ErrorCode.TENSOR_MISSING
    assert problem.parameters == {"tensor": "lm_head.weight", "num_missing": 1}


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


def test_inspect_eos_ids_come_from_the_generation_config_first(folder: Path) -> None:
    spec = inspect_folder(str(folder)).spec
    assert spec is not None
    assert spec.eos_ids == (258, 256)
    (folder / "generation_config.json").unlink()
    spec = inspect_folder(str(folder)).spec
    assert spec is not None
    assert spec.eos_ids == (256,)


def test_inspect_of_a_config_that_is_wrong_in_one_field_tells_it_once(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": -4}))
    fields = [each.parameters.get("field") for each in inspect_folder(str(folder)).report.problems]
    assert fields == ["max_position_embeddings"]
