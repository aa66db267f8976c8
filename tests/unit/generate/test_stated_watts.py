"""The power of the PC that a person states, in the energy of an answer."""

from pathlib import Path

import pytest

from runtime.hardware.profile import MACHINE_VARIABLE
from tests.support.engine_runs import answer, user
from tests.support.hand_made_plans import exact_plan
from tests.unit.generate.conftest import OpenEngine


def test_answer_takes_the_stated_power_of_the_pc_for_its_time(
    open_engine: OpenEngine, qwen2_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "machine.json"
    path.write_text('{"pc_watts": 7}')
    monkeypatch.setenv(MACHINE_VARIABLE, str(path))
    stats = answer(open_engine(exact_plan(qwen2_folder)), [user("What?")]).stats
    (time_part,) = [part for part in stats.energy.parts if part.source == "assumed-watts"]
    total_s = sum(stats.seconds.values())
    # At most seven watts: less stands for the rest beside a measured processor.
    assert time_part.joules == pytest.approx(7 * total_s, rel=0.05)
