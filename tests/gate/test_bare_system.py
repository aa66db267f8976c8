"""The bare system of `make deep`: what it borrows of this machine, and when it is called passed."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import bare_system


def _settings(folder: Path) -> str:
    """What pip would list, with a file, a folder and an index that exist, and one that does not."""
    (folder / "wheels").mkdir()
    (folder / "index" / "simple").mkdir(parents=True)
    (folder / "limits.txt").write_text("", encoding="utf-8")
    return "\n".join(
        (
            ":env:.src='/nowhere/at/all'",
            f"global.constraint='{folder}/limits.txt'",
            f"global.src='{folder}/wheels'",
            f"install.more-pages='file://{folder}/index/simple https://example.org/simple'",
        )
    )


def test_lent_things_are_what_pip_is_told_of_and_exists(tmp_path: Path) -> None:
    needs = bare_system.lent(_settings(tmp_path))
    assert needs.files == {tmp_path / "limits.txt"}
    assert needs.folders == {tmp_path / "index"}
    assert needs.variables["PIP_SRC"] == "/nowhere/at/all"
    assert needs.variables["PIP_MORE_PAGES"].endswith("https://example.org/simple")


def test_folders_are_lent_for_reading_only_and_no_other_variable_comes_along(
    tmp_path: Path,
) -> None:
    root = tmp_path / "root"
    needs = bare_system.lent(_settings(tmp_path))
    lines = [
        shlex.split(line) for line in bare_system.inside(root, needs, ("make", "run")).splitlines()
    ]
    there = str(root / (tmp_path / "index").relative_to("/"))
    assert ["mount", "--bind", str(tmp_path / "index"), there] in lines
    assert ["mount", "-o", "remount,ro,bind", there] in lines
    told = {word.partition("=")[0] for word in lines[-1] if "=" in word}
    assert told == {"HOME", "PATH", "LANG", *needs.variables}
    assert lines[-1][-2:] == ["make", "run"]


@pytest.mark.parametrize(
    ("status", "text", "good"),
    [
        (0, "larder: there is no screen here, so\nThe capital of France is Paris.\n", True),
        (1, "larder: there is no screen here, so\nThe capital of France is Paris.\n", False),
        (0, "larder: there is no screen here, so\nI do not know.\n", False),
        (0, "The capital of France is Paris.\n", False),
    ],
)
def test_run_is_answered_only_with_the_sentence_the_answer_and_success(
    status: int, text: str, *, good: bool
) -> None:
    assert bare_system.is_answered(status, text) is good


@pytest.mark.parametrize(
    ("status", "text", "good"),
    [
        (0, f"{bare_system.OPENED}\n", True),
        (1, f"{bare_system.OPENED}\n", False),
        (0, "nothing is seen\n", False),
        (1, "ImportError: libEGL.so.1: cannot open shared object file", False),
    ],
)
def test_window_is_opened_only_with_its_word_and_success(
    status: int, text: str, *, good: bool
) -> None:
    assert bare_system.is_opened(status, text) is good


def test_answer_is_what_stands_between_the_sentence_and_the_figures() -> None:
    text = "larder: there is no screen here, so (Ctrl+D leaves)\nParis.[3 tokens]\n\nmake: left\n"
    assert bare_system.answer_in(text) == "Paris."


def test_words_that_are_looked_for_are_those_that_make_run_says() -> None:
    said = (Path(bare_system.__file__).parent / "start.py").read_text(encoding="utf-8")
    assert bare_system.NO_SCREEN in said


def test_machine_without_the_means_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert "root" in str(bare_system.reason_against())
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda name: None if name == "debootstrap" else name)
    assert bare_system.reason_against() == "debootstrap is not installed here"
    assert bare_system.try_out()["verdict"] == "nothing to run"
