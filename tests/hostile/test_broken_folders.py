"""Every known way of breaking a folder gives one plain sentence with a next step, at once."""

import time
from pathlib import Path

import pytest

from runtime.inspect.folder import inspect_folder
from runtime.protocol.sentences import sentence
from tests.support.broken_folders import ALL, Broken
from tests.support.checkpoint_folders import write_checkpoint

MAX_S = 2.0
NEXT_STEPS = ("Choose", "Download", "Rename")


@pytest.mark.parametrize("broken", ALL, ids=lambda broken: broken.name)
def test_broken_folder_is_told_in_a_sentence(tmp_path: Path, broken: Broken) -> None:
    folder = write_checkpoint(tmp_path / "m")
    broken.change(folder)
    started_s = time.monotonic()
    report = inspect_folder(str(folder)).report
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
    folder = write_checkpoint(tmp_path / "m")
    for file in folder.iterdir():
        file.write_bytes(b"<html>")
    report = inspect_folder(str(folder)).report
    assert [Path(str(each.parameters["file"])).name for each in report.problems] == [
        "config.json",
        "model.safetensors.index.json",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
