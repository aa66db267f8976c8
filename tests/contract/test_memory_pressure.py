"""Another program in the same memory group takes memory: the loaded model gives way, and no more.

Real processes under a real limit: what the model cannot give up in time gets somebody killed.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from runtime.protocol.messages import (
    AnyEvent,
    BudgetsAdapted,
    GenerationFinished,
    StartGeneration,
    TelemetrySampled,
    TokensGenerated,
    WatchTelemetry,
)
from runtime.protocol.plan import ReasonCode
from runtime.protocol.telemetry import NoteCode
from tests.support.engine_runs import GREEDY, user
from tests.support.memory_eater import MemoryEater
from tests.support.memory_group import MemoryGroup, memory_group
from tests.support.runtime_process import RuntimeProcess, running_runtime

MIB = 1024**2
CONTEXT_TOKENS = 512
LIMIT_BYTES = 1536 * MIB
BALLAST_BYTES = 900 * MIB
"""Taken before: a large group leaves much to others, and under the rest all experts have room."""
STEP_BYTES = 8 * MIB
MIN_ROOM_BYTES = 4 * MIB
"""The other program takes no step that would not fit: how fast this machine is decides nothing."""
MIN_GIVEN_BYTES = 40 * MIB
_SHORT = msgspec.structs.replace(GREEDY, max_tokens=8)


@pytest.fixture
def group(record_property: Callable[[str, object], None]) -> Iterator[MemoryGroup]:
    with memory_group(LIMIT_BYTES) as made:
        record_property("memory_group", "none" if made is None else made.name)
        if made is None:
            pytest.skip("no memory group may be made here")
        yield made


@pytest.fixture
def runtime(tmp_path: Path, group: MemoryGroup) -> Iterator[RuntimeProcess]:
    log = str(tmp_path / "runtime.log")
    command = [sys.executable, "-m", "tests.support.calm_runtime", "--log", log]
    with running_runtime(tmp_path, command=group.command(command)) as process:
        process.open()
        yield process


class Talk:
    """One question asked over and over, and what the runtime tells meanwhile."""

    def __init__(self, runtime: RuntimeProcess) -> None:
        self._runtime = runtime
        self._token_ids: list[int] = []
        self._next_id = 100
        self.answers: list[tuple[int, ...]] = []
        self.adapted: list[BudgetsAdapted] = []
        self.notes: list[NoteCode] = []
        self._ask()

    def hear(self) -> None:
        """Take the next event."""
        event: AnyEvent | None = self._runtime.next_event()
        assert event is not None, "the runtime is gone"
        if isinstance(event, TokensGenerated):
            self._token_ids += event.token_ids
        elif isinstance(event, GenerationFinished):
            self.answers.append(tuple(self._token_ids))
            self._token_ids = []
            self._ask()
        elif isinstance(event, BudgetsAdapted):
            self.adapted.append(event)
        elif isinstance(event, TelemetrySampled):
            self.notes += [note.code for note in event.sample.notes]

    def _ask(self) -> None:
        self._next_id += 1
        question = [user("What is a larder?")]
        self._runtime.send(
            StartGeneration(request_id=self._next_id, conversation=question, sampling=_SHORT)
        )


@pytest.mark.timeout(300)
@pytest.mark.skipif(sys.platform != "linux", reason="memory groups are of Linux")
def test_model_gives_back_what_another_program_takes_and_takes_it_again(
    runtime: RuntimeProcess, group: MemoryGroup, demo_folder: Path
) -> None:
    with MemoryEater(group.command) as eater:
        eater.take(BALLAST_BYTES)
        plan = runtime.plans(demo_folder, context_tokens=CONTEXT_TOKENS)[0]
        assert plan.ram_bytes == plan.all_ram_bytes
        runtime.load(plan)
        runtime.send(WatchTelemetry(request_id=4, interval_s=0.1))
        talk = Talk(runtime)
        while not talk.answers:
            talk.hear()
        assert not talk.adapted
        while (
            not talk.adapted or talk.adapted[-1].plan.ram_bytes > plan.ram_bytes - MIN_GIVEN_BYTES
        ):
            if group.room_bytes >= STEP_BYTES + MIN_ROOM_BYTES:
                eater.take(STEP_BYTES)
            talk.hear()
        assert {each.plan.reasons[0].code for each in talk.adapted} == {ReasonCode.RAM_GIVEN_BACK}
        assert plan.min_ram_bytes <= talk.adapted[-1].plan.ram_bytes
        assert _swapped_kib(runtime) == 0
    while talk.adapted[-1].plan.ram_bytes < plan.ram_bytes:
        talk.hear()
    num_answers = len(talk.answers)
    while len(talk.answers) < num_answers + 2 or NoteCode.MEMORY_TAKEN_AGAIN not in talk.notes:
        talk.hear()

    last = talk.adapted[-1]
    assert last.plan.reasons[0].code is ReasonCode.RAM_TAKEN_AGAIN
    assert last.plan.slots_per_layer == plan.slots_per_layer
    assert last.model.budget_bytes == plan.budgets.ram_bytes
    assert NoteCode.MEMORY_GIVEN_BACK in talk.notes
    assert NoteCode.BUDGET_CHANGED not in talk.notes
    assert len(set(talk.answers)) == 1
    assert len(talk.answers[0]) == _SHORT.max_tokens
    assert group.num_killed == 0


def _swapped_kib(runtime: RuntimeProcess) -> int:
    """Return what of the runtime lies in swap."""
    status = Path(f"/proc/{runtime.process.pid}/status").read_text(encoding="ascii")
    return int(status.partition("VmSwap:")[2].split()[0])
