"""Any sequence of commands gets exactly one closing event each."""

from collections.abc import Callable
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import pytest

from runtime.engine.script import Fault, FaultKind, FaultPlace, Pieces, Script
from runtime.protocol.messages import (
    AnyCommand,
    CancelRequest,
    CountTokens,
    DescribeMachine,
    FindModels,
    InspectModel,
    LoadModel,
    OpenSession,
    PlanModel,
    PrepareModel,
    Reply,
    RuntimeStopped,
    SetBudgets,
    StopRuntime,
    WatchTelemetry,
    WeighModel,
)
from runtime.protocol.values import Budgets, WeightFormat
from tests.support.scripted import FAST, ScriptedService, ask, closing_events, some_plan

FOLDER = Path(__file__).parent
MISSING = FOLDER / "missing"
Make = Callable[[int], AnyCommand]


def load(request_id: int) -> AnyCommand:
    return LoadModel(request_id=request_id, plan=some_plan(FOLDER))


SCRIPTS = st.builds(
    Script,
    answers=st.sampled_from([("one two three",), ("",), ("word " * 5000,)]),
    pieces=st.sampled_from(Pieces),
    decode_tokens_per_s=st.sampled_from([0.0, 2000.0]),
    prompt_tokens_per_s=st.just(0.0),
    load_s=st.sampled_from([0.0, 0.02]),
    load_steps=st.integers(1, 3),
    prepare_s=st.sampled_from([0.0, 0.02]),
    fault=st.none()
    | st.builds(
        Fault,
        kind=st.sampled_from([FaultKind.FAIL, FaultKind.BUG]),
        place=st.sampled_from(FaultPlace),
        after=st.integers(0, 3),
    ),
)
COMMANDS: st.SearchStrategy[Make] = st.one_of(
    st.sampled_from([FOLDER, MISSING]).map(
        lambda folder: lambda id_: InspectModel(request_id=id_, folder=str(folder))
    ),
    st.just(lambda id_: PlanModel(request_id=id_, folder=str(FOLDER))),
    st.just(lambda id_: DescribeMachine(request_id=id_)),
    st.just(lambda id_: WeighModel(request_id=id_, folder=str(MISSING))),
    st.just(lambda id_: FindModels(request_id=id_, roots=[str(MISSING)])),
    st.just(load),
    st.sampled_from(["hello", "script: fail 1", "script: bug 1", ""]).map(
        lambda text: lambda id_: ask(id_, text)
    ),
    st.sampled_from([None, 0, 2 << 30]).map(
        lambda ram_bytes: (
            lambda id_: SetBudgets(request_id=id_, budgets=Budgets(ram_bytes=ram_bytes))
        )
    ),
    st.just(lambda id_: CountTokens(request_id=id_, conversation=[])),
    st.integers(0, 15).map(
        lambda target: lambda id_: CancelRequest(request_id=id_, target_request_id=target)
    ),
    st.sampled_from([-1.0, 0.0, 0.1]).map(
        lambda interval_s: lambda id_: WatchTelemetry(request_id=id_, interval_s=interval_s)
    ),
    st.sampled_from([WeightFormat.Q8_G32, WeightFormat.Q4_G32]).map(
        lambda format_: (
            lambda id_: PrepareModel(request_id=id_, folder=str(FOLDER), expert_format=format_)
        )
    ),
    st.just(lambda id_: OpenSession(request_id=id_, protocol_version=1, client_name="")),
)


@pytest.mark.expects_log("runtime.service.log", "ERROR")
@hypothesis.given(
    script=SCRIPTS,
    makes=st.lists(st.tuples(COMMANDS, st.booleans()), max_size=14).flatmap(
        lambda makes: st.sampled_from([makes, [(load, True), *makes], [(load, False), *makes]])
    ),
    is_stopped=st.booleans(),
)
@hypothesis.example(
    script=FAST,
    makes=[(load, True), (lambda id_: ask(id_, "script: bug 1"), True)],
    is_stopped=True,
)
def test_service_with_any_commands_closes_each_exactly_once(
    script: Script, makes: list[tuple[Make, bool]], is_stopped: bool
) -> None:
    scripted = ScriptedService(script)
    for request_id, (make, is_awaited) in enumerate(makes, start=1):
        assert scripted.service.handle(make(request_id))
        # A script can have an answer that takes long; waiting for it would test nothing more.
        if is_awaited and len(script.answers[0]) < 100:
            scripted.wait_until_closed(request_id)
    stop_id = len(makes) + 1
    if is_stopped:
        assert not scripted.service.handle(StopRuntime(request_id=stop_id))
        makes = [*makes, (lambda id_: StopRuntime(request_id=id_), False)]
    else:
        assert scripted.service.close()
    events = scripted.drain()
    for request_id in range(1, len(makes) + 1):
        assert len(closing_events(events, request_id)) == 1
        last = [event for event in events if getattr(event, "request_id", None) == request_id][-1]
        assert closing_events([last], request_id), "nothing of a command follows its closing event"
    replies = [event for event in events if isinstance(event, Reply)]
    assert {event.request_id for event in replies} <= set(range(1, stop_id + 1))
    if is_stopped:
        assert isinstance(events[-1], RuntimeStopped)
