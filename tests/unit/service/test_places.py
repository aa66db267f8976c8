"""Folders, log files and the list of prepared copies."""

import logging
import os
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import pytest

from runtime.service.folders import find_folders
from runtime.service.log import MAX_LOG_BYTES, NUM_OLD_LOGS, ErrorLog, logging_to, open_log
from runtime.service.prepared_places import PreparedPlaces


def append(path: Path, text: str) -> None:
    fd = open_log(path)
    os.write(fd, text.encode())
    os.close(fd)


def test_folders_below_the_home_that_is_set(tmp_path: Path) -> None:
    home = tmp_path / "larder"
    folders = find_folders({"LARDER_HOME": str(home)})
    places = [folders.settings, folders.data, folders.cache, folders.logs]
    assert [place.parent for place in places] == [home] * 4
    assert len(set(places)) == 4
    assert not home.exists(), "nothing is made before it is used"


def test_folders_without_a_home_are_the_systems_and_named_after_the_program() -> None:
    folders = find_folders({})
    assert all("larder" in str(place) for place in (folders.data, folders.cache, folders.logs))


def test_log_that_is_short_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "runtime.log"
    append(path, "one\n")
    append(path, "two\n")
    assert path.read_text(encoding="utf-8") == "one\ntwo\n"
    assert [entry.name for entry in path.parent.iterdir()] == ["runtime.log"]


def test_log_that_is_long_is_moved_away_and_the_oldest_lost(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "runtime.log"
    for generation in range(NUM_OLD_LOGS + 3):
        append(path, str(generation) * MAX_LOG_BYTES)
    names = sorted(entry.name for entry in path.parent.iterdir())
    assert names == ["runtime.1.log", "runtime.2.log", "runtime.3.log", "runtime.log"]
    assert path.read_bytes()[:1] == b"5"
    assert (path.parent / "runtime.3.log").read_bytes()[:1] == b"2"


def test_log_in_a_place_that_cannot_be_written_is_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        open_log(tmp_path / "file" / "runtime.log")


@pytest.mark.expects_log("runtime.service.log", "ERROR")
def test_error_log_records_the_stack_under_its_reference(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    with path.open("w", encoding="utf-8") as stream, logging_to(stream):
        try:
            os.stat(tmp_path / "missing")  # noqa: PTH116 - whatever raises
        except OSError as error:
            reference = ErrorLog(str(path)).record(error)
    written = path.read_text(encoding="utf-8")
    place, _, entry = reference.partition(", entry ")
    assert place == str(path)
    assert entry
    assert entry in written
    assert "Traceback" in written
    assert "FileNotFoundError" in written


def test_logging_to_a_stream_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    root = logging.getLogger()
    before = (root.level, list(root.handlers))
    with (tmp_path / "x.log").open("w", encoding="utf-8") as stream, logging_to(stream):
        assert len(root.handlers) == len(before[1]) + 1
    assert (root.level, root.handlers) == before


def test_places_remember_a_copy_elsewhere_and_not_the_usual(tmp_path: Path) -> None:
    places = PreparedPlaces(tmp_path / "data")
    places.add(f"{places.usual}/model-q8")
    assert not (tmp_path / "data").exists()
    places.add(str(tmp_path / "elsewhere" / "model-q8"))
    places.add(str(tmp_path / "elsewhere" / "model-q4"))
    assert PreparedPlaces(tmp_path / "data").folders() == [str(tmp_path / "elsewhere")]
    assert places.find_elsewhere("fingerprint") == []


@hypothesis.given(content=st.binary(max_size=50) | st.sampled_from([b"3", b"[1, null]", b"{}"]))
def test_places_with_any_content_of_their_list_are_texts(
    content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = tmp_path_factory.mktemp("data")
    (data / "prepared-places.json").write_bytes(content)
    assert all(isinstance(place, str) for place in PreparedPlaces(data).folders())
