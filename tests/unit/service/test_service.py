"""The service: what each command does, stage by stage, with the scripted engine."""

import math
from pathlib import Path

import pytest

from runtime.engine.script import Fault, FaultKind, FaultPlace, Script
from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode, Severity
from runtime.protocol.messages import (
    BudgetsPlanned,
    CancelAccepted,
    CancelRequest,
    CommandFailed,
    CountTokens,
    DescribeMachine,
    GenerationCancelled,
    GenerationFinished,
    InspectModel,
    LoadCancelled,
    LoadModel,
    MachineDescribed,
    ModelInspected,
    ModelLoaded,
    ModelPlanned,
    ModelPrepared,
    OpenSession,
    PlanBudgets,
    PlanModel,
    PrepareCancelled,
    PrepareModel,
    PrepareProgressed,
    RuntimeStopped,
    SetBudgets,
    StopRuntime,
    TelemetrySampled,
    TelemetryWatched,
    TokensCounted,
    TokensGenerated,
    WatchTelemetry,
)
from runtime.protocol.plan import PlanKind
from runtime.protocol.values import Budgets, WeightFormat
from runtime.service import sampling_pace
from runtime.service.sampler import MIN_INTERVAL_S
from runtime.service.stages import Stage
from tests.support.scripted import (
    ENDLESS,
    FAST,
    ScriptedService,
    ask,
    closing_events,
    some_plan,
)


def failure(scripted: ScriptedService, request_id: int) -> ErrorCode:
    closing = scripted.wait_until_closed(request_id)
    assert isinstance(closing, CommandFailed)
    return closing.error.code


def cancel(scripted: ScriptedService, request_id: int, target: int) -> bool:
    scripted.service.handle(CancelRequest(request_id=request_id, target_request_id=target))
    closing = scripted.wait_until_closed(request_id)
    assert isinstance(closing, CancelAccepted)
    return closing.was_running


def test_service_with_a_whole_session_goes_through_its_stages(tmp_path: Path) -> None:
    scripted = ScriptedService()
    assert scripted.service.stage() is Stage.IDLE
    scripted.load(1, tmp_path)
    assert scripted.service.stage() is Stage.READY
    scripted.service.handle(ask(2))
    closing = scripted.wait_until_closed(2)
    assert isinstance(closing, GenerationFinished)
    assert scripted.service.stage() is Stage.READY
    texts = [event.text for event in scripted.events if isinstance(event, TokensGenerated)]
    assert "".join(texts) == "one two three"
    assert scripted.service.close()
    assert scripted.service.stage() is Stage.STOPPING


def test_service_without_a_model_answers_the_desk_and_refuses_the_engine(tmp_path: Path) -> None:
    scripted = ScriptedService()
    scripted.service.handle(InspectModel(request_id=1, folder=str(tmp_path)))
    scripted.service.handle(DescribeMachine(request_id=2, folders=[str(tmp_path)]))
    scripted.service.handle(PlanModel(request_id=3, folder=str(tmp_path)))
    scripted.service.handle(ask(4))
    scripted.service.handle(CountTokens(request_id=5, conversation=ask(5).conversation))
    assert isinstance(scripted.wait_until_closed(1), ModelInspected)
    assert isinstance(scripted.wait_until_closed(2), MachineDescribed)
    planned = scripted.wait_until_closed(3)
    assert isinstance(planned, ModelPlanned)
    assert planned.recommended is PlanKind.EXACT
    assert failure(scripted, 4) is ErrorCode.NO_MODEL_LOADED
    assert failure(scripted, 5) is ErrorCode.NO_MODEL_LOADED
    assert scripted.service.close()


def test_service_while_generating_answers_the_desk_and_is_busy_for_more(tmp_path: Path) -> None:
    scripted = ScriptedService(ENDLESS)
    scripted.load(1, tmp_path, ENDLESS)
    scripted.service.handle(ask(2))
    scripted.wait_for(TokensGenerated)
    scripted.service.handle(ask(3))
    scripted.service.handle(CountTokens(request_id=4, conversation=ask(4).conversation))
    scripted.service.handle(InspectModel(request_id=5, folder=str(tmp_path)))
    scripted.service.handle(LoadModel(request_id=6, plan=some_plan(tmp_path)))
    assert failure(scripted, 3) is ErrorCode.ENGINE_BUSY
    counted = scripted.wait_until_closed(4)
    assert isinstance(counted, TokensCounted)
    assert counted.prompt_tokens > 0
    assert counted.context_tokens == ENDLESS.context_tokens
    assert isinstance(scripted.wait_until_closed(5), ModelInspected)
    assert failure(scripted, 6) is ErrorCode.MODEL_ALREADY_LOADED
    assert closing_events(scripted.drain(), 2) == []
    assert scripted.service.close()
    assert isinstance(scripted.wait_until_closed(2), GenerationCancelled)


def test_service_load_with_another_one_loading_is_refused_with_its_name(tmp_path: Path) -> None:
    scripted = ScriptedService(Script(load_s=600))
    scripted.service.handle(LoadModel(request_id=1, plan=some_plan(tmp_path)))
    scripted.service.handle(LoadModel(request_id=2, plan=some_plan(tmp_path)))
    scripted.service.handle(ask(3))
    closing = scripted.wait_until_closed(2)
    assert isinstance(closing, CommandFailed)
    assert closing.error.parameters == {"name": tmp_path.name}
    assert failure(scripted, 3) is ErrorCode.ENGINE_BUSY
    assert scripted.service.close()
    assert isinstance(scripted.wait_until_closed(1), LoadCancelled)


def test_service_cancel_of_a_load_leaves_it_idle_and_able_to_load(tmp_path: Path) -> None:
    scripted = ScriptedService(Script(load_s=600))
    scripted.service.handle(LoadModel(request_id=1, plan=some_plan(tmp_path)))
    assert cancel(scripted, 2, target=1)
    assert isinstance(scripted.wait_until_closed(1), LoadCancelled)
    assert scripted.service.stage() is Stage.IDLE
    scripted.service.handle(LoadModel(request_id=3, plan=some_plan(tmp_path)))
    assert scripted.service.stage() is Stage.LOADING
    assert scripted.service.close()


def test_service_load_that_fails_leaves_it_idle(tmp_path: Path) -> None:
    scripted = ScriptedService(Script(fault=Fault(FaultKind.FAIL, FaultPlace.LOAD)))
    scripted.service.handle(LoadModel(request_id=1, plan=some_plan(tmp_path)))
    assert failure(scripted, 1) is ErrorCode.DRIVE_READ_FAILED
    assert scripted.service.stage() is Stage.IDLE
    assert scripted.service.close()


def test_service_cancel_while_generating_closes_with_the_statistics_so_far(tmp_path: Path) -> None:
    scripted = ScriptedService(ENDLESS)
    scripted.load(1, tmp_path, ENDLESS)
    scripted.service.handle(ask(2))
    scripted.wait_for(TokensGenerated)
    assert cancel(scripted, 3, target=2)
    closing = scripted.wait_until_closed(2)
    assert isinstance(closing, GenerationCancelled)
    assert closing.stats.generated_tokens >= 1
    assert scripted.service.stage() is Stage.READY
    assert not cancel(scripted, 4, target=2), "it has ended"
    scripted.service.handle(ask(5, "script: say done"))
    assert isinstance(scripted.wait_until_closed(5), GenerationFinished)
    assert scripted.service.close()


def test_service_cancel_twice_closes_the_target_once(tmp_path: Path) -> None:
    scripted = ScriptedService(ENDLESS)
    scripted.load(1, tmp_path, ENDLESS)
    scripted.service.handle(ask(2))
    scripted.service.handle(CancelRequest(request_id=3, target_request_id=2))
    scripted.service.handle(CancelRequest(request_id=4, target_request_id=2))
    assert isinstance(scripted.wait_until_closed(4), CancelAccepted)
    assert isinstance(scripted.wait_until_closed(2), GenerationCancelled)
    assert scripted.service.close()
    assert len(closing_events(scripted.drain(), 2)) == 1


def test_service_cancel_of_an_id_never_seen_is_not_kept_for_later(tmp_path: Path) -> None:
    scripted = ScriptedService()
    scripted.load(1, tmp_path)
    assert not cancel(scripted, 2, target=3)
    scripted.service.handle(ask(3))
    assert isinstance(scripted.wait_until_closed(3), GenerationFinished)
    assert not cancel(scripted, 4, target=4), "a command that ends at once cannot be cancelled"
    assert scripted.service.close()


def test_service_prepare_tells_progress_and_what_it_made(tmp_path: Path) -> None:
    scripted = ScriptedService()
    command = PrepareModel(request_id=1, folder=str(tmp_path), expert_format=WeightFormat.Q4_G32)
    scripted.service.handle(command)
    closing = scripted.wait_until_closed(1)
    assert isinstance(closing, ModelPrepared)
    assert closing.expert_format is WeightFormat.Q4_G32
    assert any(isinstance(event, PrepareProgressed) for event in scripted.events)
    scripted.service.handle(InspectModel(request_id=2, folder=str(tmp_path)))
    inspected = scripted.wait_until_closed(2)
    assert isinstance(inspected, ModelInspected)
    assert len(inspected.report.prepared) == 1
    assert scripted.service.close()


def test_service_prepare_cancelled_keeps_bytes_and_makes_room_for_the_next(tmp_path: Path) -> None:
    scripted = ScriptedService(ENDLESS)
    command = PrepareModel(request_id=1, folder=str(tmp_path), expert_format=WeightFormat.Q8_G32)
    scripted.service.handle(command)
    scripted.wait_for(PrepareProgressed)
    scripted.service.handle(
        PrepareModel(request_id=2, folder=str(tmp_path), expert_format=WeightFormat.Q8_G32)
    )
    assert failure(scripted, 2) is ErrorCode.ENGINE_BUSY
    assert cancel(scripted, 3, target=1)
    closing = scripted.wait_until_closed(1)
    assert isinstance(closing, PrepareCancelled)
    assert closing.kept_bytes >= 0
    assert scripted.service.close()


def test_service_watched_sends_samples_until_told_to_stop(tmp_path: Path) -> None:
    scripted = ScriptedService()
    scripted.load(1, tmp_path)
    scripted.service.handle(WatchTelemetry(request_id=2, interval_s=0.001))
    closing = scripted.wait_until_closed(2)
    assert isinstance(closing, TelemetryWatched)
    assert closing.interval_s == MIN_INTERVAL_S
    sampled = scripted.wait_for(TelemetrySampled)
    assert MIN_INTERVAL_S <= sampled.sample.interval_s < 20 * MIN_INTERVAL_S
    assert sampled.sample.experts is not None
    scripted.service.handle(WatchTelemetry(request_id=3, interval_s=0))
    stopped = scripted.wait_until_closed(3)
    assert isinstance(stopped, TelemetryWatched)
    assert stopped.interval_s == 0
    assert scripted.service.close()


def test_service_at_rest_measures_at_once_when_it_is_given_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling_pace, "NUM_QUIET_SAMPLES", 2)
    # So long that only being woken brings a sample.
    monkeypatch.setattr(sampling_pace, "REST_INTERVAL_S", 600.0)
    scripted = ScriptedService()
    scripted.load(1, tmp_path)
    scripted.service.handle(WatchTelemetry(request_id=2, interval_s=MIN_INTERVAL_S))
    works = (ask(3), SetBudgets(request_id=4, budgets=Budgets()), ask(5))
    for work in works:
        while not scripted.service._sampler._pace.is_resting:
            scripted.wait_for(TelemetrySampled)
        scripted.drain()
        scripted.service.handle(work)
        scripted.wait_until_closed(work.request_id)
        scripted.wait_for(TelemetrySampled)
    assert scripted.service.close()


@pytest.mark.parametrize("interval_s", [-1.0, math.nan, math.inf])
def test_service_watch_with_an_impossible_interval_is_refused(interval_s: float) -> None:
    scripted = ScriptedService()
    scripted.service.handle(WatchTelemetry(request_id=1, interval_s=interval_s))
    assert failure(scripted, 1) is ErrorCode.SETTING_INVALID
    assert scripted.service.close()


def test_service_plan_below_the_smallest_budget_names_what_is_needed(tmp_path: Path) -> None:
    scripted = ScriptedService()
    scripted.service.handle(
        PlanModel(request_id=1, folder=str(tmp_path), budgets=Budgets(ram_bytes=1))
    )
    closing = scripted.wait_until_closed(1)
    assert isinstance(closing, ModelPlanned)
    assert closing.recommended is None
    problem = closing.plans[0].problem
    assert problem is not None
    assert problem.code is ErrorCode.RAM_BUDGET_TOO_SMALL
    assert problem.parameters["needed_bytes"] == closing.plans[0].min_ram_bytes
    assert scripted.service.close()


def test_service_answers_what_many_budgets_would_do(tmp_path: Path) -> None:
    scripted = ScriptedService()
    scripted.service.handle(PlanBudgets(request_id=1, folder=str(tmp_path), kind=PlanKind.EXACT))
    assert scripted.wait_until_closed(1) == BudgetsPlanned(request_id=1, curve=None)
    assert scripted.service.close()


@pytest.mark.expects_log("runtime.service.log", "ERROR")
def test_service_with_an_unexpected_exception_reports_where_it_is_logged(tmp_path: Path) -> None:
    scripted = ScriptedService()
    scripted.load(1, tmp_path)
    scripted.service.handle(ask(2, "script: bug 1"))
    closing = scripted.wait_until_closed(2)
    assert isinstance(closing, CommandFailed)
    assert closing.error.code is ErrorCode.INTERNAL
    assert closing.error.severity is Severity.RUNTIME
    assert closing.error.log_reference.startswith("entry ")
    assert scripted.service.close()


def test_service_stopped_while_generating_closes_that_first(tmp_path: Path) -> None:
    scripted = ScriptedService(ENDLESS)
    scripted.load(1, tmp_path, ENDLESS)
    scripted.service.handle(ask(2))
    scripted.wait_for(TokensGenerated)
    assert not scripted.service.handle(StopRuntime(request_id=3))
    events = scripted.drain()
    assert isinstance(events[-1], RuntimeStopped)
    assert isinstance(closing_events(events, 2)[0], GenerationCancelled)


def test_service_closed_with_a_hanging_engine_fails_its_command_in_time(tmp_path: Path) -> None:
    scripted = ScriptedService()
    scripted.load(1, tmp_path)
    scripted.service.handle(ask(2, "script: hang 1"))
    scripted.wait_for(TokensGenerated)
    assert not scripted.service.close(timeout_s=0.05)
    assert failure(scripted, 2) is ErrorCode.RUNTIME_ENDED


def test_service_with_an_id_in_use_takes_it_for_a_broken_stream(tmp_path: Path) -> None:
    scripted = ScriptedService(ENDLESS)
    scripted.load(1, tmp_path, ENDLESS)
    scripted.service.handle(ask(2))
    with pytest.raises(LarderError) as raised:
        scripted.service.handle(InspectModel(request_id=2, folder=str(tmp_path)))
    assert raised.value.code is ErrorCode.FRAME_INVALID
    assert scripted.service.close()


def test_service_with_a_second_opening_refuses_it() -> None:
    scripted = ScriptedService(FAST)
    scripted.service.handle(OpenSession(request_id=1, protocol_version=1, client_name="again"))
    assert failure(scripted, 1) is ErrorCode.FRAME_INVALID
    assert scripted.service.close()


def test_service_loaded_model_is_the_planned_one(tmp_path: Path) -> None:
    scripted = ScriptedService()
    loaded = scripted.load(1, tmp_path)
    assert isinstance(loaded, ModelLoaded)
    assert loaded.model.folder == str(tmp_path)
    assert loaded.model.kernels == "scripted"
    assert scripted.service.close()
