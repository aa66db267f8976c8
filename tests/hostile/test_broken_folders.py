"""Every known way of breaking a folder gives one plain sentence with a next step, at once."""

import os
import time
from pathlib import Path

import pytest

from runtime.inspect import folder
from runtime.inspect.folder import inspect_folder
from runtime.protocol.sentences import sentence
from tests.support.broken_folders import ALL, Broken
from tests.support.checkpoint_folders import write_checkpoint

MAX_S = 2.0
NEXT_STEPS = ("Choose", "Download", "Rename")


@pytest.mark.parametrize("broken", ALL, ids=lambda broken: broken.name)
def test_broken_folder_is_told_in_a_sentence(tmp_path: Path, broken: Broken) -> None:
    model = write_checkpoint(tmp_path / "m")
    broken.change(model)
    started_s = time.monotonic()
    report = inspect_folder(str(model)).report
    assert time.monotonic() - started_s < MAX_S
    codes = [problem.code for problem in report.problems]
    assert codes[:1] == ([] if broken.code is None else [broken.code])
    for problem in report.problems:
        text = sentence(problem)
        assert "?" not in text, "a place without a value"
        assert any(f"{step} " in text for step in NEXT_STEPS)
    first = "".join(sentence(problem) for problem in report.problems[:1])
    assert [words for words in broken.words if words not in first] == [], first


def test_broken_folders_of_all_kinds_at_once_are_told_in_few_sentences(tmp_path: Path) -> None:
    model = write_checkpoint(tmp_path / "m")
    for file in model.iterdir():
        file.write_bytes(b"<html>")
    report = inspect_folder(str(model)).report
    assert [Path(str(each.parameters["file"])).name for each in report.problems] == [
        "config.json",
        "model.safetensors.index.json",
        "tokenizer.json",
        "tokenizer_config.json",
    ]


@pytest.mark.parametrize("step", ["read_config", "read_shards", "tokenizer_problems"])
@pytest.mark.parametrize("is_gone", [True, False])
def test_folder_that_changes_while_it_is_read_gives_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, is_gone: bool
) -> None:
    model = write_checkpoint(tmp_path / "m")
    go_on = getattr(folder, step)

    def change_and_go_on(*arguments: object) -> object:
        for file in model.iterdir():
            if is_gone:
                file.unlink()
            else:
                os.truncate(file, file.stat().st_size // 2)
        return go_on(*arguments)

    monkeypatch.setattr(folder, step, change_and_go_on)
    report = inspect_folder(str(model)).report
    assert not report.is_runnable
    assert all("?" not in sentence(problem) for problem in report.problems)
