"""Budgets moved while a model is loaded."""

import msgspec
import pytest
from pytestqt.qtbot import QtBot

from app.state.live_budgets import LiveBudgets
from app.state.session import Session
from app.state.settings import SettingsState
from runtime.protocol.messages import (
    BudgetsAdapted,
    BudgetsPlanned,
    BudgetsSet,
    CommandFailed,
    PlanBudgets,
    PlanModel,
    SetBudgets,
)
from runtime.protocol.plan import BudgetCurve, PlacementPlan, PlanKind
from runtime.protocol.values import Budgets
from tests.support.fake_client import FakeClient
from tests.support.session_replies import answer_plan
from tests.support.unnarrowed import now
from tests.support.window_values import some_curve, some_error, some_loaded, some_plan


@pytest.fixture
def live(ready_session: Session) -> LiveBudgets:
    live = LiveBudgets(ready_session)
    ready_session.changed.emit()
    return live


def plan_under(budgets: Budgets) -> PlacementPlan:
    plan: PlacementPlan = msgspec.structs.replace(some_plan(), budgets=budgets)
    return plan


def set_budgets(client: FakeClient) -> None:
    command = client.last(SetBudgets)
    model = msgspec.structs.replace(some_loaded(), budget_bytes=99)
    client.answer(
        BudgetsSet(request_id=command.request_id, model=model, plan=plan_under(command.budgets))
    )


def test_live_moving_previews_the_newest_wish_one_at_a_time(
    live: LiveBudgets, client: FakeClient
) -> None:
    before = client.count(PlanModel)
    for ram_bytes in (100, 200, 300):
        live.move_ram(ram_bytes)
    assert client.count(PlanModel) == before + 1
    assert client.last(PlanModel).budgets.ram_bytes == 100
    assert client.last(PlanModel).context_tokens == 4096
    answer_plan(client, some_plan(), some_plan(PlanKind.FOUR_BIT))
    assert client.last(PlanModel).budgets.ram_bytes == 300
    assert live.preview == some_plan()
    answer_plan(client, some_plan(problem=some_error()))
    assert client.count(PlanModel) == before + 2
    assert live.error == some_error()
    assert live.wanted == Budgets(ram_bytes=300)


def test_live_ram_that_follows_what_fits_still_does_when_vram_moves(
    live: LiveBudgets, ready_session: Session, client: FakeClient
) -> None:
    live.move_vram("cuda:0", 7)
    live.apply()
    command = client.last(SetBudgets)
    # The plan in force names every budget, the one that was left to the planner too.
    plan = plan_under(Budgets(ram_bytes=100, vram_bytes={"cuda:0": 7}))
    client.answer(BudgetsSet(request_id=command.request_id, model=some_loaded(), plan=plan))
    assert ready_session.loaded_plan is plan
    live.move_vram("cuda:0", 0)
    assert live.wanted == Budgets(ram_bytes=None, vram_bytes={"cuda:0": 0})


def test_live_bounds_are_those_beside_what_came_into_force(
    live: LiveBudgets, client: FakeClient
) -> None:
    answer_plan(client, some_plan())
    live.carry_out(Budgets(vram_bytes={"cuda:0": 0}))
    answer_plan(client, some_plan())
    set_budgets(client)
    wider = msgspec.structs.replace(some_plan(), all_ram_bytes=1 << 40)
    answer_plan(client, wider)
    assert live.bounds == wider


def test_live_applied_budgets_are_the_sessions_and_the_settings(
    live: LiveBudgets, ready_session: Session, client: FakeClient, settings: SettingsState
) -> None:
    live.move_ram(100)
    live.move_vram("cuda:0", 7)
    live.apply()
    assert live.is_applying
    assert client.last(SetBudgets).budgets == Budgets(ram_bytes=100, vram_bytes={"cuda:0": 7})
    set_budgets(client)
    assert not live.is_applying
    assert live.was_set
    assert (live.wanted, live.preview) == (None, None)
    assert ready_session.loaded is not None
    assert ready_session.loaded.budget_bytes == 99
    assert ready_session.loaded_plan is not None
    assert ready_session.loaded_plan.budgets.ram_bytes == 100
    assert settings.values.ram_budget_bytes == 100
    assert settings.values.vram_budget_bytes == {"cuda:0": 7}
    live.move_ram(50)
    assert not live.was_set
    assert live.wanted == Budgets(ram_bytes=50, vram_bytes={"cuda:0": 7})


def test_memory_that_was_given_back_is_in_force_and_the_persons_budget_stays(
    live: LiveBudgets, ready_session: Session, client: FakeClient, settings: SettingsState
) -> None:
    live.carry_out(Budgets(ram_bytes=100))
    set_budgets(client)
    plan = plan_under(Budgets(ram_bytes=60))
    model = msgspec.structs.replace(some_loaded(), budget_bytes=60)
    client.event_received.emit(BudgetsAdapted(model=model, plan=plan))
    assert ready_session.loaded is model
    assert ready_session.loaded_plan is plan
    assert settings.values.ram_budget_bytes == 100
    assert ready_session.loaded_budgets.ram_bytes == 100
    ready_session.unload()
    client.event_received.emit(BudgetsAdapted(model=model, plan=plan))
    assert now(ready_session.loaded) is None


def test_live_refused_budgets_change_nothing(
    live: LiveBudgets, ready_session: Session, client: FakeClient
) -> None:
    live.carry_out(Budgets(ram_bytes=1))
    command = client.last(SetBudgets)
    client.answer(CommandFailed(request_id=command.request_id, error=some_error()))
    assert live.error == some_error()
    assert now(live.wanted) is None
    assert ready_session.loaded is not None
    assert ready_session.loaded.budget_bytes == some_loaded().budget_bytes


def test_live_of_several_changes_the_last_ends_the_wish(
    live: LiveBudgets, client: FakeClient
) -> None:
    live.carry_out(Budgets(ram_bytes=1))
    first = client.last(SetBudgets)
    live.carry_out(Budgets(ram_bytes=2))
    plan = plan_under(Budgets(ram_bytes=2))
    client.answer(BudgetsSet(request_id=first.request_id, model=some_loaded(), plan=plan))
    assert live.is_applying
    assert live.wanted == Budgets(ram_bytes=2)
    set_budgets(client)
    assert now(live.wanted) is None


def test_live_moved_on_while_a_change_comes_into_force_keeps_the_wish(
    live: LiveBudgets, client: FakeClient
) -> None:
    live.carry_out(Budgets(ram_bytes=100))
    live.move_ram(50)
    set_budgets(client)
    assert live.wanted == Budgets(ram_bytes=50)
    live.apply()
    assert client.last(SetBudgets).budgets == Budgets(ram_bytes=50)
    set_budgets(client)
    assert now(live.wanted) is None


def test_live_preview_that_fails_says_why(live: LiveBudgets, client: FakeClient) -> None:
    live.move_ram(1)
    client.answer(CommandFailed(request_id=client.last(PlanModel).request_id, error=some_error()))
    assert live.error == some_error()


def test_live_late_preview_after_the_change_is_dropped(
    live: LiveBudgets, client: FakeClient
) -> None:
    live.carry_out(Budgets(ram_bytes=1))
    preview = client.last(PlanModel)
    assert preview.budgets == Budgets(ram_bytes=1)
    set_budgets(client)
    answer_plan(client, some_plan(), command=preview)
    assert live.preview is None


def test_live_without_a_model_does_nothing(open_session: Session, client: FakeClient) -> None:
    live = LiveBudgets(open_session)
    live.move_ram(1)
    live.move_vram("cuda:0", 1)
    live.apply()
    live.carry_out(Budgets())
    assert client.count(SetBudgets) == client.count(PlanModel) == 0


def test_live_other_model_forgets_the_wish(
    live: LiveBudgets, ready_session: Session, client: FakeClient, qtbot: QtBot
) -> None:
    live.move_ram(1)
    with qtbot.waitSignal(live.changed):
        ready_session.unload()
    assert live.wanted is None
    client.end()
    assert live.preview is None


def test_session_vram_budget_is_planned_with(
    open_session: Session, client: FakeClient, settings: SettingsState
) -> None:
    open_session.budgets.set_vram("cuda:0", 5)
    assert open_session.budgets.vram_bytes == {"cuda:0": 5}
    open_session.load_folder("/m")
    assert client.last(PlanModel).budgets.vram_bytes == {"cuda:0": 5}
    open_session.budgets.set_vram("cuda:0", None)
    assert settings.values.vram_budget_bytes == {}


def test_live_bounds_are_those_of_the_loaded_context(live: LiveBudgets, client: FakeClient) -> None:
    assert now(live.bounds) is None
    command = client.last(PlanModel)
    assert (command.context_tokens, command.budgets) == (4096, some_plan().budgets)
    answer_plan(client, some_plan(PlanKind.FOUR_BIT), some_plan())
    assert live.bounds == some_plan()


def test_live_bounds_stay_unknown_where_planning_fails(
    live: LiveBudgets, client: FakeClient
) -> None:
    client.answer(CommandFailed(request_id=client.last(PlanModel).request_id, error=some_error()))
    assert live.bounds is None
    assert live.error is None


def test_live_card_that_is_kept_is_told_until_the_next_wish(
    live: LiveBudgets, client: FakeClient, settings: SettingsState
) -> None:
    live.carry_out(Budgets(ram_bytes=100, vram_bytes={"cuda:0": 0}))
    command = client.last(SetBudgets)
    plan = plan_under(Budgets(ram_bytes=100, vram_bytes={"cuda:0": 7}))
    client.answer(BudgetsSet(request_id=command.request_id, model=some_loaded(), plan=plan))
    assert live.kept is plan
    assert settings.values.vram_budget_bytes == {"cuda:0": 7}
    live.move_ram(50)
    assert now(live.kept) is None
    live.carry_out(Budgets(ram_bytes=50, vram_bytes={"cuda:0": 7}))
    set_budgets(client)
    assert now(live.kept) is None


def answer_curve(client: FakeClient, curve: BudgetCurve | None) -> None:
    command = client.last(PlanBudgets)
    client.answer(BudgetsPlanned(request_id=command.request_id, curve=curve))


def test_live_says_what_to_expect_until_the_plan_comes(
    live: LiveBudgets, client: FakeClient
) -> None:
    answer_plan(client, some_plan())
    assert client.last(PlanBudgets).context_tokens == 4096
    live.move_ram(1500)
    assert live.estimate is None
    answer_curve(client, some_curve())
    estimate = now(live.estimate)
    assert estimate is not None
    live.move_vram("cuda:0", 0)
    estimate = now(live.estimate)
    assert estimate is not None
    assert estimate.forecast.decode_tokens_per_s_low == 1.5
    answer_plan(client, some_plan())
    assert now(live.estimate) is not None
    answer_plan(client, some_plan())
    assert now(live.estimate) is None


def test_live_asks_for_the_curve_of_a_model_once(live: LiveBudgets, client: FakeClient) -> None:
    assert client.count(PlanBudgets) == 1
    live.carry_out(Budgets(ram_bytes=100))
    set_budgets(client)
    assert client.count(PlanBudgets) == 1


def test_live_without_a_curve_waits_for_the_plan(live: LiveBudgets, client: FakeClient) -> None:
    command = client.last(PlanBudgets)
    client.answer(CommandFailed(request_id=command.request_id, error=some_error()))
    live.move_ram(1500)
    assert live.estimate is None


def test_live_curve_is_not_asked_for_without_a_model(session: Session) -> None:
    assert not session.budgets.curve_of_loaded(PlanKind.EXACT, lambda _: None)
