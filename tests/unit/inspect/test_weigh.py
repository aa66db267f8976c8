"""What would go with a model that is deleted."""

import os
import sys
from pathlib import Path

import pytest

from runtime.inspect import weigh
from runtime.inspect.weigh import weigh_model
from runtime.protocol.search import DeletionObstacle, FolderWeight
from tests.support.checkpoint_folders import write_checkpoint

needs_links = pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")


def size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def test_weigh_counts_all_files_of_a_model(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m")
    (folder / "more").mkdir()
    (folder / "more" / "notes.txt").write_text("12345")
    weight = weigh_model(str(folder))
    num_files = sum(len(names) for _, _, names in os.walk(folder))
    expected = FolderWeight(folder=str(folder), num_bytes=size_of(folder), num_files=num_files)
    assert weight == expected


def test_weigh_of_a_file_that_is_no_model_deletes_nothing(tmp_path: Path) -> None:
    (tmp_path / "m.safetensors").write_bytes(b"1234")
    weight = weigh_model(str(tmp_path / "m.safetensors"))
    assert weight.obstacle is DeletionObstacle.NOT_A_MODEL_ALONE


@needs_links
def test_weigh_of_a_cached_model_is_that_of_its_repository(tmp_path: Path) -> None:
    repository = tmp_path / "models--org--name"
    (repository / "blobs").mkdir(parents=True)
    for snapshot in ("aaaa", "bbbb"):
        folder = write_checkpoint(repository / "snapshots" / snapshot)
        blob = repository / "blobs" / snapshot
        (folder / "config.json").rename(blob)
        (folder / "config.json").symlink_to(blob)
    weight = weigh_model(str(repository / "snapshots" / "aaaa"))
    assert weight.folder == str(repository)
    assert weight.obstacle is None
    linked = sum(file.stat().st_size for file in (repository / "blobs").iterdir())
    assert weight.num_bytes == size_of(repository) - linked


@needs_links
def test_weigh_of_a_link_is_the_link_alone(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m")
    (tmp_path / "link").symlink_to(folder)
    weight = weigh_model(str(tmp_path / "link"))
    assert (weight.num_bytes, weight.num_files) == (0, 1)
    assert weight.link_target == str(folder.resolve())


@pytest.mark.parametrize("other", ["b.gguf", "b-00002-of-00002.gguf"])
def test_weigh_refuses_a_folder_that_holds_gguf_models_too(tmp_path: Path, other: str) -> None:
    folder = write_checkpoint(tmp_path / "m")
    (folder / other).touch()
    assert weigh_model(str(folder)).obstacle is DeletionObstacle.NOT_A_MODEL_ALONE
    cached = write_checkpoint(tmp_path / "models--org--name" / "snapshots" / "aaaa")
    assert weigh_model(str(cached)).obstacle is None
    (cached / other).touch()
    assert weigh_model(str(cached)).obstacle is DeletionObstacle.NOT_A_MODEL_ALONE


def test_weigh_refuses_a_folder_that_holds_other_models(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m")
    assert weigh_model(str(folder)).obstacle is None
    write_checkpoint(folder / "other")
    assert weigh_model(str(folder)).obstacle is DeletionObstacle.NOT_A_MODEL_ALONE


def test_weigh_refuses_homes_drives_and_what_has_very_many_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    inner = write_checkpoint(tmp_path / "home" / "m")
    for folder in (tmp_path / "home", tmp_path):
        assert weigh_model(str(folder)).obstacle is DeletionObstacle.NOT_A_MODEL_ALONE
    monkeypatch.setattr(os.path, "ismount", lambda path: path == inner)
    assert weigh_model(str(inner)).obstacle is DeletionObstacle.NOT_A_MODEL_ALONE
    monkeypatch.undo()
    monkeypatch.setattr(weigh, "MAX_FILES", 3)
    assert weigh_model(str(inner)).obstacle is DeletionObstacle.NOT_A_MODEL_ALONE


def test_weigh_of_what_is_gone_or_unreadable_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert weigh_model(str(tmp_path / "gone")).obstacle is DeletionObstacle.NOT_THERE
    folder = write_checkpoint(tmp_path / "m")
    (folder / "locked").mkdir()
    real = os.scandir

    def refusing(path: str) -> object:
        if Path(path).name == "locked":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", refusing)
    assert weigh_model(str(folder)).obstacle is DeletionObstacle.UNREADABLE


def test_weigh_passes_over_a_file_that_vanishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_checkpoint(tmp_path / "m")
    whole = weigh_model(str(folder)).num_bytes
    config_bytes = (folder / "config.json").stat().st_size
    real = Path.lstat

    def vanishing(path: Path) -> os.stat_result:
        if path.name == "config.json":
            raise FileNotFoundError(2, "No such file")
        return real(path)

    monkeypatch.setattr(Path, "lstat", vanishing)
    assert weigh_model(str(folder)).num_bytes == whole - config_bytes
