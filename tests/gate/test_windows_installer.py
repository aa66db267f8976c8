"""The recipe for Windows: what it reads of native files, and that nothing inside goes unnoticed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pip
import pytest

from installers.description import RecipeError
from installers.windows import portable, recipe

_PROGRAMS = Path(pip.__file__).parent / "_vendor" / "distlib"


def test_headers_of_a_real_program_name_its_processor_and_its_libraries() -> None:
    headers = portable.Headers(_PROGRAMS / "t64.exe")
    assert headers.machine == portable.AMD64
    assert "kernel32.dll" in [name.lower() for name in headers.imports]


def test_tree_of_whole_programs_for_this_processor_passes(tmp_path: Path) -> None:
    for name in ("t64.exe", "w64.exe"):
        shutil.copy(_PROGRAMS / name, tmp_path / name)
    assert portable.check(tmp_path) == 2


def test_program_for_another_processor_is_refused(tmp_path: Path) -> None:
    shutil.copy(_PROGRAMS / "t32.exe", tmp_path / "larder.exe")
    with pytest.raises(RecipeError, match=r"larder\.exe is for another processor \(0x14c\)"):
        portable.check(tmp_path)


@pytest.mark.parametrize("length", [0, 40, 100, 500])
def test_half_a_program_is_refused(tmp_path: Path, length: int) -> None:
    content = (_PROGRAMS / "t64.exe").read_bytes()[:length]
    (tmp_path / "half.dll").write_bytes(content)
    with pytest.raises(RecipeError, match=r"half\.dll is no whole program"):
        portable.check(tmp_path)


def test_library_that_is_nowhere_is_named_with_who_asks(tmp_path: Path) -> None:
    content = (_PROGRAMS / "t64.exe").read_bytes()
    named = content.replace(b"KERNEL32.dll", b"LARDER99.dll")
    assert named != content
    (tmp_path / "one.exe").write_bytes(named)
    with pytest.raises(RecipeError, match=r"LARDER99\.dll \(for one\.exe\)"):
        portable.check(tmp_path)
    (tmp_path / "larder99.dll").write_bytes(content)
    assert portable.check(tmp_path) == 2


def test_every_file_is_compared_with_what_was_written_down(tmp_path: Path) -> None:
    tree, installed = tmp_path / "tree", tmp_path / "installed"
    (tree / "python").mkdir(parents=True)
    (tree / "python" / "папка.py").write_text("x = 1\n", encoding="utf-8")
    (tree / "larder.exe").write_bytes(b"MZ")
    recipe.write_content(tree)
    shutil.copytree(tree, installed)
    (installed / "uninstall.exe").write_bytes(b"MZ")
    assert recipe.differences(tree, installed) == []
    (installed / "python" / "папка.py").write_text("x = 2\n", encoding="utf-8")
    (installed / "larder.exe").unlink()
    (installed / "more.dll").write_bytes(b"")
    assert recipe.differences(tree, installed) == ["larder.exe", "more.dll", "python/папка.py"]


def test_names_that_differ_in_capitals_alone_are_refused(tmp_path: Path) -> None:
    (tmp_path / "VCRUNTIME140.dll").write_bytes(b"MZ")
    (tmp_path / "vcruntime140.dll").write_bytes(b"MZ")
    if len(list(tmp_path.iterdir())) == 1:
        pytest.skip("this drive cannot hold both either")
    with pytest.raises(RecipeError, match=r"vcruntime140\.dll is there twice"):
        recipe.write_content(tmp_path)


def test_python_that_is_none_for_windows_is_refused(tmp_path: Path) -> None:
    (tmp_path / "python").mkdir()
    with pytest.raises(RecipeError, match=r"has no python\.exe, python3\.dll"):
        recipe._lay_python(tmp_path / "python", tmp_path / "target")
    with pytest.raises(RecipeError, match="neither a folder nor a zip file"):
        recipe._lay_python(tmp_path / "missing.zip", tmp_path / "target")
