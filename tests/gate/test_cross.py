"""The extension for other systems: what is handed to the compiler and how its result is read."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pip
import pytest

from installers import cross
from installers.description import RecipeError

WINDOWS, MACOS = cross.TARGETS
_PROGRAMS = Path(pip.__file__).parent / "_vendor" / "distlib"
_BEGIN = b"\0PyInit__native\0"


def test_names_are_those_that_python_exports() -> None:
    if shutil.which("nm") is None:
        pytest.skip("binutils is not installed here")
    names = dict(cross.exported())
    assert names["PyList_New"] is True
    assert names["PyExc_TypeError"] is False
    assert len(names) > 1000


@pytest.mark.parametrize(("target", "long_bytes"), [(WINDOWS, 4), (MACOS, 8)])
def test_headers_say_how_wide_numbers_are_there(
    target: cross.Target, long_bytes: int, tmp_path: Path
) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "left.h").write_text("of a build before")
    place = cross.lay_headers(target, tmp_path / "include")
    configured = (place / "pyconfig.h").read_text()
    assert f"#define SIZEOF_LONG {long_bytes}\n" in configured
    assert ("MS_WINDOWS" in configured) is (target is WINDOWS)
    assert (place / "Python.h").is_file()
    assert not (place / "left.h").exists()


class TestWhatCameOut:
    @pytest.fixture(name="file")
    def _file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A file for Windows that asks for kernel32.dll and for python9.dll."""
        monkeypatch.setattr(cross, "_TAG", "9")
        content = (_PROGRAMS / "t64.exe").read_bytes().replace(b"SHLWAPI.dll", b"python9.dll")
        file = tmp_path / "one.pyd"
        file.write_bytes(content + _BEGIN)
        return file

    def test_is_good_where_it_asks_for_python_and_windows_alone(self, file: Path) -> None:
        assert cross.asked_for(WINDOWS, file) == ["KERNEL32.dll", "python9.dll"]

    def test_is_refused_where_it_asks_for_a_stranger(self, file: Path) -> None:
        file.write_bytes(file.read_bytes().replace(b"KERNEL32.dll", b"libgcc_9.dll"))
        with pytest.raises(RecipeError, match=r"asks for libgcc_9\.dll, python9\.dll"):
            cross.asked_for(WINDOWS, file)

    def test_is_refused_where_it_asks_for_no_python(self, file: Path) -> None:
        file.write_bytes((_PROGRAMS / "t64.exe").read_bytes() + _BEGIN)
        with pytest.raises(RecipeError, match=r"should ask for python9\.dll"):
            cross.asked_for(WINDOWS, file)

    def test_is_refused_where_python_could_not_begin(self, file: Path) -> None:
        file.write_bytes(file.read_bytes().removesuffix(_BEGIN))
        with pytest.raises(RecipeError, match="exports nothing that Python could begin with"):
            cross.asked_for(WINDOWS, file)

    def test_is_refused_for_another_processor(self, file: Path) -> None:
        file.write_bytes((_PROGRAMS / "t32.exe").read_bytes() + _BEGIN)
        with pytest.raises(RecipeError, match="is for processor 0x14c"):
            cross.asked_for(WINDOWS, file)


def test_words_that_the_linker_does_not_know_are_told_in_others(tmp_path: Path) -> None:
    zig = tmp_path / "zig"
    zig.write_text('#!/bin/sh\necho "$@"\n')
    zig.chmod(0o755)
    program = cross._wrapped(zig, "c++", tmp_path / "compiler", MACOS.rewritten)
    words = [str(program), "-O3", "-bundle", "-Wl,@a list.sym", "-o", "a b"]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert told == "c++ -O3 -dynamiclib -Wl,-undefined,dynamic_lookup -o a b\n"


def test_compiler_that_says_no_is_told_with_its_words(tmp_path: Path) -> None:
    zig = tmp_path / "zig"
    zig.write_text("#!/bin/sh\necho nothing works here >&2\nexit 1\n")
    zig.chmod(0o755)
    with pytest.raises(RecipeError, match=r"does not compile for macos: .*nothing works here"):
        cross.build(MACOS, zig, tmp_path / "place")
