"""What the About page is told of what came along."""

import json
from pathlib import Path

from app.state.licences import read_components


def test_texts_are_found_from_where_the_list_lies(tmp_path: Path) -> None:
    path = tmp_path / "packages" / "resources" / "licences.json"
    path.parent.mkdir(parents=True)
    files = ["../../licences/one/LICENSE"]
    path.write_text(
        json.dumps([{"name": "one", "version": "1.0", "licence": "MIT", "files": files}])
    )
    (one,) = read_components(path)
    assert (one.name, one.version, one.licence) == ("one", "1.0", "MIT")
    assert one.files == (str((tmp_path / "licences" / "one" / "LICENSE").resolve()),)


def test_program_run_from_its_source_lists_nothing(tmp_path: Path) -> None:
    assert read_components() == ()
    assert read_components(tmp_path / "none.json") == ()


def test_list_that_cannot_be_read_is_as_good_as_none(tmp_path: Path) -> None:
    path = tmp_path / "licences.json"
    path.write_text('[{"name": 3}]')
    assert read_components(path) == ()
