"""The verbs: what each does first, and that both doors to them open the same."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

import ahead
import environments
import interpreters
import jobs
import setup
import start
import torch_build
import verb
from console import ROOT


@pytest.fixture(name="taken")
def _taken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a verb does, in order, without doing it."""
    taken: list[str] = []

    def set_up(*, window: bool = True) -> Path:
        del window
        taken.append("set-up")
        return Path("python")

    def call(command: Sequence[str | Path], **_: object) -> int:
        taken.append(" ".join(Path(part).name for part in command[1:]))
        return 0

    monkeypatch.setattr(setup, "everything", set_up)
    monkeypatch.setattr(environments, "prepare", lambda _which: False)
    monkeypatch.delenv(jobs.STARTED, raising=False)
    monkeypatch.setattr(subprocess, "call", call)
    monkeypatch.setattr(start, "hand_over", call)
    monkeypatch.setattr(start, "has_display", lambda: True)
    monkeypatch.setattr("sys.argv", ["verb.py"])
    return taken


@pytest.mark.parametrize(
    ("name", "then"), [("setup", []), ("run", ["-m app"]), ("test", ["jobs.py"])]
)
def test_run_and_test_begin_with_what_setup_does(
    taken: list[str], name: str, then: list[str]
) -> None:
    assert verb.main([name]) == 0
    assert taken == ["set-up", *then]


def test_installer_is_made_after_set_up_which_builds_the_demo_model(
    taken: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch_build, "source_for", lambda *_: "")
    monkeypatch.setattr("sys.argv", ["verb.py", "installer", "linux"])
    assert verb.main(["installer"]) == 0
    assert taken == ["set-up", "-m installers linux --torch-source "]


@pytest.mark.parametrize(("name", "is_kept"), [("test", False), ("check", False), ("run", True)])
def test_bytecode_is_kept_where_many_programs_start_whatever_the_machine_says(
    taken: list[str], monkeypatch: pytest.MonkeyPatch, name: str, *, is_kept: bool
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert verb.main([name]) == 0
    assert taken
    assert ("PYTHONDONTWRITEBYTECODE" in os.environ) is is_kept


def test_check_in_a_run_of_everything_makes_what_the_tests_need_beside_it(
    taken: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(jobs.STARTED, "1")
    monkeypatch.setattr(ahead, "make_environments", lambda: taken.append("environments"))
    monkeypatch.setattr(ahead, "make_rest", lambda: taken.append("the rest"))
    assert verb.main(["check"]) == 0
    assert sorted(taken) == ["check.py", "environments", "the rest"]


def test_make_knows_every_verb_and_begins_with_run() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    (targets,) = re.findall(r"^([a-z ]+): python$", text, flags=re.MULTILINE)
    assert set(targets.split()) == set(verb.VERBS)
    assert ".DEFAULT_GOAL := run" in text


def test_make_for_windows_hands_any_verb_over_and_tries_the_same_pythons() -> None:
    text = (ROOT / "make.cmd").read_text(encoding="utf-8")
    assert 'set "VERB=%*"' in text
    assert 'if "%~1"=="" set "VERB=run"' in text
    starts = [line.strip() for line in text.splitlines() if ".ci\\verb.py" in line]
    assert starts
    assert all(line.endswith(" .ci\\verb.py %VERB%") for line in starts)
    (tried,) = re.findall(r"^for %%V in \(([\d. ]+)\) do", text, flags=re.MULTILINE)
    newest, oldest = interpreters.NEWEST, interpreters.OLDEST
    assert tried.split() == [f"3.{minor}" for minor in range(newest[1], oldest[1] - 1, -1)]
