"""The terminal's end of a service: what is told between the events of a command."""

from pathlib import Path

from runtime.cli.client import Client
from runtime.engine.scripted import ScriptedEngine
from runtime.protocol.messages import (
    BudgetsAdapted,
    DescribeMachine,
    LoadModel,
    MachineDescribed,
    ModelLoaded,
)
from runtime.service.requests import Sink
from runtime.service.scripted import ScriptedPlanning
from runtime.service.service import Service
from tests.support.scripted import FAST, some_plan


def test_memory_that_was_given_back_is_heard_of_between_the_events_of_a_command(
    tmp_path: Path,
) -> None:
    sinks: list[Sink] = []
    planning = ScriptedPlanning(FAST)

    def make(sink: Sink) -> Service:
        sinks.append(sink)
        return Service(lambda: ScriptedEngine(FAST), sink, planning, planning.prepare)

    heard: list[BudgetsAdapted] = []
    with Client(make, heard.append) as client:
        plan = some_plan(tmp_path)
        loaded = client.ask(LoadModel(request_id=client.new_id(), plan=plan), ModelLoaded)
        event = BudgetsAdapted(model=loaded.model, plan=plan)
        sinks[0](event)
        client.ask(DescribeMachine(request_id=client.new_id()), MachineDescribed)
    assert heard == [event]
