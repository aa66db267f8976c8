"""Loading, preparing, switching and cancelling with a runtime that the test plays."""

import pytest
from pytestqt.qtbot import QtBot

from app.state import session as session_module
from app.state.library import LibraryState
from app.state.progress import ProgressKind
from app.state.session import Session
from app.state.settings import SettingsState
from app.state.stages import Stage
from runtime.protocol.errors import ErrorCode
from runtime.protocol.messages import (
    CancelAccepted,
    CancelRequest,
    CommandFailed,
    LoadCancelled,
    LoadModel,
    LoadProgressed,
    ModelLoaded,
    ModelPlanned,
    ModelPrepared,
    PlanModel,
    PrepareCancelled,
    PrepareModel,
    PrepareProgressed,
)
from runtime.protocol.model import LoadStage
from runtime.protocol.plan import PlanKind
from runtime.protocol.values import WeightFormat
from tests.support.fake_client import FakeClient
from tests.support.session_replies import answer_load, answer_plan, plan_candidate
from tests.support.unnarrowed import now
from tests.support.window_values import (
    FOLDER,
    some_error,
    some_forecast,
    some_loaded,
    some_plan,
    some_report,
)


class TestLoad:
    def test_chosen_plan_is_loaded_without_preparing(
        self,
        open_session: Session,
        client: FakeClient,
        settings: SettingsState,
        library: LibraryState,
        qtbot: QtBot,
    ) -> None:
        plan_candidate(open_session, client)
        open_session.prepare_and_load()
        assert now(open_session.stage) is Stage.LOADING
        assert open_session.loading_folder == FOLDER
        answer_plan(client, some_plan(forecast=some_forecast()))
        with qtbot.waitSignal(open_session.model_loaded):
            answer_load(client)
        assert now(open_session.stage) is Stage.READY
        assert open_session.can_answer
        assert open_session.loading_folder == ""
        assert open_session.loaded_plan == some_plan(forecast=some_forecast())
        assert settings.values.last_folder == FOLDER
        assert settings.values.last_plan is PlanKind.EXACT
        assert library.models[0].forecast_high == 24.0

    def test_plan_that_needs_it_is_prepared_and_planned_again(
        self, open_session: Session, client: FakeClient
    ) -> None:
        eight = some_plan(PlanKind.EIGHT_BIT, needs_prepare=True)
        plan_candidate(open_session, client, eight)
        open_session.prepare_and_load()
        answer_plan(client, eight)
        assert now(open_session.stage) is Stage.PREPARING
        command = client.last(PrepareModel)
        assert command.expert_format is WeightFormat.Q8_G32
        client.answer(
            PrepareProgressed(
                request_id=command.request_id, done_bytes=25, total_bytes=100, bytes_per_s=5.0
            )
        )
        progress = open_session.progress
        assert progress is not None
        assert (progress.kind, progress.ratio) == (ProgressKind.PREPARE, 0.25)
        assert progress.seconds_left == 15.0
        written: list[int] = []
        open_session.copy_written.connect(written.append)
        client.answer(
            ModelPrepared(
                request_id=command.request_id,
                folder="/copy",
                expert_format=WeightFormat.Q8_G32,
                size_bytes=100,
            )
        )
        assert written == [100]
        answer_plan(client, some_plan(PlanKind.EIGHT_BIT))
        client.answer(
            LoadProgressed(
                request_id=client.last(LoadModel).request_id,
                stage=LoadStage.DENSE,
                done_bytes=1,
                total_bytes=2,
            )
        )
        assert open_session.progress is not None
        assert open_session.progress.kind is ProgressKind.DENSE
        answer_load(client)
        assert now(open_session.stage) is Stage.READY

    def test_copy_that_is_not_found_again_ends_the_chain(
        self, open_session: Session, client: FakeClient
    ) -> None:
        eight = some_plan(PlanKind.EIGHT_BIT, needs_prepare=True)
        open_session.load_folder(FOLDER, PlanKind.EIGHT_BIT)
        answer_plan(client, eight)
        client.answer(
            ModelPrepared(
                request_id=client.last(PrepareModel).request_id,
                folder="/copy",
                expert_format=WeightFormat.Q8_G32,
                size_bytes=100,
            )
        )
        answer_plan(client, eight)
        assert open_session.error is not None
        assert open_session.error.code is ErrorCode.COPY_LOST
        assert client.count(PrepareModel) == 1

    @pytest.mark.parametrize("kind", [None, PlanKind.FOUR_BIT])
    def test_wish_without_its_plan_takes_the_recommended(
        self, open_session: Session, client: FakeClient, kind: PlanKind | None
    ) -> None:
        open_session.load_folder(FOLDER, kind)
        answer_plan(client, some_plan())
        assert client.last(LoadModel).plan.kind is PlanKind.EXACT

    def test_plan_with_a_problem_is_not_loaded(
        self, open_session: Session, client: FakeClient, qtbot: QtBot
    ) -> None:
        problem = some_error(ErrorCode.RAM_BUDGET_TOO_SMALL)
        open_session.load_folder(FOLDER, PlanKind.EXACT)
        with qtbot.waitSignal(open_session.failed):
            answer_plan(client, some_plan(problem=problem), recommended=None)
        assert open_session.error == problem
        assert client.count(LoadModel) == 0
        open_session.dismiss_error()
        assert now(open_session.error) is None

    def test_wish_without_any_loadable_plan_tells_the_first_problem(
        self, open_session: Session, client: FakeClient
    ) -> None:
        problem = some_error(ErrorCode.RAM_NOT_FREE)
        open_session.load_folder(FOLDER)
        answer_plan(client, some_plan(problem=problem), recommended=None)
        assert open_session.error == problem

    def test_wish_for_a_broken_model_tells_its_problem(
        self, open_session: Session, client: FakeClient
    ) -> None:
        open_session.load_folder(FOLDER)
        answer_plan(client, recommended=None, problems=(some_error(ErrorCode.SHARD_MISSING),))
        assert open_session.error is not None
        assert open_session.error.code is ErrorCode.SHARD_MISSING

    def test_wish_without_plans_or_problems_still_tells_something(
        self, open_session: Session, client: FakeClient
    ) -> None:
        open_session.load_folder(FOLDER)
        answer_plan(client, recommended=None)
        assert open_session.error is not None
        assert open_session.error.code is ErrorCode.NOT_A_MODEL

    def test_failed_load_replaces_the_runtime(
        self, open_session: Session, client: FakeClient
    ) -> None:
        open_session.load_folder(FOLDER)
        answer_plan(client, some_plan())
        error = some_error(ErrorCode.OUT_OF_MEMORY)
        client.answer(CommandFailed(request_id=client.last(LoadModel).request_id, error=error))
        assert open_session.error == error
        assert now(open_session.stage) is Stage.STOPPING
        client.end()
        client.open()
        assert open_session.error == error
        assert client.num_starts == 2
        assert client.count(LoadModel) == 1

    def test_unexpected_closing_event_does_not_end_the_wish(
        self, open_session: Session, client: FakeClient
    ) -> None:
        open_session.load_folder(FOLDER)
        wish = client.sent[1]
        client.answer(CancelAccepted(request_id=wish.request_id, was_running=False))
        assert now(open_session.stage) is Stage.LOADING

    def test_failed_plan_leaves_the_runtime(
        self, open_session: Session, client: FakeClient
    ) -> None:
        open_session.load_folder(FOLDER)
        error = some_error(ErrorCode.FOLDER_NOT_FOUND)
        wish = client.sent[1]
        client.answer(CommandFailed(request_id=wish.request_id, error=error))
        assert open_session.error == error
        assert client.stops == []

    def test_second_wish_while_loading_replaces_the_first(
        self, open_session: Session, client: FakeClient
    ) -> None:
        open_session.load_folder("/models/first")
        answer = client.sent[1]
        client.answer(
            ModelPlanned(
                request_id=answer.request_id,
                report=some_report("/models/first"),
                plans=[some_plan(folder="/models/first")],
                recommended=PlanKind.EXACT,
            )
        )
        loading = client.last(LoadModel)
        open_session.load_folder("/models/second")
        client.answer(ModelLoaded(request_id=loading.request_id, model=some_loaded()))
        assert open_session.loaded is None
        client.end()
        client.open()
        assert client.last(PlanModel).folder == "/models/second"

    def test_unload_ends_the_runtime_and_starts_an_empty_one(
        self, ready_session: Session, client: FakeClient
    ) -> None:
        ready_session.unload()
        assert now(ready_session.stage) is Stage.STOPPING
        client.end()
        client.open()
        assert now(ready_session.stage) is Stage.IDLE
        assert ready_session.loaded_plan is None
        ready_session.unload()
        assert client.stops == [False]


class TestCancel:
    def test_cancel_without_a_wish_does_nothing(
        self, open_session: Session, client: FakeClient
    ) -> None:
        open_session.cancel()
        assert client.count(CancelRequest) == 0

    def test_cancel_while_planning_ends_at_once(
        self, open_session: Session, client: FakeClient
    ) -> None:
        open_session.load_folder(FOLDER)
        open_session.cancel()
        assert client.count(CancelRequest) == 0
        assert open_session.loading_folder == ""
        answer_plan(client, some_plan())
        assert client.count(LoadModel) == 0

    def test_cancel_before_the_runtime_is_up_ends_at_once(self, session: Session) -> None:
        session.start()
        session.load_folder(FOLDER)
        session.close_candidate()
        session.cancel()
        assert now(session.stage) is Stage.NO_RUNTIME

    def test_cancelled_preparation_keeps_the_runtime(
        self, open_session: Session, client: FakeClient
    ) -> None:
        open_session.load_folder(FOLDER)
        open_session.close_candidate()
        wish = client.sent[1]
        client.answer(
            ModelPlanned(
                request_id=wish.request_id,
                report=some_report(),
                plans=[some_plan(needs_prepare=True)],
                recommended=PlanKind.EXACT,
            )
        )
        preparing = client.last(PrepareModel)
        open_session.cancel()
        open_session.cancel()
        assert client.count(CancelRequest) == 1
        assert client.last(CancelRequest).target_request_id == preparing.request_id
        assert now(open_session.stage) is Stage.STOPPING
        client.answer(
            CancelAccepted(request_id=client.last(CancelRequest).request_id, was_running=True)
        )
        client.answer(PrepareCancelled(request_id=preparing.request_id, kept_bytes=5))
        assert now(open_session.stage) is Stage.IDLE
        assert now(open_session.error) is None
        assert client.stops == []

    @pytest.mark.parametrize("ending", ["cancelled", "loaded", "failed"])
    def test_cancelled_load_replaces_the_runtime_however_it_ends(
        self, open_session: Session, client: FakeClient, ending: str
    ) -> None:
        open_session.load_folder(FOLDER)
        open_session.close_candidate()
        answer = client.sent[1]
        client.answer(
            ModelPlanned(
                request_id=answer.request_id,
                report=some_report(),
                plans=[some_plan()],
                recommended=PlanKind.EXACT,
            )
        )
        request_id = client.last(LoadModel).request_id
        open_session.cancel()
        client.answer(
            {
                "cancelled": LoadCancelled(request_id=request_id),
                "loaded": ModelLoaded(request_id=request_id, model=some_loaded()),
                "failed": CommandFailed(request_id=request_id, error=some_error()),
            }[ending]
        )
        assert open_session.loaded is None
        assert now(open_session.error) is None
        assert client.stops == [False]
        client.end()
        client.open()
        assert now(open_session.stage) is Stage.IDLE

    def test_load_that_does_not_stop_is_ended_by_force(
        self, open_session: Session, client: FakeClient, qtbot: QtBot
    ) -> None:
        open_session.load_folder(FOLDER)
        answer_plan(client, some_plan())
        open_session._cancel_patience.setInterval(1)
        open_session.cancel()
        qtbot.waitUntil(lambda: client.stops == [True])
        client.end()
        client.open()
        assert client.count(LoadModel) == 1
        assert session_module.CANCEL_WAIT_MS < 2000
