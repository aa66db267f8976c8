"""Looking for models below a place."""

import os
import sys
import types
from pathlib import Path

import pytest

from runtime.errors import LarderError
from runtime.inspect import search
from runtime.inspect.gguf import places
from runtime.inspect.manifest import JOURNAL_NAME, MANIFEST_NAME
from runtime.inspect.search import Seen, TreeSearch
from runtime.protocol.errors import ErrorCode
from runtime.protocol.search import RootState
from tests.support.checkpoint_folders import write_checkpoint

needs_links = pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")


def models_of(found: TreeSearch) -> list[Path]:
    return [model for models in found for model in models]


def searched(root: Path, seen: Seen | None = None) -> tuple[list[Path], TreeSearch]:
    found = TreeSearch(str(root), {} if seen is None else seen)
    return models_of(found), found


def hub_model(cache: Path, name: str, *snapshots: str) -> list[Path]:
    """Lay out a cached model whose ``main`` is the first snapshot."""
    repository = cache / f"models--{name}"
    folders = [write_checkpoint(repository / "snapshots" / each) for each in snapshots]
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(snapshots[0])
    return folders


def test_search_of_a_model_finds_itself(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "m")
    models, found = searched(tmp_path / "m")
    assert models == [tmp_path / "m"]
    assert (found.state, found.num_models, found.num_folders) == (RootState.THERE, 1, 1)


def touched(*paths: Path) -> list[Path]:
    """Make files of nothing and return their paths."""
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return list(paths)


def test_search_of_trees_by_publisher_finds_all(tmp_path: Path) -> None:
    wanted = [write_checkpoint(tmp_path / "b" / "two"), write_checkpoint(tmp_path / "a" / "one")]
    write_checkpoint(tmp_path / "a" / "one" / "original")
    write_checkpoint(tmp_path / ".trash" / "three")
    models, found = searched(tmp_path)
    assert models == sorted(wanted)
    assert found.num_models == 2
    assert found.is_complete


def test_search_finds_each_gguf_file_and_each_set_once(tmp_path: Path) -> None:
    packed = tmp_path / "publisher" / "packed"
    wanted = touched(packed / "m.Q4.GGUF", packed / "m.Q8_0.gguf")
    parts = [packed / f"big-{number:05d}-of-00003.gguf" for number in (1, 2, 3)]
    touched(*parts, packed / "mmproj-m.gguf", packed / "inner" / "c.gguf")
    both = write_checkpoint(tmp_path / "publisher" / "both")
    touched(both / "b.gguf", both / "original" / "hidden.gguf")
    models, found = searched(tmp_path)
    assert sorted(models) == sorted(
        [*wanted, parts[0], packed / "inner" / "c.gguf", both, both / "b.gguf"]
    )
    assert found.num_models == 6


def test_search_of_a_file_finds_it_and_a_place_with_it_counts_it(tmp_path: Path) -> None:
    (file,) = touched(tmp_path / "m" / "a.gguf")
    seen: Seen = {}
    models, found = searched(file, seen)
    assert (models, found.state, found.num_models) == ([file], RootState.THERE, 1)
    models, found = searched(tmp_path, seen)
    assert (models, found.num_models) == ([], 1)
    file.unlink()
    assert searched(file)[1].state is RootState.MISSING


@needs_links
def test_search_finds_linked_files_once_and_passes_over_lost_links(tmp_path: Path) -> None:
    (file,) = touched(tmp_path / "drive" / "a.gguf")
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.gguf").symlink_to(file)
    (root / "b.gguf").symlink_to(file)
    (root / "lost.gguf").symlink_to(tmp_path / "gone.gguf")
    assert searched(root)[0] == [root / "a.gguf"]


def test_search_of_the_hub_cache_finds_files_and_sets_in_folders(tmp_path: Path) -> None:
    repository = tmp_path / "models--org--packed"
    snapshot = repository / "snapshots" / "bbbb"
    parts = [snapshot / "Q4" / f"m-{number:05d}-of-00002.gguf" for number in (1, 2)]
    wanted = touched(snapshot / "m-Q8_0.gguf", *parts)
    touched(repository / "blobs" / "1234")
    models, found = searched(tmp_path)
    assert models == wanted[:2]
    assert found.num_models == 2
    only_folders = tmp_path / "models--org--split" / "snapshots" / "aaaa" / "Q4" / "s.gguf"
    touched(only_folders)
    assert searched(tmp_path / "models--org--split")[0] == [only_folders]


def test_search_of_the_hub_cache_takes_the_current_snapshot_alone(tmp_path: Path) -> None:
    main, _old = hub_model(tmp_path / "hub", "org--name", "bbbb", "aaaa")
    write_checkpoint(tmp_path / "hub" / "datasets--org--set" / "snapshots" / "cccc")
    write_checkpoint(tmp_path / "hub" / "spaces--org--demo" / "snapshots" / "dddd")
    words = tmp_path / "hub" / "models--org--words" / "snapshots" / "eeee"
    words.mkdir(parents=True)
    (words / "config.json").write_text("{}")
    (tmp_path / "hub" / "models--org--begun" / "snapshots").mkdir(parents=True)
    models, found = searched(tmp_path)
    assert models == [main]
    assert found.num_models == 1


def test_search_of_a_download_that_has_begun_finds_it(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors.index.json").write_text("{}")
    assert searched(tmp_path)[0] == [tmp_path]


def test_search_passes_over_copies_of_ours_and_other_peoples_configs(tmp_path: Path) -> None:
    for name, mark in (("copy", MANIFEST_NAME), ("begun", JOURNAL_NAME)):
        folder = write_checkpoint(tmp_path / name / "inner").parent
        (folder / mark).write_text("{}")
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "config.json").write_text("{}")
    assert searched(tmp_path)[0] == []


@needs_links
def test_search_follows_links_without_circles_and_finds_each_model_once(tmp_path: Path) -> None:
    elsewhere = write_checkpoint(tmp_path / "drive" / "m")
    root = tmp_path / "root"
    (root / "deep").mkdir(parents=True)
    (root / "deep" / "back").symlink_to(root)
    (root / "deep" / "self").symlink_to(root / "deep" / "self")
    (root / "gone").symlink_to(tmp_path / "nowhere")
    (root / "file").symlink_to(elsewhere / "config.json")
    (root / "model").symlink_to(elsewhere)
    (root / "twice").symlink_to(elsewhere)
    models, found = searched(root)
    assert models == [root / "model"]
    assert (found.num_models, found.num_folders) == (1, 3)


@needs_links
def test_search_finds_a_model_where_it_lies_after_a_link_led_to_it(tmp_path: Path) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    real = write_checkpoint(root / "z-real")
    (root / "a-link").symlink_to(real)
    below = write_checkpoint(other / "inner" / "m")
    (file,) = touched(other / "inner" / "m.gguf")
    (root / "b-link").symlink_to(other)
    (root / "b.gguf").symlink_to(file)
    seen: Seen = {}
    models, found = searched(root, seen)
    by_link = [root / "b.gguf", root / "a-link", real, root / "b-link" / "inner" / "m"]
    assert models == by_link
    assert found.num_models == 3
    models, found = searched(other, seen)
    assert (sorted(models), found.num_models) == ([below, file], 2)
    for again in (root, other):
        assert searched(again, seen)[0] == []


def test_search_takes_a_junction_for_a_link() -> None:
    class Entry:
        """What Windows tells of a folder."""

        name = "m"

        def __init__(self, tag: int | None) -> None:
            self.tag = tag

        def is_symlink(self) -> bool:
            return False

        def stat(self, *, follow_symlinks: bool) -> types.SimpleNamespace:
            assert not follow_symlinks
            if self.tag is None:
                raise PermissionError(13, "Permission denied")
            return types.SimpleNamespace(st_reparse_tag=self.tag)

    told = [search._leads_elsewhere(Entry(tag)) for tag in (0xA0000003, 0, None)]  # type: ignore[arg-type]
    assert told == [True, False, False]


@needs_links
def test_search_counts_what_was_found_from_another_place(tmp_path: Path) -> None:
    (snapshot,) = hub_model(tmp_path / "hub", "org--name", "aaaa")
    plain = write_checkpoint(tmp_path / "hub" / "plain")
    seen: Seen = {}
    assert searched(snapshot, seen)[0] == [snapshot]
    assert searched(plain, seen)[0] == [plain]
    models, found = searched(tmp_path / "hub", seen)
    assert (models, found.num_models) == ([], 2)
    again = searched(tmp_path / "hub", seen)[1]
    assert (again.state, again.num_models) == (RootState.THERE, 0)


def test_search_of_a_place_that_is_not_there_or_empty_says_so(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    assert searched(tmp_path / "gone")[1].state is RootState.MISSING
    assert searched(tmp_path / "file")[1].state is RootState.MISSING
    assert searched(tmp_path / "empty")[1].state is RootState.EMPTY


def test_search_goes_on_past_what_may_not_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = write_checkpoint(tmp_path / "m")
    (tmp_path / "locked").mkdir()
    real = os.scandir

    def refusing(path: Path) -> object:
        if Path(path).name == "locked":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", refusing)
    models, found = searched(tmp_path)
    assert (models, found.num_unreadable, found.state) == ([wanted], 1, RootState.THERE)
    assert searched(tmp_path / "locked")[1].state is RootState.UNREADABLE


def test_search_takes_a_cached_model_that_cannot_be_listed_for_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: Path) -> list[str]:
        raise LarderError(ErrorCode.FILE_UNREADABLE, file=str(folder), reason="a test")

    hub_model(tmp_path, "org--name", "aaaa")
    monkeypatch.setattr(places, "list_names", refuse)
    assert searched(tmp_path)[0] == []


@pytest.mark.parametrize(("limit", "value"), [("MAX_FOLDERS", 3), ("MAX_DEPTH", 1)])
def test_search_says_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(search, limit, value)
    near = write_checkpoint(tmp_path / "a")
    write_checkpoint(tmp_path / "b" / "c" / "d")
    models, found = searched(tmp_path)
    assert models == [near]
    assert not found.is_complete


def test_search_at_the_greatest_depth_without_more_below_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "MAX_DEPTH", 1)
    (tmp_path / "b").mkdir()
    assert searched(tmp_path)[1].is_complete
