"""A context that was chosen for one model is cut to what another can do, and not forgotten."""

import msgspec
import pytest

from app.state.session import Session
from app.state.settings import SettingsState
from runtime.protocol.messages import (
    InspectModel,
    LoadModel,
    ModelInspected,
    ModelPlanned,
    PlanModel,
)
from runtime.protocol.model import ModelReport
from runtime.protocol.plan import PlanKind
from tests.support.fake_client import FakeClient
from tests.support.window_values import FOLDER, some_plan, some_report

MOST_TOKENS = 512


def short_report() -> ModelReport:
    report: ModelReport = msgspec.structs.replace(some_report(), max_context_tokens=MOST_TOKENS)
    return report


def answer_plan_shortly(client: FakeClient) -> None:
    client.answer(
        ModelPlanned(
            request_id=client.last(PlanModel).request_id,
            report=short_report(),
            plans=[some_plan()],
            recommended=PlanKind.EXACT,
        )
    )


@pytest.fixture
def wishing_session(open_session: Session, settings: SettingsState) -> Session:
    settings.change(context_tokens=8192)
    return open_session


def test_dropped_model_with_a_short_context_is_planned_for_what_it_can(
    wishing_session: Session, client: FakeClient, settings: SettingsState
) -> None:
    wishing_session.drop_folder(FOLDER)
    client.answer(
        ModelInspected(request_id=client.last(InspectModel).request_id, report=short_report())
    )
    assert client.last(PlanModel).context_tokens == MOST_TOKENS
    answer_plan_shortly(client)
    assert client.count(PlanModel) == 1
    assert settings.values.context_tokens == 8192


def test_load_of_a_model_with_a_short_context_plans_again_for_what_it_can(
    wishing_session: Session, client: FakeClient
) -> None:
    wishing_session.load_folder(FOLDER)
    wishing_session.close_candidate()
    assert client.last(PlanModel).context_tokens == 8192
    answer_plan_shortly(client)
    assert client.count(PlanModel) == 2
    assert client.last(PlanModel).context_tokens == MOST_TOKENS
    assert client.count(LoadModel) == 0
    answer_plan_shortly(client)
    assert client.count(PlanModel) == 2
    assert client.count(LoadModel) == 1


@pytest.mark.parametrize("context_tokens", [0, 256])
def test_context_that_the_model_can_do_is_asked_for_as_it_is(
    open_session: Session, client: FakeClient, settings: SettingsState, context_tokens: int
) -> None:
    settings.change(context_tokens=context_tokens)
    open_session.load_folder(FOLDER)
    open_session.close_candidate()
    answer_plan_shortly(client)
    assert [item.context_tokens for item in client.sent if isinstance(item, PlanModel)] == [
        context_tokens
    ]
    assert client.count(LoadModel) == 1


def test_model_that_does_not_say_its_context_is_planned_for_the_wish(
    wishing_session: Session, client: FakeClient
) -> None:
    wishing_session.drop_folder(FOLDER)
    client.answer(
        ModelInspected(request_id=client.last(InspectModel).request_id, report=some_report())
    )
    assert client.last(PlanModel).context_tokens == 8192
