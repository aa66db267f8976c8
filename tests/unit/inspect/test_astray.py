"""Weights that lie elsewhere than the names of files, or the index, say."""

import json
import os
import shutil
from pathlib import Path

import pytest

from runtime.inspect import weights
from runtime.inspect.folder import inspect_folder
from runtime.inspect.shards import INDEX_NAME
from runtime.protocol.errors import ErrorCode, ErrorReport
from tests.support.checkpoint_folders import edit_json, shard_name, write_checkpoint

SECOND, THIRD = shard_name(2, 4), shard_name(3, 4)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "m")


def problems(folder: Path) -> list[ErrorReport]:
    return inspect_folder(str(folder)).report.problems


def test_misnamed_file_without_an_index_is_found(folder: Path) -> None:
    (folder / INDEX_NAME).unlink()
    (folder / SECOND).rename(folder / "second.safetensors")
    (problem,) = problems(folder)
    assert problem.code is ErrorCode.SHARD_MISNAMED
    assert problem.parameters == {"file": SECOND, "found": "second.safetensors"}


def test_two_missing_files_without_an_index_are_not_guessed(folder: Path) -> None:
    (folder / INDEX_NAME).unlink()
    (folder / SECOND).rename(folder / "second.safetensors")
    (folder / THIRD).rename(folder / "third.safetensors")
    assert [problem.code for problem in problems(folder)] == [ErrorCode.SHARD_MISSING] * 2


def test_missing_file_is_not_mistaken_for_one_that_holds_a_part_of_it(folder: Path) -> None:
    (folder / SECOND).unlink()
    shutil.copy(folder / THIRD, folder / "other.safetensors")
    os.truncate(shutil.copy(folder / THIRD, folder / "short.safetensors"), 99)
    (problem,) = problems(folder)
    assert problem.code is ErrorCode.SHARD_MISSING
    assert problem.parameters["file"] == SECOND


def test_stale_index_names_what_is_stored_before_what_is_not(folder: Path) -> None:
    weight_map = json.loads((folder / INDEX_NAME).read_text())["weight_map"]
    names = [name for name, file in weight_map.items() if file == SECOND]
    # The first is now looked for where it is not, the last is nowhere in the list.
    weight_map[names[0]] = THIRD
    del weight_map[names[-1]]
    edit_json(folder / INDEX_NAME, weight_map=weight_map)
    (problem,) = problems(folder)
    assert problem.code is ErrorCode.INDEX_STALE
    assert problem.parameters["num_tensors"] == 2
    assert problem.parameters["tensor"] in (names[0], names[-1])
    assert problem.parameters["found"] == f"it is in {SECOND}"


def test_tensor_that_is_nowhere_is_missing_and_the_index_is_not_blamed(folder: Path) -> None:
    weight_map = json.loads((folder / INDEX_NAME).read_text())["weight_map"]
    del weight_map["model.norm.weight"]
    edit_json(folder / "config.json", num_hidden_layers=5)
    (problem,) = problems(folder)
    assert problem.code is ErrorCode.TENSOR_MISSING
    assert str(problem.parameters["tensor"]).startswith("model.layers.4.")


def test_many_broken_files_are_not_all_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "MAX_TOLD", 2)
    for number in (1, 2, 3, 4):
        (folder / shard_name(number, 4)).unlink()
    told = problems(folder)
    assert [each.parameters["file"] for each in told] == [shard_name(1, 4), SECOND]
    assert [each.detail for each in told] == ["", "and 2 more files with problems"]


def test_part_of_a_file_that_vanishes_is_a_missing_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / SECOND).unlink()
    (folder / f"{SECOND}.part").symlink_to("gone")
    (problem,) = problems(folder)
    assert problem.code is ErrorCode.SHARD_MISSING
