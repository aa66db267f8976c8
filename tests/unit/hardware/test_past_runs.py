"""What is kept of earlier runs comes back, fades, and is nothing where a file cannot be right."""

import dataclasses
import json
from pathlib import Path

import pytest

from runtime.hardware.past_runs import MAX_RUNS, MAX_TOKENS, PastRuns
from runtime.protocol.values import WeightFormat
from runtime.spec.past import NO_PAST, PastRun, ReuseCounts, RoutingCounts

RUN = PastRun(
    expert_format=WeightFormat.BF16,
    device="cpu",
    held_ratio=0.5,
    kernels="native-avx2",
    num_tokens=100,
    modelled_tokens_per_s=10.0,
    predicted_tokens_per_s=11.0,
    measured_tokens_per_s=9.0,
)
REUSE = ReuseCounts((60, 30, 10), 50)


ROUTING = RoutingCounts((90, *[0] * 15, 6), (20, 30, 40), 50, 25)


def file_of(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


def test_runs_come_back_the_newest_of_them(tmp_path: Path) -> None:
    kept = PastRuns(tmp_path / "past")
    assert kept.read("a") == NO_PAST
    runs = [dataclasses.replace(RUN, num_tokens=number) for number in range(MAX_RUNS + 2)]
    for run in runs:
        kept.add("a", run, None)
    before = kept.add("a", None, REUSE)
    assert (before.runs, before.reuse) == (tuple(runs[2:]), None)
    past = PastRuns(tmp_path / "past").read("a")
    assert past.runs == tuple(runs[2:])
    assert past.reuse == REUSE
    assert kept.read("b") == NO_PAST


def test_counts_add_up_and_fade(tmp_path: Path) -> None:
    kept = PastRuns(tmp_path / "past")
    kept.add("a", None, REUSE)
    kept.add("a", RUN, REUSE)
    assert kept.read("a").reuse == ReuseCounts((120, 60, 20), 100)
    many = ReuseCounts((10 * MAX_TOKENS, 0, 0), 10 * MAX_TOKENS)
    kept.add("a", None, many)
    kept.add("a", None, REUSE)
    reuse = kept.read("a").reuse
    assert reuse is not None
    assert reuse.num_tokens == MAX_TOKENS + 50
    assert reuse.found[0] == pytest.approx(MAX_TOKENS + 60, rel=0.01)


def test_counts_of_another_number_of_experts_replace_what_was_there(tmp_path: Path) -> None:
    kept = PastRuns(tmp_path / "past")
    kept.add("a", None, REUSE)
    kept.add("a", None, ReuseCounts((1, 2), 3))
    assert kept.read("a").reuse == ReuseCounts((1, 2), 3)


def test_routing_is_kept_beside_the_rest_and_adds_up(tmp_path: Path) -> None:
    kept = PastRuns(tmp_path / "past")
    kept.add("a", RUN, REUSE)
    assert kept.read("a").routing is None
    kept.add("a", None, None, ROUTING)
    kept.add("a", RUN, None, ROUTING)
    past = kept.read("a")
    assert past.routing == RoutingCounts((180, *[0] * 15, 12), (40, 60, 80), 100, 50)
    assert (len(past.runs), past.reuse) == (2, REUSE)


def test_nothing_new_writes_nothing(tmp_path: Path) -> None:
    PastRuns(tmp_path / "past").add("a", None, None)
    assert not (tmp_path / "past").exists()


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("past", "runs", 0, "measured_tokens_per_s"), 0),
        (("past", "runs", 0, "modelled_tokens_per_s"), -1.0),
        (("past", "runs", 0, "held_ratio"), 1.5),
        (("past", "runs", 0, "device"), 7),
        (("past", "reuse", "found", 0), -1),
        (("past", "reuse", "found"), "x"),
        (("past", "routing", "uses", 16), -1),
        (("past", "routing", "uses"), [1]),
        (("past", "routing", "hits"), [1]),
        (("past", "routing", "hits", 2), 51),
        (("past", "routing", "num_tokens"), -1),
        (("fingerprint",), "b"),
        (("unknown",), 1),
    ],
)
def test_file_that_cannot_be_right_is_no_past(
    tmp_path: Path, where: tuple[str | int, ...], value: object
) -> None:
    kept = PastRuns(tmp_path / "past")
    kept.add("a", RUN, REUSE, ROUTING)
    document = json.loads(file_of(tmp_path / "past").read_text())
    at = document
    for step in where[:-1]:
        at = at[step]
    at[where[-1]] = value
    file_of(tmp_path / "past").write_text(json.dumps(document))
    assert kept.read("a") == NO_PAST


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"a":' * 100_000, b" " * (9 << 20)])
def test_damaged_file_is_no_past_and_is_written_anew(tmp_path: Path, damage: bytes) -> None:
    kept = PastRuns(tmp_path / "past")
    kept.add("a", RUN, REUSE)
    file_of(tmp_path / "past").write_bytes(damage)
    assert kept.read("a") == NO_PAST
    kept.add("a", RUN, None)
    assert kept.read("a").runs == (RUN,)
