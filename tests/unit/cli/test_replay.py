import json
from pathlib import Path

import pytest

from runtime.cli.__main__ import main
from runtime.simulate.trace_files import write_trace
from tests.support.traces import sticky_trace


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_trace(tmp_path / "trace", sticky_trace(), 1000)
    return tmp_path / "trace"


def test_replay_of_a_trace_prints_a_line_for_each_policy(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(folder), "--slots", "4"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "sticky, 4 of 16 experts in 3 layers"
    assert [line.split()[0] for line in lines[2:]] == ["lru", "expected-shared", "clairvoyant"]


def test_replay_as_json_counts_every_need_and_its_bytes(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--policy", "slru", "--slots", "25%", "--slots", "50%", "--record-bytes", "7"]

    assert main(["replay", str(folder), str(folder), *asked, "--json"]) == 0

    rows = json.loads(capsys.readouterr().out)["replays"]
    assert len(rows) == 4
    for row in rows:
        assert row["hits"] + row["misses"] == 300 * 3 * 2
        assert row["miss_bytes"] == 7 * row["misses"]
    assert [row["total_slots"] for row in rows] == [12, 24, 12, 24]


def test_replay_of_a_doubtful_trace_says_so(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(folder), "--tokens", "50", "--slots", "4"]) == 0

    assert "Doubtful: 50 tokens are too few to judge." in capsys.readouterr().out


@pytest.mark.parametrize(
    "asked",
    [
        ["--slots", "0"],
        ["--slots", "17"],
        ["--slots", "many"],
        ["--slots", "inf%"],
        ["--slots", "1", "--entry", "required"],
        ["--policy", "best"],
        ["--tokens", "0"],
    ],
)
def test_replay_of_what_cannot_be_names_the_setting(
    folder: Path, asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(folder), *asked]) != 0

    name = asked[-2].removeprefix("--") if "--entry" not in asked else "slots"
    assert f"The setting {name} is" in capsys.readouterr().err


def test_replay_of_no_trace_names_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(tmp_path)]) != 0

    assert "trace.json cannot be read" in capsys.readouterr().err
