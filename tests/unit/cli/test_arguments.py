"""Wrong arguments, told in words and not in the names of our own types."""

import json
from pathlib import Path

import pytest

from runtime.cli.__main__ import main

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["plan", "x", "--ram", "much"], "argument --ram: 'much' is not a number of GiB"),
        (["plan", "x", "--vram=-1"], "argument --vram: '-1' is not a number of GiB"),
        (["plan", "x", "--context", "1.5"], "argument --context: '1.5' is not a whole number"),
        (["chat", "x", "--top-k=-2"], "argument --top-k: '-2' is below 0"),
        (["chat", "x", "--seed", "lucky"], "argument --seed: 'lucky' is not a whole number"),
        (["chat", "x", "--top-p", "most"], "argument --top-p: 'most' is not a number"),
        (
            ["plan", "x", "--engine", "steam"],
            "argument --engine: 'steam' is none of tiered, scripted",
        ),
        (["inspect", ""], "argument FOLDER: a folder is needed"),
        (["prepare", "x", "--out", ""], "argument --out: a folder is needed"),
    ],
)
def test_argument_that_is_wrong_is_told_in_words(
    arguments: list[str], told: str, capsys: Capture
) -> None:
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == 2
    assert told in capsys.readouterr().err


def test_argument_that_is_wrong_is_a_document_too_where_one_is_asked_for(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["plan", "x", "--ram", "much", "--json"])
    assert raised.value.code == 2
    output = capsys.readouterr()
    error = json.loads(output.out)["error"]
    assert (error["code"], error["severity"]) == ("setting_invalid", "request")
    assert "'much' is not a number of GiB" in error["sentence"]
    assert output.err.startswith("usage: larderctl plan ")


def test_prepare_into_a_file_says_that_it_is_one(
    tmp_path: Path, demo_folder: Path, capsys: Capture
) -> None:
    file = tmp_path / "file"
    file.touch()
    assert main(["prepare", str(demo_folder), "--out", str(file)]) == 2
    assert "it is a file and not a folder. Choose another folder." in capsys.readouterr().err
