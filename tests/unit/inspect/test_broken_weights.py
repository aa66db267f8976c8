"""Inspecting folders whose files are missing, cut or something else."""

import json
import os
from pathlib import Path

import pytest

from runtime.inspect.folder import inspect_folder
from runtime.protocol.errors import ErrorCode, ErrorReport, Severity
from runtime.protocol.model import ModelReport
from tests.support.checkpoint_folders import (
    TinyModel,
    edit_json,
    shard_name,
    tiny_tensors,
    write_checkpoint,
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


def test_inspect_stops_counting_what_a_config_only_claims(folder: Path) -> None:
    edit_json(folder / "config.json", num_experts=16_000)
    first, _ = problems_of(folder)
    assert first.code is ErrorCode.TENSOR_MISSING
    assert int(first.parameters["num_missing"]) >= 4096


def test_inspect_mismatched_shape_states_both(folder: Path) -> None:
    edit_json(folder / "config.json", vocab_size=300)
    (problem,) = problems_of(folder)
    assert problem.code is ErrorCode.TENSOR_MISMATCHED
    assert problem.parameters == {
        "file": str(folder / shard_name(1, 4)),
        "tensor": "model.embed_tokens.weight",
        "found": "272 x 64",
        "expected": "300 x 64",
    }


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("pytorch_model.bin", "pickle"),
        ("mmproj-model.gguf", "go beside one"),
        ("weights.txt", "no weight files"),
    ],
)
def test_inspect_folder_without_safetensors_says_what_is_needed(
    folder: Path, name: str, words: str
) -> None:
    for file in folder.glob("*.safetensors*"):
        file.unlink()
    (folder / name).write_bytes(b"x")
    (problem,) = problems_of(folder)
    assert problem.code is ErrorCode.NOT_A_MODEL
    assert words in str(problem.parameters["reason"])


def test_inspect_report_of_broken_folder_can_be_sent(folder: Path) -> None:
    (folder / shard_name(1, 4)).write_bytes(b"\xff" * 64)
    report = inspect_folder(str(folder)).report
    assert isinstance(report, ModelReport)
    assert [problem.code for problem in report.problems] == [ErrorCode.SHARD_INVALID]
