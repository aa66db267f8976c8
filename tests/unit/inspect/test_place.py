"""Finding the model in what was dropped."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from runtime.errors import LarderError, report_of
from runtime.inspect import hub_cache, listing, place
from runtime.inspect.folder import inspect_folder
from runtime.inspect.listing import list_names
from runtime.inspect.manifest import JOURNAL_NAME
from runtime.inspect.place import find_model
from runtime.protocol.errors import ErrorCode
from runtime.protocol.sentences import sentence
from tests.support.checkpoint_folders import TinyModel, write_checkpoint


def refusal(path: Path) -> LarderError:
    with pytest.raises(LarderError) as caught:
        find_model(str(path))
    return caught.value


def reason(path: Path) -> str:
    error = refusal(path)
    assert error.code is ErrorCode.NOT_A_MODEL
    assert error.parameters["folder"] == str(path)
    return str(error.parameters["reason"])


def hub_snapshot(root: Path, snapshot: str) -> Path:
    """Lay out a model as the hub's cache does: snapshots of links into a folder of blobs."""
    repository = root / "models--some-org--Tiny-MoE-1B"
    folder = repository / "snapshots" / snapshot
    blobs = repository / "blobs"
    blobs.mkdir(parents=True, exist_ok=True)
    write_checkpoint(folder)
    for file in list(folder.iterdir()):
        blob = blobs / f"{snapshot}-{file.name}"
        shutil.move(file, blob)
        file.symlink_to(os.path.relpath(blob, folder))
    return folder


def test_find_model_takes_the_folder_itself(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m")
    found = find_model(str(folder))
    assert (found.folder, found.name) == (folder, "m")
    assert "config.json" in found.names


def test_find_model_makes_paths_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_checkpoint(tmp_path / "m")
    monkeypatch.chdir(tmp_path)
    assert find_model("m").folder == tmp_path / "m"
    assert find_model(str(tmp_path / "m" / ".." / "m")).folder == tmp_path / "m"


def test_find_model_looks_one_level_below(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "outer" / "m")
    (tmp_path / "outer" / "notes.txt").touch()
    assert find_model(str(tmp_path / "outer")).folder == tmp_path / "outer" / "m"


def test_find_model_among_several_asks_for_one(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "a")
    write_checkpoint(tmp_path / "b")
    error = refusal(tmp_path)
    assert error.code is ErrorCode.SEVERAL_MODELS
    assert error.parameters == {"folder": str(tmp_path), "num_models": 2, "names": "a, b"}


@pytest.mark.parametrize("dropped", [".", "models--some-org--Tiny-MoE-1B"])
def test_find_model_follows_the_hub_cache_to_main(tmp_path: Path, dropped: str) -> None:
    hub_snapshot(tmp_path, "aaaa")
    wanted = hub_snapshot(tmp_path, "bbbb")
    hub_snapshot(tmp_path, "cccc")
    refs = tmp_path / "models--some-org--Tiny-MoE-1B" / "refs"
    refs.mkdir()
    (refs / "main").write_text("bbbb")
    report = inspect_folder(str(tmp_path / dropped)).report
    assert report.is_runnable
    assert report.folder == str(wanted)
    assert report.name == "Tiny-MoE-1B"


def test_find_model_without_main_takes_the_newest_snapshot(tmp_path: Path) -> None:
    old, new = hub_snapshot(tmp_path, "zzzz"), hub_snapshot(tmp_path, "aaaa")
    os.utime(old, (1, 1))
    os.utime(new, (2, 2))
    assert find_model(str(tmp_path)).folder == new


def test_find_model_survives_a_snapshot_that_vanishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = hub_snapshot(tmp_path / "hub", "aaaa")
    monkeypatch.setattr(hub_cache, "is_file", lambda path: True)
    shutil.rmtree(snapshot)
    snapshot.symlink_to("gone")
    assert refusal(tmp_path / "hub").code is ErrorCode.FILE_UNREADABLE


def test_find_model_in_hub_cache_without_snapshot_says_no_config(tmp_path: Path) -> None:
    (tmp_path / "models--a--b").mkdir()
    assert reason(tmp_path) == "it has no config.json"
    (tmp_path / "models--a--b" / "snapshots").mkdir()
    assert "its download is not complete" in reason(tmp_path / "models--a--b")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mmproj-model.gguf", "go beside one"),
        ("model.safetensors", "config.json is missing"),
        ("adapter_config.json", "adapter"),
        ("photo.jpg", "no config.json"),
        (JOURNAL_NAME, "not finished"),
    ],
)
def test_find_model_says_what_a_folder_is_instead(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / name).touch()
    assert words in reason(tmp_path)


@pytest.mark.parametrize("file", ["model.safetensors", "config.json", "tokenizer.json"])
def test_find_model_takes_one_of_its_files_for_its_folder(tmp_path: Path, file: str) -> None:
    folder = write_checkpoint(tmp_path / "m", TinyModel(num_shards=0))
    assert find_model(str(folder / file)).folder == folder


@pytest.mark.parametrize(
    "dropped", ["snapshots", "blobs", "refs", "refs/main", "blobs/a", "snapshots/a/config.json"]
)
def test_find_model_from_inside_the_hub_cache_is_the_cached_model(
    tmp_path: Path, dropped: str
) -> None:
    wanted = hub_snapshot(tmp_path, "a")
    repository = wanted.parent.parent
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("a")
    (repository / "blobs" / "a").write_text("x")
    assert find_model(str(repository / dropped)).folder == wanted
    assert find_model(str(repository / dropped)).name == "Tiny-MoE-1B"


def test_find_model_in_a_chosen_snapshot_is_not_another(tmp_path: Path) -> None:
    hub_snapshot(tmp_path, "whole")
    empty = hub_snapshot(tmp_path, "empty")
    for file in empty.iterdir():
        file.unlink()
    assert reason(empty) == "it is empty"


def test_find_model_looks_into_the_hub_beside_other_caches(tmp_path: Path) -> None:
    wanted = hub_snapshot(tmp_path / "hub", "a")
    (tmp_path / "hub" / "datasets--x--y").mkdir()
    (tmp_path / "hub" / "version.txt").touch()
    (tmp_path / "xet").mkdir()
    assert find_model(str(tmp_path)).folder == wanted


def test_find_model_beside_a_file_called_hub_finds_nothing_there(tmp_path: Path) -> None:
    (tmp_path / "hub").touch()
    assert reason(tmp_path) == "it has no config.json"


def test_find_model_of_a_link_that_leads_nowhere_says_so(tmp_path: Path) -> None:
    (tmp_path / "gone").symlink_to("nowhere")
    (tmp_path / "circle").symlink_to("circle")
    assert reason(tmp_path / "gone") == "it is a link to something that is not there"
    assert reason(tmp_path / "circle") == "it is a link that leads back to itself"


def test_find_model_of_empty_folder_says_so(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert reason(tmp_path / "empty") == "it is empty"


def test_find_model_of_dropped_file_says_what_is_needed(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m")
    assert str(folder) in reason(folder / "README.md")
    (tmp_path / "mmproj-x.bin").write_bytes(b"GGU")
    assert reason(tmp_path / "mmproj-x.bin") == "it is a file and not a folder"
    (tmp_path / "x.safetensors").write_bytes(b"")
    assert "config.json" in reason(tmp_path / "x.safetensors")
    (tmp_path / "x.txt").write_bytes(b"hello")
    assert reason(tmp_path / "x.txt") == "it is a file and not a folder"
    os.mkfifo(tmp_path / "pipe")
    assert reason(tmp_path / "pipe") == "it is neither a folder nor a file"


def test_find_model_without_permission_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_checkpoint(tmp_path / "m")

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("runtime.inspect.listing.os.scandir", refuse)
    assert refusal(folder).parameters == {"file": str(folder), "reason": "Permission denied"}
    monkeypatch.setattr(Path, "stat", refuse)
    assert refusal(folder).code is ErrorCode.FILE_UNREADABLE


def test_list_names_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        (tmp_path / str(number)).touch()
    monkeypatch.setattr(listing, "MAX_ENTRIES", 3)
    assert len(list_names(tmp_path)) == 3


def test_model_name_of_a_root_is_its_path() -> None:
    assert place.model_name(Path("/")) == "/"


def test_find_model_above_models_of_long_names_still_says_what_to_do(tmp_path: Path) -> None:
    for letter in "abcd":
        write_checkpoint(tmp_path / (letter * 200))
    text = sentence(report_of(refusal(tmp_path)))
    assert "holds 4 models" in text
    assert "one of them: aaa" in text


@pytest.mark.skipif(sys.platform == "win32", reason="names are Unicode there")
def test_find_model_in_a_folder_whose_name_is_not_unicode_says_so(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "half a \udcff name")
    with pytest.raises(LarderError) as caught:
        find_model(str(folder))
    assert caught.value.code is ErrorCode.NOT_A_MODEL
    assert "Unicode" in str(caught.value.parameters["reason"])
    # The window never learns the name as it is: a sign stands for what is not Unicode.
    assert "Unicode" in reason(tmp_path / "half a \ufffd name")


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_report_of_a_linked_model_tells_where_it_really_lies(tmp_path: Path) -> None:
    real = write_checkpoint(tmp_path / "drive" / "m")
    (tmp_path / "link").symlink_to(real)
    (tmp_path / "all").symlink_to(tmp_path / "drive")
    for path in (tmp_path / "link", tmp_path / "all" / "m"):
        report = inspect_folder(str(path)).report
        assert (report.folder, report.real_folder) == (str(path), str(real))
    assert inspect_folder(str(real)).report.real_folder == ""
    for gone in ("", str(tmp_path / "gone"), "a\0b"):
        assert inspect_folder(gone).report.real_folder == ""
