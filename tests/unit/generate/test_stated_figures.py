"""What a person states of the PC, in the engine: energy of an answer, readers of the drive."""

from collections.abc import Callable
from pathlib import Path

import pytest

from runtime.engine.base import CancelToken
from runtime.generate.loading import Tools, load_parts
from runtime.hardware.profile import MACHINE_VARIABLE
from runtime.kernels.dispatch import choose_kernels
from tests.support.engine_runs import answer, user
from tests.support.hand_made_plans import exact_plan
from tests.unit.generate.conftest import OpenEngine

State = Callable[[str], None]


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> State:
    """States figures as a machine profile, whose text is given."""

    def write(text: str) -> None:
        path = tmp_path / "machine.json"
        path.write_text(text)
        monkeypatch.setenv(MACHINE_VARIABLE, str(path))

    return write


def test_answer_takes_the_stated_power_of_the_pc_for_its_time(
    open_engine: OpenEngine, qwen2_folder: Path, state: State
) -> None:
    state('{"pc_watts": 7}')
    stats = answer(open_engine(exact_plan(qwen2_folder)), [user("What?")]).stats
    (time_part,) = [part for part in stats.energy.parts if part.source == "assumed-watts"]
    total_s = sum(stats.seconds.values())
    # At most seven watts: less stands for the rest beside a measured processor.
    assert time_part.joules == pytest.approx(7 * total_s, rel=0.05)


def test_answer_counts_no_counter_that_a_person_leaves_out(
    open_engine: OpenEngine, qwen2_folder: Path, state: State
) -> None:
    state('{"pc_watts": 130, "energy_sources": "none"}')
    stats = answer(open_engine(exact_plan(qwen2_folder)), [user("What?")]).stats
    sources = {part.source for part in stats.energy.parts if not part.source.startswith("nvml:")}
    assert not any(source.startswith("rapl:") or source == "battery" for source in sources)
    (time_part,) = [part for part in stats.energy.parts if part.source == "assumed-watts"]
    total_s = sum(stats.seconds.values())
    assert time_part.joules == pytest.approx(130 * total_s, rel=0.05)


def test_stated_readers_read_what_an_answer_waits_for(qwen2_folder: Path, state: State) -> None:
    state('{"drive": {"num_readers": 3}}')
    tools = Tools.alone(choose_kernels())
    parts = load_parts(exact_plan(qwen2_folder), tools, lambda *_: None, CancelToken())
    try:
        assert parts.experts._ram._lanes.num_readers == 3
    finally:
        parts.close()
