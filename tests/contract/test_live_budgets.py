"""The demo model under budgets that change all the time: memory follows, answers do not."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.hardware.profile import MACHINE_VARIABLE
from tests.support.runtime_process import ROOT

NUM_CHANGES = 200
TIMEOUT_S = 290.0
BUSY = pytest.mark.timeout(300)
"""A quarter of it on a quiet machine; processes beside this one take their share."""


@pytest.fixture
def card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine profile with one fast simulated card."""
    path = tmp_path / "machine.json"
    path.write_text(json.dumps({"devices": [{"total_gib": 1, "link_gb_per_s": 1000}]}))
    monkeypatch.setenv(MACHINE_VARIABLE, str(path))


def change(demo_folder: Path, *more: str) -> dict[str, object]:
    """Return what came of many changes, in a process of their own."""
    command = [sys.executable, "-m", "tests.support.live_changes", str(demo_folder)]
    ended = subprocess.run(
        [*command, str(NUM_CHANGES), *more],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    assert ended.returncode == 0, ended.stderr
    changes = json.loads(ended.stdout)
    assert isinstance(changes, dict)
    return changes


@BUSY
def test_live_budgets_resident_size_stays_within_the_budget_and_3_percent_through_200_changes(
    demo_folder: Path,
) -> None:
    changes = change(demo_folder)
    assert_followed(changes, max_ratio=1.03)
    assert changes["num_moved"] == 0


@BUSY
@pytest.mark.usefixtures("card")
def test_live_budgets_of_ram_and_a_card_resident_size_stays_within_a_tenth(
    demo_folder: Path,
) -> None:
    """The simulated card's memory is left out; while the dense part moves there are two homes."""
    changes = change(demo_folder, "card")
    assert_followed(changes)
    moved = changes["num_moved"]
    assert isinstance(moved, int)
    assert moved >= 4


def assert_followed(changes: dict[str, object], max_ratio: float = 1.1) -> None:
    """Assert that all changes were made, that memory followed, and that answers did not."""
    num_changed, num_samples = changes["num_changed"], changes["num_samples"]
    worst_ratio, distinct_answers = changes["worst_ratio"], changes["distinct_answers"]
    assert isinstance(num_changed, int)
    assert isinstance(num_samples, dict)
    assert isinstance(worst_ratio, dict)
    assert isinstance(distinct_answers, list)
    assert num_changed >= NUM_CHANGES
    assert changes["num_refused"] == 0
    assert num_samples["load"] > 10
    assert num_samples["answers"] > NUM_CHANGES
    assert max(worst_ratio.values()) <= max_ratio, worst_ratio
    assert len(distinct_answers) == 1
    assert len(distinct_answers[0]) == 24
