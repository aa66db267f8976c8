"""The recipes' pure parts: one description, what is cut, what a wheel may write, what is packed."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from pathlib import Path

import pytest

from app.state.folders import demo_folder
from app.state.licences import read_components
from installers import __main__ as recipes
from installers import (
    cuts,
    demo,
    description,
    icons,
    licences,
    pack,
    wheels,
)
from installers.linux import appimage, deb, folder, libraries, starter
from runtime.inspect.manifest import MANIFEST_NAME

import torch_build
from console import ROOT


def make_wheel(place: Path, name: str, files: dict[str, str]) -> Path:
    """A wheel with these files and nothing of its own."""
    path = place / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)
    return path


def test_description_is_what_the_project_file_says() -> None:
    found = description.read()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (found.name, found.version, found.licence) == (
        "larder",
        project["version"],
        "Apache-2.0",
    )
    assert found.icon.suffix == ".svg"
    assert not [word for word in found.requirements if word.startswith("torch")]
    assert [word for word in found.engine if word.startswith("torch")]


def test_project_file_without_a_title_is_refused_by_name(tmp_path: Path) -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    path = tmp_path / "pyproject.toml"
    path.write_text(text.replace('title = "Larder"', ""), encoding="utf-8")
    with pytest.raises(description.RecipeError, match=r"no 'title' in \[tool.larder\]"):
        description.read(path)


@pytest.mark.parametrize(
    ("path", "is_cut"),
    [
        ("torch/lib/libtorch_cpu.so", False),
        ("torch/include/ATen/ATen.h", True),
        ("torch/test/test_ops", True),
        ("torch/testing/_internal/logging_tensor.py", False),
        ("torch/testing/_internal/common_utils.py", True),
        ("torch/bin/protoc", True),
        ("torch/bin/torch_shm_manager", False),
        ("PySide6/QtWidgets.abi3.so", False),
        ("PySide6/QtQuick.abi3.so", True),
        ("PySide6/QtWidgets.pyi", True),
        ("PySide6/Qt/plugins/platforms/libqxcb.so", False),
        ("PySide6/Qt/plugins/platforms/libqeglfs.so", True),
        ("PySide6/Qt/plugins/sqldrivers/libqsqlite.so", True),
        ("PySide6/Qt/qml/QtQuick/qmldir", True),
        ("PySide6/designer", True),
        ("PySide6/__init__.py", False),
        ("app/main.py", False),
        ("resources/icons/larder.svg", False),
        ("resources/demo/build.py", True),
        ("resources/demo/larder-demo/config.json", False),
        ("numpy/_core/tests/test_multiarray.py", True),
    ],
)
def test_what_nothing_reaches_is_cut_and_all_else_stays(path: str, is_cut: bool) -> None:
    assert cuts.is_cut(path, "linux") is is_cut


def test_every_system_keeps_a_platform_and_the_icon_engine() -> None:
    for plugins in cuts.QT_PLUGINS.values():
        assert any(name.startswith("platforms/") for name in plugins)
        assert "iconengines/*" in plugins


def test_every_part_of_qt_that_the_window_imports_is_kept() -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "app").rglob("*.py"))
    found = set(re.findall(r"from PySide6\.(\w+) import", code))
    assert {"QtCore", "QtWidgets"} <= found <= set(cuts.QT_MODULES)


def test_cut_package_is_imported_nowhere_in_the_program() -> None:
    names = {name.replace("-", "_") for name in cuts.DISTRIBUTIONS}
    # Triton comes with the engine for cards; what imports it is loaded only where it is there.
    needing_triton = ROOT / "runtime" / "kernels" / "triton_matvec.py"
    code = "\n".join(
        path.read_text(encoding="utf-8")
        for top in ("app", "runtime")
        for path in (ROOT / top).rglob("*.py")
        if path != needing_triton
    )
    for name in names:
        assert f"import {name}\n" not in code
        assert f"from {name} import" not in code


def test_demo_model_is_laid_out_where_the_program_looks_and_is_never_missing(
    tmp_path: Path,
) -> None:
    source, packages = tmp_path / "larder-demo", tmp_path / "packages"
    source.mkdir()
    with pytest.raises(description.RecipeError, match="make setup builds it"):
        demo.add(source, packages)
    for name in ("config.json", "model.safetensors"):
        (source / name).write_text(name, encoding="utf-8")
    demo.add(source, packages)
    there = demo_folder({}, packages)
    assert {path.name: path.read_text("utf-8") for path in there.iterdir()} == {
        "config.json": "config.json",
        "model.safetensors": "model.safetensors",
    }


def test_wheel_is_laid_out_without_what_is_cut(tmp_path: Path) -> None:
    files = {
        "one/__init__.py": "x = 1\n", "one/__init__.pyi": "x: int\n",
        "one-1.0.data/purelib/one/two.py": "y = 2\n", "one-1.0.data/scripts/one": "#!python\n",
        "one-1.0.dist-info/METADATA": "Name: one\nVersion: 1.0\nLicense: MIT\n",
    }  # fmt: skip
    left_out = wheels.unpack([make_wheel(tmp_path, "one", files)], tmp_path / "there", "linux")
    laid = {path.relative_to(tmp_path / "there").as_posix()
            for path in (tmp_path / "there").rglob("*") if path.is_file()}  # fmt: skip
    assert laid == {"one/__init__.py", "one/two.py", "one-1.0.dist-info/METADATA"}
    assert left_out == {"one-1.0-py3-none-any.whl": len("x: int\n") + len("#!python\n")}


def test_packages_that_are_only_tried_are_kept_from_those_that_are_published(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert recipes._parse(["linux"]).out == ROOT / "dist"
    assert not recipes._parse(["linux", "--quick"]).out.is_relative_to(ROOT / "dist")
    with pytest.raises(SystemExit):
        recipes._parse(["windows", "--quick"])
    assert "--quick is for linux alone" in capsys.readouterr().err


def test_our_wheel_without_its_extension_is_refused(tmp_path: Path) -> None:
    files = {"runtime/native/loader.py": "", "runtime/native/_native.cpython-311.so": ""}
    whole = make_wheel(tmp_path, "larder", files)
    assert wheels.with_extension(whole) == whole
    with pytest.raises(description.RecipeError, match="no native extension"):
        wheels.with_extension(make_wheel(tmp_path, "pure", {"runtime/native/loader.py": ""}))


@pytest.mark.parametrize("name", ["../out.py", "/etc/out", "a/../../out", "C:/out"])
def test_wheel_that_writes_outside_is_refused(name: str) -> None:
    with pytest.raises(description.RecipeError, match="leads out of its folder"):
        wheels.place_of(name)


def test_two_wheels_with_different_contents_of_one_file_are_refused(tmp_path: Path) -> None:
    first = make_wheel(tmp_path, "one", {"same.py": "1\n"})
    second = make_wheel(tmp_path, "two", {"same.py": "2\n"})
    with pytest.raises(description.RecipeError, match=r"Two wheels hold same\.py"):
        wheels.unpack([first, second], tmp_path / "there", "linux")


@pytest.mark.parametrize(
    ("requirement", "holds"),
    [("a>=1", True), ("a; python_version < '3.12'", True), ("a; python_version >= '3.12'", False)],
)
def test_marker_is_asked_about_the_python_inside(requirement: str, holds: bool) -> None:
    assert wheels.applies(requirement, wheels.LINUX) is holds


def test_licences_are_listed_with_their_texts(tmp_path: Path) -> None:
    files = {
        "one-1.0.dist-info/METADATA": "Name: One_Two\nVersion: 1.0\n"
        "Classifier: License :: OSI Approved :: MIT License\n",
        "one-1.0.dist-info/licenses/LICENSE": "do what you like\n",
    }
    packages = tmp_path / "packages"
    wheels.unpack([make_wheel(tmp_path, "one", files)], packages, "linux")
    shown = licences.collect(description.read(), packages, tmp_path / "licences")
    listed = read_components(packages / licences.LIST)
    assert [one.name for one in listed] == [one.name for one in shown] == ["Larder", "one-two"]
    assert listed[1].licence == "MIT License"
    (text,) = listed[1].files
    assert Path(text).read_text() == "do what you like\n"


def test_package_that_tells_no_licence_stops_the_recipe(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    files = {"one-1.0.dist-info/METADATA": "Name: one\nVersion: 1.0\n"}
    wheels.unpack([make_wheel(tmp_path, "one", files)], packages, "linux")
    with pytest.raises(description.RecipeError, match=r"one 1\.0 tells no licence"):
        licences.collect(description.read(), packages, tmp_path / "licences")


@pytest.fixture(name="tree", scope="module")
def _tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small tree with a program, a link and a long name in three scripts."""
    tree = tmp_path_factory.mktemp("small") / "tree"
    (tree / ("folder " * 12 + "папка 文件夹")).mkdir(parents=True)
    (tree / ("folder " * 12 + "папка 文件夹") / ("long" * 20)).write_text("deep")
    (tree / "larder").write_text('#!/bin/sh\necho started "$@" from "$0" of "$APPIMAGE"\n')
    (tree / "larder").chmod(0o755)
    (tree / "larderctl").symlink_to("larder")
    (tree / "large").write_bytes(os.urandom(3_000_001))
    picture = tree / "share" / "icons" / "hicolor" / "256x256" / "apps" / "larder.png"
    picture.parent.mkdir(parents=True)
    picture.write_bytes(b"a picture")
    return tree


def test_packed_tree_has_the_same_bytes_whoever_packs_it(tree: Path, tmp_path: Path) -> None:
    pack.tar(tree, tmp_path / "first.tar", "top")
    (tree / "large").chmod(0o600)
    os.utime(tree / "larder", (1, 1))
    pack.tar(tree, tmp_path / "second.tar", "top")
    assert pack.checksum(tmp_path / "first.tar") == pack.checksum(tmp_path / "second.tar")
    with tarfile.open(tmp_path / "first.tar") as archive:
        assert {entry.uid for entry in archive} == {0}
        assert archive.getmember("top/larder").mode == 0o755
        assert archive.getmember("top/larderctl").linkname == "larder"


def test_checksums_are_in_the_form_that_sha256sum_reads(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"abc")
    text = pack.write_checksums(tmp_path).read_text()
    known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert text == f"{known}  a.bin\n"


def test_what_is_larger_than_promised_stops_the_recipe(tmp_path: Path) -> None:
    large = tmp_path / "large.AppImage"
    with large.open("wb") as file:
        file.truncate(pack.MAX_DOWNLOAD_BYTES + 1)
    with pytest.raises(description.RecipeError, match=r"large\.AppImage has 420 MB of 420"):
        pack.check_sizes(1, [large])
    with pytest.raises(description.RecipeError, match="1300 MB of 1200"):
        pack.check_sizes(1_300_000_000, [])


def test_icons_for_windows_and_macos_hold_the_drawn_pictures(tmp_path: Path) -> None:
    drawn = icons.draw(description.read().icon, tmp_path)
    sizes = {size: struct.unpack(">II", path.read_bytes()[16:24]) for size, path in drawn.items()}
    assert sizes == {size: (size, size) for size in icons.PNG_SIZES}
    windows, macos = icons.ico(drawn), icons.icns(drawn)
    number, offset = struct.unpack("<H", windows[4:6])[0], struct.unpack("<I", windows[18:22])[0]
    assert windows[offset : offset + 8] == b"\x89PNG\r\n\x1a\n"
    assert offset == 6 + 16 * number
    assert struct.unpack(">I", macos[4:8])[0] == len(macos)


def test_pip_that_serves_the_processors_torch_needs_no_other_source(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(torch_build, "_served", lambda _python, _constraints: "cuda")
    assert "cpu" in torch_build.source_for("cpu", tmp_path, tmp_path)
    assert torch_build.source_for("cuda", tmp_path, tmp_path) == ""


@pytest.fixture(name="built", scope="module")
def _built(tree: Path) -> Path:
    """The AppImage of the small tree."""
    if shutil.which("mksquashfs") is None or shutil.which("gcc") is None:
        pytest.skip("squashfs-tools or gcc is not installed here")
    pack.plain_modes(tree)
    single = tree.with_name("один файл 文件.AppImage")
    try:
        appimage.build(description.read(), tree, single)
    except description.RecipeError as error:
        if "libsquashfuse-dev" not in str(error):
            raise
        pytest.skip("what the start program is linked from is not installed here")
    return single


def can_mount() -> bool:
    """Whether this user may mount by FUSE."""
    return os.access("/dev/fuse", os.R_OK | os.W_OK) and shutil.which("fusermount3") is not None


@pytest.mark.skipif(sys.platform != "linux", reason="made and started on Linux alone")
class TestAppImage:
    @pytest.fixture(name="single")
    def _single(self, built: Path, tmp_path: Path) -> Path:
        """A copy of it."""
        return Path(shutil.copy2(built, tmp_path / built.name))

    @staticmethod
    def start(
        single: Path, cache: Path, *words: str, is_unpacked: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Start it without a screen."""
        env = {"XDG_CACHE_HOME": str(cache), "PATH": os.environ["PATH"], "TMPDIR": str(cache)}
        env |= {"APPIMAGE_EXTRACT_AND_RUN": "1"} if is_unpacked else {}
        return subprocess.run(
            [single, *words], env=env, cwd=single.parent, capture_output=True, text=True,
            timeout=100, check=False,
        )  # fmt: skip

    @staticmethod
    def compare(unpacked: Path, tree: Path) -> None:
        """Assert that a tree came out as it went in."""
        for path in tree.rglob("*"):
            there = unpacked / path.relative_to(tree)
            if path.is_file():
                assert there.read_bytes() == path.read_bytes()
                assert there.stat().st_mode == path.stat().st_mode
        assert (unpacked / "larderctl").readlink() == Path("larder")
        assert (unpacked / "AppRun").readlink() == Path("larder")

    def test_is_of_the_second_type_with_its_image_where_the_program_ends(
        self, single: Path, tmp_path: Path
    ) -> None:
        content = single.read_bytes()
        assert content[8:11] == starter.MARK
        end = starter.elf_size(content)
        assert content[end : end + 4] == b"hsqs"
        told = self.start(single, tmp_path, "--appimage-offset")
        assert int(told.stdout) == end

    def test_without_fuse_unpacks_once_starts_and_tidies_up(
        self, single: Path, tree: Path, tmp_path: Path
    ) -> None:
        place = tmp_path / "мой cache" / "larder" / "program"
        (place / "0.0.1-old").mkdir(parents=True)
        first = self.start(single, tmp_path / "мой cache", "a b")
        assert first.stdout.startswith("started a b from ")
        assert first.stdout.endswith(f" of {single}\n")
        assert "unpacking" in first.stderr
        (unpacked,) = place.iterdir()
        self.compare(unpacked, tree)
        second = self.start(single, tmp_path / "мой cache")
        assert second.stdout.startswith("started")
        assert second.stderr == ""

    def test_with_fuse_starts_from_a_mount_that_goes_with_the_program(
        self, single: Path, tmp_path: Path
    ) -> None:
        if not can_mount():
            pytest.skip("FUSE cannot be used here")
        done = self.start(single, tmp_path / "cache", "a", is_unpacked=False)
        assert done.stderr == ""
        assert done.stdout.startswith("started a from /tmp/.mount_larder")
        assert not (tmp_path / "cache").exists()
        mount = Path(done.stdout.split()[3]).parent
        until = time.monotonic() + 60
        while mount.exists() and time.monotonic() < until:
            time.sleep(0.05)
        assert not mount.exists()

    def test_is_unpacked_by_hand_where_that_is_asked_for(
        self, single: Path, tree: Path, tmp_path: Path
    ) -> None:
        assert self.start(single, tmp_path, "--appimage-extract").stdout == "squashfs-root\n"
        self.compare(tmp_path / "squashfs-root", tree)
        assert (tmp_path / "squashfs-root" / ".DirIcon").read_bytes() == b"a picture"

    def test_damaged_file_is_told_and_leaves_nothing(self, single: Path, tmp_path: Path) -> None:
        content = bytearray(single.read_bytes())
        middle = len(content) - 1_000_000
        content[middle : middle + 100] = bytes(100)
        single.write_bytes(content)
        done = self.start(single, tmp_path / "cache")
        assert done.returncode == 1
        assert "this file is damaged" in done.stderr
        assert list((tmp_path / "cache" / "larder" / "program").iterdir()) == []

    def test_half_a_download_is_told(self, single: Path, tmp_path: Path) -> None:
        single.write_bytes(single.read_bytes()[:-1000])
        done = self.start(single, tmp_path / "cache")
        assert done.returncode == 1
        assert "this file is not whole: download it again" in done.stderr


def test_desktop_entry_starts_the_program_without_a_terminal() -> None:
    text = folder.desktop_entry(description.read(), "/usr/bin/larder")
    lines = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    assert lines["Exec"] == "/usr/bin/larder %f"
    assert lines["Terminal"] == "false"
    assert "{" not in text


def test_desktop_opens_a_prepared_copy_by_its_manifest(tmp_path: Path) -> None:
    """The desktop's rules, as Qt reads them, give the file the type that the entry takes."""
    made = description.read()
    packages = tmp_path / "share" / "mime" / "packages"
    packages.mkdir(parents=True)
    (packages / "larder.xml").write_text(folder.mime_types(made), encoding="utf-8")
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in (MANIFEST_NAME, "config.json"):
        (copy / name).write_text("{}", encoding="utf-8")
    code = (
        "import sys; from PySide6.QtCore import QMimeDatabase\n"
        "for path in sys.argv[1:]: print(QMimeDatabase().mimeTypeForFile(path).name())"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, str(copy / MANIFEST_NAME), str(copy / "config.json")],
        env={**os.environ, "XDG_DATA_DIRS": f"{tmp_path}/share", "XDG_DATA_HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.split()
    entry = folder.desktop_entry(made, "larder")
    assert f"MimeType={found[0]};" in entry
    assert found[1] == "application/json"


def test_package_names_the_systems_packages_of_what_is_asked_for() -> None:
    asked = {"libGL.so.1": "libQt6Gui.so.6", "libc.so.6": "larder", "libm.so.6": "larder"}
    assert libraries.packages_for(asked) == ["libgl1"]
    assert "{depends}" in deb._CONTROL
