"""Every licence that packages list comes with its text, also of what no package brings."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from app.state.licences import all_components, read_components
from installers import licences, qt_texts
from installers.description import RecipeError, read
from installers.licences import Component
from installers.windows import recipe

from console import ROOT

TEXTS = ROOT / "resources" / "licences"


def installed(name: str) -> importlib.metadata.Distribution:
    """A package of this environment."""
    try:
        return importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{name} is not installed here")


def words(text: str) -> str:
    """A text without the marks of comments and without how it is broken into lines."""
    return " ".join(word for word in text.split() if word not in ("*", "#"))


def make_package(packages: Path, name: str, licence: str) -> None:
    """A package that tells its licence and brings no text of it."""
    folder = packages / f"{name}-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Name: {name}\nVersion: 1.0\nLicense: {licence}\n")


def collected(tmp_path: Path) -> tuple[Component, ...]:
    """What the recipe lists of the packages, ourselves left out."""
    return tuple(licences.collect(read(), tmp_path / "packages", tmp_path / "licences")[1:])


def test_texts_of_what_is_linked_into_the_extension_are_those_it_is_built_with() -> None:
    nanobind = installed("nanobind")
    files = {str(file): Path(str(file.locate())) for file in nanobind.files or ()}
    (licence,) = (path for name, path in files.items() if name.endswith("licenses/LICENSE"))
    (header,) = (path for name, path in files.items() if name.endswith("tsl/robin_map.h"))
    assert licence.read_text("utf-8") == (TEXTS / "nanobind-LICENSE.txt").read_text("utf-8")
    robin_map = (TEXTS / "robin-map-LICENSE.txt").read_text("utf-8")
    assert words(robin_map) in words(header.read_text("utf-8"))


def test_text_of_the_cards_library_is_that_of_its_module() -> None:
    package = installed("nvidia-ml-py")
    (module,) = (file for file in package.files or () if file.name == "pynvml.py")
    kept = (TEXTS / "nvidia-ml-py-LICENSE.txt").read_text("utf-8")
    assert words(kept) in words(Path(str(module.locate())).read_text("utf-8"))


def test_whatever_runs_from_the_source_and_is_no_package_has_its_text() -> None:
    shown = {one.name: one for one in all_components()}
    for name in ("Inter", "nanobind", "robin-map", "SmolLM2-135M-Instruct"):
        assert shown[name].files
        assert all(Path(file).is_file() for file in shown[name].files)


def test_texts_of_what_is_no_package_lie_with_the_others(tmp_path: Path) -> None:
    make_package(tmp_path / "packages", "one", "Apache License 2.0")
    (one,) = collected(tmp_path)
    assert one.files == ("LICENSE-Larder.txt",)
    found = {path.name for path in (tmp_path / "licences").iterdir()}
    assert found == {
        "Inter-LICENSE.txt",
        "LICENSE-Larder.txt",
        "nanobind-LICENSE.txt",
        "robin-map-LICENSE.txt",
    }


def test_package_without_a_text_gets_the_one_that_is_kept_for_it(tmp_path: Path) -> None:
    make_package(tmp_path / "packages", "latex2mathml", "MIT")
    collected(tmp_path)
    listed = read_components(tmp_path / "packages" / licences.LIST)
    (text,) = listed[1].files
    assert "Ronie Martinez" in Path(text).read_text("utf-8")


def test_qt_gets_the_texts_that_its_licence_asks_for(tmp_path: Path) -> None:
    if not Path("/usr/share/common-licenses/LGPL-3").exists():
        pytest.skip("the common licences lie in a folder of Debian's")
    make_package(tmp_path / "packages", "shiboken6", "LGPL-3.0-only")
    (one,) = collected(tmp_path)
    assert one.files == ("Qt-NOTICE.txt", "LGPL-3.0.txt", "GPL-3.0.txt")


def test_package_whose_text_nobody_has_stops_the_recipe(tmp_path: Path) -> None:
    make_package(tmp_path / "packages", "unheard", "MIT")
    with pytest.raises(RecipeError, match=r"unheard \(MIT\) brings no text"):
        collected(tmp_path)


def test_run_time_library_inside_the_launchers_has_its_text(tmp_path: Path) -> None:
    if shutil.which("x86_64-w64-mingw32-gcc") is None:
        with pytest.raises(RecipeError, match="MinGW-w64's licence"):
            recipe.mingw_component(tmp_path)
        return
    one = recipe.mingw_component(tmp_path)
    text = (tmp_path / "licences" / one.files[0]).read_text("utf-8")
    assert "mingw-w64" in text.lower()


class TestTextsInsideQt:
    @staticmethod
    def apt(folder: Path, names: tuple[str, ...]) -> None:
        """An apt-get in a folder of programs that brings packages of these names."""
        if shutil.which("dpkg-deb") is None:
            pytest.skip("Debian's tools are not here")
        for name in names:
            root = folder / f"{name}-root"
            (root / "DEBIAN").mkdir(parents=True)
            (root / "DEBIAN" / "control").write_text(
                f"Package: {name}\nVersion: 6.4.2+dfsg-10\nArchitecture: amd64\n"
                "Maintainer: Nobody <nobody@example.org>\nDescription: made for a test\n"
            )
            text = root / "usr" / "share" / "doc" / name / "copyright"
            text.parent.mkdir(parents=True)
            text.write_text(f"what is inside {name}\n")
            command = ["dpkg-deb", "-b", str(root), str(folder)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        program = folder / "apt-get"
        program.write_text(f"#!/bin/sh\ncp '{folder}'/*.deb .\n")
        program.chmod(0o755)

    def test_are_taken_out_of_debians_packages(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.apt(tmp_path, ("libqt6core6", "libicu72"))
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        found = qt_texts.collect(tmp_path / "licences")
        assert {one.name for one in found} == {"projects inside Qt", "ICU inside Qt"}
        assert {one.version for one in found} == {"as Debian lists them for 6.4.2"}
        for one in found:
            text = tmp_path / "licences" / one.files[0]
            assert text.read_text() == f"what is inside {text.parent.name}\n"

    def test_that_apt_does_not_bring_stop_the_recipe(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.apt(tmp_path, ("libqt6core6",))
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        with pytest.raises(RecipeError, match="could not download libqt6core6 and libicu72"):
            qt_texts.collect(tmp_path / "licences")

    def test_are_told_to_be_missing_where_there_is_no_apt(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        assert qt_texts.collect(tmp_path / "licences") == []
        assert "copy the folders libqt6core6 and libicu72" in capsys.readouterr().out
