"""Another model in place of the loaded one, which stays until the other can be loaded."""

from pytestqt.qtbot import QtBot

from app.state.answer_flow import ignore
from app.state.load_flow import LoadListener
from app.state.session import Session
from app.state.stages import Stage
from runtime.protocol.chat import ChatMessage, FinishReason, Role, SamplingSettings
from runtime.protocol.errors import ErrorCode
from runtime.protocol.messages import (
    GenerationCancelled,
    GenerationFinished,
    LoadModel,
    ModelPrepared,
    PlanModel,
    PrepareCancelled,
    PrepareModel,
    StartGeneration,
)
from runtime.protocol.values import WeightFormat
from tests.support.fake_client import FakeClient
from tests.support.session_replies import answer_inspect, answer_plan
from tests.support.unnarrowed import now
from tests.support.window_values import FOLDER, some_error, some_plan, some_stats

OTHER = "/models/other"
QUESTION = ChatMessage(role=Role.USER, text="Why?")


def want_other(session: Session, client: FakeClient) -> None:
    """Look at another model, and start it."""
    session.drop_folder(OTHER)
    assert now(session.stage) is Stage.READY
    answer_inspect(client)
    answer_plan(client, some_plan(folder=OTHER))
    session.prepare_and_load()


def prepare_other(session: Session, client: FakeClient) -> None:
    """Start another model that has to be prepared first."""
    want_other(session, client)
    answer_plan(client, some_plan(folder=OTHER, needs_prepare=True))


def finish_preparing(client: FakeClient) -> None:
    """Let the preparation end, and plan what it made."""
    request_id = client.last(PrepareModel).request_id
    client.answer(
        ModelPrepared(
            request_id=request_id, folder="/copy", expert_format=WeightFormat.BF16, size_bytes=100
        )
    )
    answer_plan(client, some_plan(folder=OTHER))


def test_another_model_is_planned_beside_the_loaded_one_and_loads_in_the_next_runtime(
    ready_session: Session, client: FakeClient
) -> None:
    session = ready_session
    want_other(session, client)
    assert session.loaded is not None
    assert client.stops == []
    answer_plan(client, some_plan(folder=OTHER))
    assert now(session.stage) is Stage.STOPPING
    assert now(session.loaded) is None
    client.end()
    client.open()
    assert client.last(PlanModel).folder == OTHER
    assert now(session.stage) is Stage.LOADING
    answer_plan(client, some_plan(folder=OTHER))
    assert client.last(LoadModel).plan.model_folder == OTHER


def test_another_model_that_does_not_fit_leaves_the_loaded_one(
    ready_session: Session, client: FakeClient
) -> None:
    want_other(ready_session, client)
    problem = some_error(ErrorCode.FOLDER_NOT_FOUND)
    answer_plan(client, some_plan(folder=OTHER, problem=problem))
    assert ready_session.error == problem
    assert ready_session.can_answer
    assert client.stops == []


def test_loaded_model_can_be_asked_while_another_is_prepared(
    ready_session: Session, client: FakeClient
) -> None:
    session, plan_before = ready_session, ready_session.loaded_plan
    prepare_other(session, client)
    assert now(session.stage) is Stage.PREPARING
    assert session.loaded_plan == plan_before
    assert session.start_answer([QUESTION], SamplingSettings(), ignore)
    assert not session.can_answer
    finish_preparing(client)
    # The answer is written to its end before the model goes.
    assert client.stops == []
    answer = client.last(StartGeneration)
    client.answer(
        GenerationFinished(
            request_id=answer.request_id, reason=FinishReason.STOP, stats=some_stats()
        )
    )
    assert client.stops == [False]
    client.end()
    client.open()
    answer_plan(client, some_plan(folder=OTHER))
    assert client.last(LoadModel).plan.model_folder == OTHER
    assert client.count(PrepareModel) == 1


def test_wait_for_the_last_answer_can_be_cancelled(
    ready_session: Session, client: FakeClient
) -> None:
    session = ready_session
    prepare_other(session, client)
    session.start_answer([QUESTION], SamplingSettings(), ignore)
    finish_preparing(client)
    session.cancel()
    answer = client.last(StartGeneration)
    client.answer(GenerationCancelled(request_id=answer.request_id, stats=some_stats()))
    assert now(session.stage) is Stage.READY
    assert client.stops == []


def test_cancelled_preparation_leaves_the_loaded_model(
    ready_session: Session, client: FakeClient
) -> None:
    prepare_other(ready_session, client)
    ready_session.cancel()
    preparing = client.last(PrepareModel)
    client.answer(PrepareCancelled(request_id=preparing.request_id, kept_bytes=5))
    assert now(ready_session.stage) is Stage.READY
    assert client.stops == []


def test_preparation_that_does_not_stop_brings_the_loaded_model_back(
    ready_session: Session, client: FakeClient, qtbot: QtBot
) -> None:
    prepare_other(ready_session, client)
    ready_session._cancel_patience.setInterval(1)
    ready_session.cancel()
    qtbot.waitUntil(lambda: client.stops == [True])
    client.end()
    client.open()
    assert client.last(PlanModel).folder == FOLDER


def test_crash_while_another_is_prepared_starts_again_with_the_loaded_one(
    ready_session: Session, client: FakeClient
) -> None:
    prepare_other(ready_session, client)
    client.crash()
    ready_session.restart_runtime()
    client.open()
    assert client.last(PlanModel).folder == FOLDER


def test_listener_that_says_nothing_lets_a_model_load_in_the_runtime_that_is_there() -> None:
    listener = LoadListener()
    assert listener.on_load_ready(was_prepared=False)
    assert listener.on_load_ready(was_prepared=True)
    listener.on_load_prepared(1)
