"""What the About page is told of what came along."""

import importlib.metadata
import json
from pathlib import Path

import pytest

from app.state import licences
from app.state.licences import (
    Component,
    all_components,
    installed_components,
    licence_text,
    read_components,
    version,
)

NEEDS = (
    "Requires-Dist: made_up\nRequires-Dist: not_there>=1\n"
    'Requires-Dist: some_tool; extra == "test"\n'
)


def package(place: Path, name: str, text: str) -> Path:
    """Lay out an installed package as far as its metadata; return its folder."""
    folder = place / f"{name}-1.0.dist-info"
    (folder / "licenses").mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{text}")
    (folder / "licenses" / "COPYING").write_text(f"You may copy {name}.")
    own = f"{name}-1.0.dist-info"
    (folder / "RECORD").write_text(
        f"{own}/METADATA,,\n{own}/licenses/COPYING,,\n{name}/LICENSE,,\n"
    )
    return folder


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


def test_source_lists_packages_and_what_they_need_and_none_of_the_tools() -> None:
    found = {component.name.lower(): component for component in all_components()}
    for name in ("msgspec", "pyside6_essentials", "numpy", "shiboken6"):
        assert found[name].version == importlib.metadata.version(name)
        assert found[name].licence
    assert {"larder", "python", "inter", "smollm2-135m-instruct", "nanobind"} <= set(found)
    assert not {"pytest", "ruff", "mypy"} & set(found)
    assert all_components()[0].name == "Larder"
    assert "Apache License" in licence_text(found["smollm2-135m-instruct"])
    assert "Ronie Martinez" in licence_text(found["latex2mathml"])
    assert "Wenzel Jakob" in licence_text(found["nanobind"])
    assert "Permission is hereby granted" in licence_text(found["robin-map"])


def test_package_lists_what_came_along_and_what_is_no_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Component(name="Larder", version="1", licence="Apache-2.0", files=("/l/LICENSE",))
    one = Component(name="one", version="1", licence="MIT", files=())
    monkeypatch.setattr(licences, "read_components", lambda: (own, one))
    found = all_components()
    assert [each.name for each in found] == [
        "Larder", "Inter", "nanobind", "one", "robin-map", "SmolLM2-135M-Instruct",
    ]  # fmt: skip
    assert found[-1].files == own.files


def test_program_that_is_not_installed_names_no_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert installed_components("no-such-program-anywhere") == []
    monkeypatch.setattr(licences, "PROGRAM", "no-such-program-anywhere")
    assert version() == ""


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("License-Expression: MIT\n", "MIT"),
        ("Classifier: License :: OSI Approved :: BSD License\n", "BSD License"),
        ("License: Some licence\n", "Some licence"),
        ("", ""),
    ],
)
def test_licence_and_its_text_are_found_where_a_package_has_them(
    head: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package(tmp_path, "larder_like", NEEDS)
    # Packages that need each other end too.
    folder = package(tmp_path, "made_up", f"Requires-Dist: deeper\n{head}")
    package(tmp_path, "deeper", 'Requires-Dist: made_up\nRequires-Dist: x; extra == "more"\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    deeper, part = installed_components("larder_like")
    assert (part.name, part.version, part.licence) == ("made_up", "1.0", expected)
    assert part.files == (str(folder / "licenses" / "COPYING"),)
    assert "You may copy made_up." in licence_text(part)
    assert deeper.name == "deeper"


def test_text_that_cannot_be_read_says_where_it_should_be(tmp_path: Path) -> None:
    gone = str(tmp_path / "LICENSE")
    one = Component(name="one", version="", licence="MIT", files=(gone,))
    text = licence_text(one)
    assert text.startswith("one (MIT)\n")
    assert f"{gone}: No such file" in text
