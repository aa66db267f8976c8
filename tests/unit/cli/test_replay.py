import dataclasses
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


def test_replay_of_a_trace_with_a_hostile_name_steers_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = dataclasses.replace(sticky_trace(), name="\x1b]0;owned\x07")
    write_trace(tmp_path / "trace", named, 1000)

    assert main(["replay", str(tmp_path / "trace"), "--slots", "4", "--policy", "lru"]) == 0

    assert "\x1b" not in capsys.readouterr().out


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
        ["--slots", "1B"],
        ["--slots", "0.1MiB", "--record-bytes", "1000000"],
        ["--slots", "nanGiB"],
        ["--tokens", "0"],
        ["--record-bytes", "0"],
        ["--record-bytes", "-7"],
        ["--record-bytes", "1,2"],
        ["--record-bytes", "1,2,x"],
        ["--record-bytes", ",".join(["2654208"] * 60)],
        ["--record-bytes", ",".join(["2654208"] * 60) + ",x"],
        ["--record-bytes", "99999999999999999999"],
        ["--record-bytes", "9" * 5000],
        ["--record-bytes", "7," + "9" * 5000],
    ],
)
def test_replay_of_what_cannot_be_names_the_setting(
    folder: Path, asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(folder), *asked]) != 0

    name = asked[0].removeprefix("--")
    assert f"The setting {name} is" in capsys.readouterr().err


def test_replay_with_sizes_of_layers_and_experts_counts_their_bytes(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def rows(*asked: str) -> list[dict[str, int]]:
        assert main(["replay", str(folder), "--policy", "lru", *asked, "--json"]) == 0
        found: list[dict[str, int]] = json.loads(capsys.readouterr().out)["replays"]
        return found

    sizes = tmp_path / "sizes.json"
    sizes.write_text(json.dumps([7, 11, [13] * 16]))
    (plain,) = rows("--slots", "4", "--record-bytes", "1")
    (by_layer,) = rows("--slots", "4", "--record-bytes", "7,11,13")
    (from_file,) = rows("--slots", "4", "--record-bytes", str(sizes))
    (strided,) = rows("--slots", "4", "--record-bytes", str(sizes), "--layer-stride", "2")
    # 16 experts of 1 MiB in three layers: 12 MiB are four slots for each.
    (by_size,) = rows("--slots", "12.5MiB", "--record-bytes", str(1 << 20))

    assert by_layer["miss_bytes"] == from_file["miss_bytes"] > 7 * plain["misses"]
    assert from_file["hit_bytes"] + from_file["miss_bytes"] == 600 * (7 + 11 + 13)
    assert strided["hit_bytes"] + strided["miss_bytes"] == 600 * (7 + 13)
    assert by_size["total_slots"] == plain["total_slots"] == 12
    assert by_size["misses"] == plain["misses"]


@pytest.mark.parametrize("text", ["{}", "[1, 2.5, 3]", "[[1], 2"])
def test_replay_with_a_file_that_holds_no_sizes_names_it(
    folder: Path, tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = tmp_path / "sizes.json"
    sizes.write_text(text)

    assert main(["replay", str(folder), "--record-bytes", str(sizes)]) != 0
    assert "sizes.json cannot be read" in capsys.readouterr().err
    assert main(["replay", str(folder), "--record-bytes", str(tmp_path / "none.json")]) != 0
    assert "none.json cannot be read" in capsys.readouterr().err


def test_replay_of_no_trace_names_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(tmp_path)]) != 0

    assert "trace.json cannot be read" in capsys.readouterr().err


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pretended PC; the environment is as before when the test ends."""
    monkeypatch.setenv("LARDER_MACHINE", "")
    path = tmp_path / "profile.json"
    path.write_text(
        json.dumps(
            {
                "ram": {"total_gib": 8, "available_gib": 4, "read_gb_per_s": 10},
                "drive": {"read_gb_per_s": 1},
            }
        )
    )
    return path


def test_replay_on_a_machine_tells_tokens_per_second_of_each_policy(
    folder: Path, profile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--slots", "4", "--record-bytes", "1000000", "--machine", str(profile)]

    assert main(["replay", str(folder), *asked]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert main(["replay", str(folder), *asked, "--layer-bytes", "9000000", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["replays"]

    assert lines[5].split()[:3] == ["policy", "tokens/s", "waiting"]
    assert [line.split()[0] for line in lines[6:]] == ["lru", "expected-shared", "clairvoyant"]
    for row in rows:
        timing = row["timing"]
        assert timing["drive_bytes"] == row["miss_bytes"]
        # Each miss passes the drive at 1 GB/s.
        assert timing["seconds"] > row["miss_bytes"] / 1e9
        assert timing["tokens_per_s"] == pytest.approx(300 / timing["seconds"])


def test_replay_with_hints_takes_those_of_the_trace_or_guesses_from_the_layer_before(
    folder: Path, tmp_path: Path, profile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--slots", "4", "--machine", str(profile), "--hints", "--record-bytes", "100000"]
    trace = sticky_trace()
    write_trace(tmp_path / "hinted", dataclasses.replace(trace, hints=trace.ids), 1000)

    rows = []
    for place in (folder, tmp_path / "hinted"):
        assert main(["replay", str(place), *asked, "--policy", "lru", "--json"]) == 0
        rows += json.loads(capsys.readouterr().out)["replays"]
    guessed, right = (row["timing"]["hints"] for row in rows)
    assert main(["replay", str(folder), *asked, "--layer-stride", "2"]) != 0
    assert "The setting hints is layer stride 2" in capsys.readouterr().err

    assert right["wasted"] == 0
    assert right["useful"] + right["late"] > 0
    # The first layer is never guessed; of the others some guesses come true.
    assert 0 < guessed["useful"] + guessed["late"] < right["useful"] + right["late"]
    assert guessed["wasted"] > 0


@pytest.mark.parametrize("asked", [["--entry", "required"], ["--layer-bytes", "-1"]])
def test_replay_on_a_machine_with_a_setting_that_makes_no_sense_names_it(
    folder: Path, profile: Path, asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(folder), "--machine", str(profile), *asked]) != 0

    name = asked[0].removeprefix("--")
    assert f"The setting {name} is" in capsys.readouterr().err
