"""The stage machine: start, folders under *Models*, death, answers, telemetry."""

from pytestqt.qtbot import QtBot

from app.state.candidate import Candidate
from app.state.library import LibraryState
from app.state.session import Session
from app.state.settings import SettingsState
from app.state.stages import Stage
from runtime.protocol.chat import ChatMessage, FinishReason, Role, SamplingSettings
from runtime.protocol.errors import ErrorCode
from runtime.protocol.messages import (
    BudgetsPlanned,
    CancelAccepted,
    CancelRequest,
    CommandFailed,
    DescribeMachine,
    GenerationCancelled,
    GenerationFinished,
    HeartbeatSent,
    InspectModel,
    LoadModel,
    MachineDescribed,
    ModelInspected,
    PlanBudgets,
    PlanModel,
    Reply,
    StartGeneration,
    TelemetrySampled,
    WatchTelemetry,
)
from runtime.protocol.plan import PlanKind
from tests.support.fake_client import FakeClient
from tests.support.session_replies import answer_inspect, answer_load, answer_plan, plan_candidate
from tests.support.unnarrowed import now
from tests.support.window_values import (
    FOLDER,
    some_curve,
    some_error,
    some_machine,
    some_plan,
    some_report,
    some_sample,
    some_stats,
)


def candidate_of(session: Session) -> Candidate:
    candidate = session.candidate
    assert candidate is not None
    return candidate


class TestStart:
    def test_session_before_start_has_no_runtime(self, session: Session) -> None:
        assert now(session.stage) is Stage.NO_RUNTIME

    def test_session_opened_is_idle_and_asks_for_the_machine(
        self, open_session: Session, client: FakeClient
    ) -> None:
        assert now(open_session.stage) is Stage.IDLE
        command = client.last(DescribeMachine)
        client.answer(MachineDescribed(request_id=command.request_id, machine=some_machine()))
        assert open_session.machine == some_machine()

    def test_machine_that_cannot_be_described_stays_unknown(
        self, open_session: Session, client: FakeClient
    ) -> None:
        command = client.last(DescribeMachine)
        client.answer(CommandFailed(request_id=command.request_id, error=some_error()))
        assert open_session.machine is None

    def test_folder_dropped_before_the_runtime_is_up_is_inspected_then(
        self, session: Session, client: FakeClient
    ) -> None:
        session.start()
        session.drop_folder(FOLDER)
        assert now(session.stage) is Stage.INSPECTING
        assert client.sent == []
        client.open()
        assert client.last(InspectModel).folder == FOLDER


class TestCandidate:
    def test_dropped_folder_is_inspected_then_planned(
        self, open_session: Session, client: FakeClient
    ) -> None:
        open_session.drop_folder(FOLDER)
        assert now(open_session.stage) is Stage.INSPECTING
        answer_inspect(client)
        assert now(open_session.stage) is Stage.PLANNING
        answer_plan(client, some_plan(), some_plan(PlanKind.EIGHT_BIT, needs_prepare=True))
        assert now(open_session.stage) is Stage.PLANNED
        candidate = open_session.candidate
        assert candidate is not None
        assert candidate.chosen is PlanKind.EXACT
        assert candidate.can_load
        open_session.choose_plan(PlanKind.EIGHT_BIT)
        assert open_session.candidate is not None
        assert open_session.candidate.chosen_plan == candidate.plans[1]

    def test_curve_of_the_chosen_kind_is_asked_for_once_and_kept(
        self, open_session: Session, client: FakeClient
    ) -> None:
        plan_candidate(open_session, client, some_plan(), some_plan(PlanKind.EIGHT_BIT))
        first = client.last(PlanBudgets)
        assert (first.folder, first.kind) == (FOLDER, PlanKind.EXACT)
        open_session.choose_plan(PlanKind.EIGHT_BIT)
        second = client.last(PlanBudgets)
        assert second.kind is PlanKind.EIGHT_BIT
        # The answer to what is not wanted any more is not taken.
        client.answer(BudgetsPlanned(request_id=first.request_id, curve=some_curve()))
        assert candidate_of(open_session).curve is None
        curve = some_curve(PlanKind.EIGHT_BIT)
        client.answer(BudgetsPlanned(request_id=second.request_id, curve=curve))
        assert candidate_of(open_session).curve == curve
        open_session.budgets.set_ram(1 << 30)
        answer_plan(client, some_plan(), some_plan(PlanKind.EIGHT_BIT))
        assert client.count(PlanBudgets) == 2
        assert candidate_of(open_session).curve == curve
        open_session.budgets.set_context(1024)
        answer_plan(client, some_plan(), some_plan(PlanKind.EIGHT_BIT))
        assert client.last(PlanBudgets).context_tokens == 1024

    def test_curve_that_cannot_be_had_is_done_without(
        self, open_session: Session, client: FakeClient
    ) -> None:
        plan_candidate(open_session, client)
        command = client.last(PlanBudgets)
        client.answer(CommandFailed(request_id=command.request_id, error=some_error()))
        assert candidate_of(open_session).curve is None
        assert candidate_of(open_session).error is None
        open_session.close_candidate()
        client.answer(BudgetsPlanned(request_id=command.request_id, curve=some_curve()))
        assert now(open_session.candidate) is None

    def test_choice_without_a_plan_changes_nothing(
        self, open_session: Session, client: FakeClient
    ) -> None:
        open_session.choose_plan(PlanKind.EXACT)
        plan_candidate(open_session, client)
        open_session.choose_plan(PlanKind.FOUR_BIT)
        assert open_session.candidate is not None
        assert now(open_session.candidate.chosen) is PlanKind.EXACT

    def test_broken_model_is_not_planned(self, open_session: Session, client: FakeClient) -> None:
        open_session.drop_folder(FOLDER)
        answer_inspect(client, some_error())
        assert client.count(PlanModel) == 0
        assert now(open_session.stage) is Stage.IDLE
        assert open_session.candidate is not None
        assert not open_session.candidate.can_load
        open_session.budgets.set_context(2048)
        assert client.count(PlanModel) == 0

    def test_failed_inspection_is_told(self, open_session: Session, client: FakeClient) -> None:
        open_session.drop_folder(FOLDER)
        client.answer(
            CommandFailed(request_id=client.last(InspectModel).request_id, error=some_error())
        )
        assert open_session.candidate is not None
        assert open_session.candidate.error == some_error()

    def test_answer_about_the_folder_before_is_ignored(
        self, open_session: Session, client: FakeClient
    ) -> None:
        open_session.drop_folder("/models/old")
        old = client.last(InspectModel)
        open_session.drop_folder(FOLDER)
        client.answer(ModelInspected(request_id=old.request_id, report=some_report("/models/old")))
        assert open_session.candidate is not None
        assert open_session.candidate.report is None

    def test_closed_candidate_ignores_its_answer(
        self, open_session: Session, client: FakeClient
    ) -> None:
        open_session.drop_folder(FOLDER)
        open_session.close_candidate()
        answer_inspect(client)
        assert open_session.candidate is None

    def test_unexpected_closing_event_ends_nothing(
        self, open_session: Session, client: FakeClient
    ) -> None:
        open_session.drop_folder(FOLDER)
        command = client.last(InspectModel)
        client.answer(CancelAccepted(request_id=command.request_id, was_running=False))
        assert now(open_session.stage) is Stage.INSPECTING

    def test_limits_changed_while_planning_plan_again_with_the_newest(
        self, open_session: Session, client: FakeClient, settings: SettingsState
    ) -> None:
        plan_candidate(open_session, client)
        for ram_bytes in (1 << 30, 2 << 30, 3 << 30):
            open_session.budgets.set_ram(ram_bytes)
        assert client.count(PlanModel) == 2
        answer_plan(client, some_plan())
        assert client.count(PlanModel) == 3
        assert client.last(PlanModel).budgets.ram_bytes == 3 << 30
        assert now(open_session.stage) is Stage.PLANNING
        answer_plan(client, some_plan())
        assert now(open_session.stage) is Stage.PLANNED
        assert settings.values.ram_budget_bytes == open_session.budgets.ram_bytes == 3 << 30

    def test_choice_survives_a_new_plan_while_it_exists(
        self, open_session: Session, client: FakeClient
    ) -> None:
        plan_candidate(open_session, client, some_plan(), some_plan(PlanKind.EIGHT_BIT))
        open_session.choose_plan(PlanKind.EIGHT_BIT)
        open_session.budgets.set_context(2048)
        assert open_session.budgets.context_tokens == 2048
        answer_plan(client, some_plan(), some_plan(PlanKind.EIGHT_BIT))
        assert open_session.candidate is not None
        assert now(open_session.candidate.chosen) is PlanKind.EIGHT_BIT
        open_session.budgets.set_context(1024)
        answer_plan(client, some_plan(), recommended=None)
        assert now(open_session.candidate.chosen) is PlanKind.EXACT

    def test_no_plans_leave_nothing_chosen(self, open_session: Session, client: FakeClient) -> None:
        open_session.drop_folder(FOLDER)
        answer_inspect(client)
        answer_plan(client, recommended=None)
        assert open_session.candidate is not None
        assert open_session.candidate.chosen_plan is None
        open_session.prepare_and_load()
        assert now(open_session.stage) is Stage.IDLE


class TestDeath:
    def test_crash_while_ready_fails_and_restart_loads_the_model_again(
        self, ready_session: Session, client: FakeClient, qtbot: QtBot
    ) -> None:
        with qtbot.waitSignal(ready_session.failed):
            error = client.crash()
        assert now(ready_session.stage) is Stage.FAILED
        assert ready_session.error == error
        assert ready_session.outcome is not None
        assert ready_session.outcome.log_lines == ("last",)
        assert ready_session.loaded is None
        ready_session.restart_runtime()
        assert now(ready_session.error) is None
        client.open()
        answer_plan(client, some_plan())
        answer_load(client)
        assert now(ready_session.stage) is Stage.READY
        ready_session.restart_runtime()
        assert client.num_starts == 2

    def test_crash_while_loading_is_not_repeated_by_a_restart(
        self, open_session: Session, client: FakeClient
    ) -> None:
        open_session.load_folder(FOLDER)
        answer_plan(client, some_plan())
        client.crash()
        assert now(open_session.stage) is Stage.FAILED
        open_session.restart_runtime()
        client.open()
        assert client.count(LoadModel) == 1

    def test_crash_while_inspecting_is_told_by_the_candidate(
        self, open_session: Session, client: FakeClient
    ) -> None:
        open_session.drop_folder(FOLDER)
        error = client.crash()
        assert open_session.candidate is not None
        assert open_session.candidate.error == error
        assert not open_session.candidate.is_inspecting

    def test_folder_dropped_on_a_dead_runtime_starts_a_new_one(
        self, open_session: Session, client: FakeClient
    ) -> None:
        client.crash()
        open_session.drop_folder(FOLDER)
        client.open()
        assert client.last(InspectModel).folder == FOLDER
        assert now(open_session.stage) is Stage.INSPECTING

    def test_model_wanted_on_a_dead_runtime_starts_a_new_one(
        self, ready_session: Session, client: FakeClient
    ) -> None:
        client.crash()
        ready_session.load_folder("/models/other")
        client.open()
        assert client.num_starts == 2
        assert client.last(PlanModel).folder == "/models/other"

    def test_end_that_was_wanted_is_no_failure(
        self, ready_session: Session, client: FakeClient
    ) -> None:
        ready_session.shutdown()
        assert now(ready_session.stage) is Stage.NO_RUNTIME
        assert now(ready_session.error) is None
        assert ready_session.loaded is None


QUESTION = ChatMessage(role=Role.USER, text="Why?")


class TestAnswers:
    def ask(self, session: Session, heard: list[Reply]) -> bool:
        return session.start_answer([QUESTION], SamplingSettings(), heard.append)

    def test_answer_needs_a_loaded_model(self, open_session: Session) -> None:
        assert not self.ask(open_session, [])

    def test_answer_is_counted_before_its_listener_hears_the_end(
        self, ready_session: Session, client: FakeClient, library: LibraryState
    ) -> None:
        stages: list[Stage] = []
        started = ready_session.start_answer(
            [QUESTION], SamplingSettings(), lambda _: stages.append(ready_session.stage)
        )
        assert started
        assert now(ready_session.stage) is Stage.ANSWERING
        assert not self.ask(ready_session, [])
        command = client.last(StartGeneration)
        client.answer(
            GenerationFinished(
                request_id=command.request_id, reason=FinishReason.STOP, stats=some_stats()
            )
        )
        assert stages == [Stage.READY]
        assert library.models[0].measured_tokens_per_s == 21.4

    def test_failed_answer_leaves_the_model(
        self, ready_session: Session, client: FakeClient
    ) -> None:
        heard: list[Reply] = []
        self.ask(ready_session, heard)
        event = CommandFailed(
            request_id=client.last(StartGeneration).request_id, error=some_error()
        )
        client.answer(event)
        assert heard == [event]
        assert now(ready_session.stage) is Stage.READY

    def test_stop_cancels_the_running_answer_only(
        self, ready_session: Session, client: FakeClient
    ) -> None:
        ready_session.stop_answer()
        assert client.count(CancelRequest) == 0
        self.ask(ready_session, [])
        ready_session.stop_answer()
        target = client.last(CancelRequest).target_request_id
        assert target == client.last(StartGeneration).request_id
        client.answer(
            CancelAccepted(request_id=client.last(CancelRequest).request_id, was_running=True)
        )
        assert now(ready_session.stage) is Stage.ANSWERING

    def test_answer_that_does_not_stop_is_ended_with_its_process_and_the_model_comes_back(
        self, ready_session: Session, client: FakeClient, qtbot: QtBot
    ) -> None:
        self.ask(ready_session, [])
        ready_session._stop_patience.setInterval(1)
        ready_session.stop_answer()
        with qtbot.waitSignal(ready_session.answer_lost):
            pass
        assert client.stops == [True]
        client.end()
        client.open()
        answer_plan(client, some_plan())
        answer_load(client)
        assert now(ready_session.stage) is Stage.READY
        assert self.ask(ready_session, [])

    def test_answer_that_stops_in_time_leaves_its_process_alone(
        self, ready_session: Session, client: FakeClient
    ) -> None:
        self.ask(ready_session, [])
        ready_session.stop_answer()
        assert now(ready_session._stop_patience.isActive())
        client.answer(
            GenerationCancelled(
                request_id=client.last(StartGeneration).request_id, stats=some_stats()
            )
        )
        assert not now(ready_session._stop_patience.isActive())
        ready_session.stop_answer()
        assert not now(ready_session._stop_patience.isActive())

    def test_crash_while_answering_loses_the_answer_once(
        self, ready_session: Session, client: FakeClient, qtbot: QtBot
    ) -> None:
        heard: list[Reply] = []
        self.ask(ready_session, heard)
        with qtbot.waitSignal(ready_session.answer_lost):
            client.crash()
        assert heard == []

    def test_events_of_an_answer_that_is_over_are_not_heard(
        self, ready_session: Session, client: FakeClient
    ) -> None:
        heard: list[Reply] = []
        self.ask(ready_session, heard)
        ready_session._answers.lose_runtime()
        request_id = client.last(StartGeneration).request_id
        client.answer(CommandFailed(request_id=request_id, error=some_error()))
        assert heard == []

    def test_conversation_that_is_longer_than_a_frame_fails(
        self, ready_session: Session, qtbot: QtBot
    ) -> None:
        long = [ChatMessage(role=Role.USER, text="x" * (17 << 20))]
        with qtbot.waitSignal(ready_session.failed) as failed:
            assert not ready_session.start_answer(long, SamplingSettings(), lambda _: None)
        assert failed.args is not None
        assert failed.args[0].code is ErrorCode.CONVERSATION_INVALID
        assert now(ready_session.stage) is Stage.READY


class TestTelemetry:
    def test_watching_is_renewed_in_the_next_runtime(
        self, ready_session: Session, client: FakeClient
    ) -> None:
        ready_session.watch_telemetry(0.1)
        ready_session.unload()
        client.end()
        client.open()
        assert client.count(WatchTelemetry) == 2

    def test_sample_is_passed_on_and_a_heartbeat_is_not(
        self, open_session: Session, client: FakeClient, qtbot: QtBot
    ) -> None:
        with qtbot.assertNotEmitted(open_session.sample_received):
            client.answer(HeartbeatSent(uptime_s=1.0))
        with qtbot.waitSignal(open_session.sample_received) as received:
            client.answer(TelemetrySampled(sample=some_sample()))
        assert received.args == [some_sample()]
