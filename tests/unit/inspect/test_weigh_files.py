"""What would go with a GGUF model that is deleted, which lies among others."""

import os
import sys
from pathlib import Path

import pytest

from runtime.inspect import weigh_files
from runtime.inspect.weigh import weigh_model
from runtime.protocol.search import DeletionObstacle, FolderWeight
from tests.support.checkpoint_folders import write_checkpoint

needs_links = pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")


def files(folder: Path, *names: str) -> list[str]:
    """Write files as long as their names and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text(name)
    return [str(folder / name) for name in names]


def cached(repository: Path, snapshot: str, **blobs: str) -> Path:
    """Lay out a snapshot whose names lead to blobs; ``__`` in a name is a folder."""
    folder = repository / "snapshots" / snapshot
    for name, blob in blobs.items():
        path = folder / f"{name.replace('__', '/')}.gguf"
        path.parent.mkdir(parents=True, exist_ok=True)
        files(repository / "blobs", blob)
        path.symlink_to(os.path.relpath(repository / "blobs" / blob, path.parent))
    return folder


def test_weigh_of_a_file_among_others_is_the_file_alone(tmp_path: Path) -> None:
    one, _, _ = files(tmp_path, "a.gguf", "b.gguf", "mmproj-a.gguf")
    assert weigh_model(one) == FolderWeight(folder=one, files=[one], num_bytes=6, num_files=1)


def test_weigh_of_the_only_file_takes_what_goes_beside_it(tmp_path: Path) -> None:
    one, beside, _ = files(tmp_path, "a.gguf", "mmproj-a.gguf", "README.md")
    expected = FolderWeight(folder=one, files=[one, beside], num_bytes=19, num_files=2)
    assert weigh_model(one) == expected


def test_weigh_of_a_set_is_all_parts_that_are_there(tmp_path: Path) -> None:
    names = [f"m-{number:05d}-of-00003.gguf" for number in (1, 2, 3)]
    parts = files(tmp_path, *names)
    files(tmp_path, "other.gguf")
    for part in parts:
        weight = weigh_model(part)
        assert (weight.folder, weight.files, weight.obstacle) == (parts[0], parts, None)
    Path(parts[0]).unlink()
    weight = weigh_model(parts[2])
    assert (weight.folder, weight.files) == (parts[1], parts[1:])


@needs_links
def test_weigh_of_linked_files_is_the_links_alone(tmp_path: Path) -> None:
    (target,) = files(tmp_path / "drive", "a.gguf")
    files(tmp_path, "mmproj-a.gguf")
    link = tmp_path / "a.gguf"
    link.symlink_to(target)
    expected = FolderWeight(folder=str(link), files=[str(link)], num_files=1, link_target=target)
    assert weigh_model(str(link)) == expected


@needs_links
def test_weigh_of_the_only_cached_file_is_that_of_its_repository(tmp_path: Path) -> None:
    repository = tmp_path / "models--org--name"
    snapshot = cached(repository, "aaaa", m="1234")
    cached(repository, "bbbb", m="5678")
    weight = weigh_model(str(snapshot / "m.gguf"))
    assert (weight.folder, weight.files, weight.num_bytes) == (str(repository), [], 8)


@needs_links
def test_weigh_of_a_cached_file_among_others_takes_its_links_and_its_contents(
    tmp_path: Path,
) -> None:
    repository = tmp_path / "models--org--name"
    snapshot = cached(repository, "aaaa", q4__m="new", q8="123456", same="shared")
    old = cached(repository, "bbbb", q4__m="old")
    cached(repository, "cccc", other="shared")
    blobs = repository / "blobs"
    links = [str(folder / "q4" / "m.gguf") for folder in (snapshot, old)]
    weight = weigh_model(links[0])
    assert weight.files == [*links, str(blobs / "new"), str(blobs / "old")]
    assert (weight.num_bytes, weight.link_target, weight.obstacle) == (6, "", None)
    shared = weigh_model(str(snapshot / "same.gguf"))
    assert shared.files == [str(snapshot / "same.gguf")]
    (blobs / "new.gguf").write_text("GGUF")
    inside = weigh_model(str(blobs / "new.gguf"))
    assert inside.obstacle is DeletionObstacle.NOT_A_MODEL_ALONE


@needs_links
def test_weigh_of_a_cached_file_beside_a_checkpoint_is_its_own(tmp_path: Path) -> None:
    repository = tmp_path / "models--org--name"
    snapshot = cached(repository, "aaaa", m="1234")
    write_checkpoint(snapshot)
    weight = weigh_model(str(snapshot / "m.gguf"))
    assert weight.files == [str(snapshot / "m.gguf"), str(repository / "blobs" / "1234")]


def test_size_of_a_file_that_vanishes_is_nothing(tmp_path: Path) -> None:
    assert weigh_files.size_of(tmp_path / "gone") == 0
