"""The warning over the life of a model."""

import msgspec
import pytest
from pytestqt.qtbot import QtBot

from app.state.drive_warning import RemedyKind
from app.state.drive_watch import DriveWatch
from app.state.session import Session
from app.state.settings import SettingsState
from app.state.telemetry import STEADY_S, TelemetryState
from runtime.protocol.messages import BudgetsSet, PlanModel, SetBudgets
from runtime.protocol.plan import PlanKind
from runtime.protocol.values import Budgets
from tests.support.drive_values import answer_with, plan_that_reads, sample_with
from tests.support.fake_client import FakeClient
from tests.support.session_replies import answer_plan
from tests.support.unnarrowed import now
from tests.support.window_values import FOLDER, some_error, some_loaded, some_stats


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock_s() -> Clock:
    return Clock()


@pytest.fixture
def telemetry(clock_s: Clock) -> TelemetryState:
    return TelemetryState(clock=clock_s)


@pytest.fixture
def watch(ready_session: Session, telemetry: TelemetryState, settings: SettingsState) -> DriveWatch:
    return DriveWatch(ready_session, telemetry, settings)


def test_watch_answer_over_the_limit_warns_and_asks_for_a_remedy(
    watch: DriveWatch, client: FakeClient, qtbot: QtBot
) -> None:
    with qtbot.waitSignal(watch.changed):
        watch.take_answer(answer_with(0.7))
    warning = watch.warning
    assert warning is not None
    assert now(warning.remedies) == ()
    assert client.last(PlanModel).budgets == Budgets()
    answer_plan(client, plan_that_reads(0))
    assert watch.warning is not None
    assert watch.warning.remedies[0].kind is RemedyKind.MORE_MEMORY
    num_asked = client.count(PlanModel)
    watch.take_answer(answer_with(0.6))
    assert watch.warning.use.wait_ratio == pytest.approx(0.6)
    assert watch.warning.remedies
    assert client.count(PlanModel) == num_asked
    watch.take_answer(answer_with(0.1))
    assert now(watch.warning) is None
    assert watch.use is not None


def test_watch_without_answer_or_model_stays_silent(
    open_session: Session, telemetry: TelemetryState, settings: SettingsState
) -> None:
    watch = DriveWatch(open_session, telemetry, settings)
    watch.take_answer(answer_with(0.9))
    watch.take_answer(None)
    assert (watch.warning, watch.use) == (None, None)


def test_watch_takes_the_limit_of_the_settings(watch: DriveWatch, settings: SettingsState) -> None:
    stats = answer_with(0.1, drive_j=30, rest_j=70)
    assert watch.is_answer_warned(stats)
    settings.change(max_drive_energy_ratio=0.5)
    assert not watch.is_answer_warned(stats)


def test_watch_samples_are_looked_at_now_and_then(
    watch: DriveWatch, telemetry: TelemetryState, clock_s: Clock
) -> None:
    telemetry.add(sample_with(0.9))
    assert watch.warning is not None
    telemetry.add(sample_with(0.9, num_tokens=1000))
    assert watch.warning.use.num_tokens == 10
    clock_s.now_s += STEADY_S
    telemetry.add(sample_with(0.9))
    assert watch.warning.use.num_tokens == 1020
    clock_s.now_s += 60
    telemetry.add(sample_with(0.9, num_tokens=0))
    assert watch.warning.use.num_tokens == 1020


def test_watch_other_budgets_ask_again_and_no_reads_end_it(
    watch: DriveWatch, ready_session: Session, client: FakeClient
) -> None:
    ready_session.changed.emit()
    ready_session.changed.emit()
    watch.take_answer(answer_with(0.7))
    answer_plan(client, plan_that_reads(0))
    for read, is_warned in ((50.0, True), (0.0, False), (50.0, False)):
        ready_session.budgets.change_loaded(Budgets(ram_bytes=5), lambda event: None)
        client.answer(
            BudgetsSet(
                request_id=client.last(SetBudgets).request_id,
                model=some_loaded(),
                plan=plan_that_reads(read),
            )
        )
        assert (watch.warning is not None) is is_warned
        if watch.warning is not None:
            assert watch.warning.remedies == ()


def test_watch_other_model_begins_anew(
    watch: DriveWatch, ready_session: Session, client: FakeClient
) -> None:
    ready_session.changed.emit()
    watch.take_answer(answer_with(0.7))
    ready_session.unload()
    assert (watch.warning, watch.use) == (None, None)


def test_watch_failed_plan_leaves_the_warning_without_a_remedy(
    watch: DriveWatch, client: FakeClient
) -> None:
    from runtime.protocol.messages import CommandFailed

    watch.take_answer(answer_with(0.7))
    client.answer(CommandFailed(request_id=client.last(PlanModel).request_id, error=some_error()))
    assert watch.warning is not None
    assert watch.warning.remedies == ()


def test_stats_of_a_usual_answer_do_not_warn(watch: DriveWatch) -> None:
    usual = msgspec.structs.replace(some_stats(), seconds={"compute": 1.0})
    watch.take_answer(usual)
    assert watch.warning is None


def test_watch_under_own_budgets_asks_for_plans_of_both(
    watch: DriveWatch, ready_session: Session, client: FakeClient
) -> None:
    own = Budgets(ram_bytes=5)
    ready_session.budgets.set_ram(5)
    ready_session.budgets.change_loaded(own, lambda event: None)
    set_id = client.last(SetBudgets).request_id
    client.answer(BudgetsSet(request_id=set_id, model=some_loaded(), plan=plan_that_reads(50)))
    watch.take_answer(answer_with(0.7))
    roomy, lower = plan_that_reads(0), plan_that_reads(20, PlanKind.FOUR_BIT)
    assert client.last(PlanModel).budgets == Budgets()
    answer_plan(client, roomy)
    assert client.last(PlanModel).budgets == own
    answer_plan(client, plan_that_reads(50), lower)
    assert watch.warning is not None
    assert [remedy.plan for remedy in watch.warning.remedies] == [roomy, lower]


def test_watch_is_quiet_about_a_model_if_asked_until_the_settings_change(
    watch: DriveWatch, settings: SettingsState, qtbot: QtBot
) -> None:
    watch.take_answer(answer_with(0.7))
    assert watch.is_answer_warned(answer_with(0.7))
    with qtbot.waitSignal(watch.changed):
        watch.be_quiet()
    watch.be_quiet()
    assert settings.values.quiet_drive_models == [FOLDER]
    assert watch.warning is None
    assert not watch.is_answer_warned(answer_with(0.7))
    watch.take_answer(answer_with(0.8))
    assert now(watch.warning) is None
    with qtbot.waitSignal(watch.changed):
        settings.change(quiet_drive_models=[])
    assert watch.warning is not None


def test_watch_of_no_model_cannot_be_quiet(
    open_session: Session, telemetry: TelemetryState, settings: SettingsState
) -> None:
    DriveWatch(open_session, telemetry, settings).be_quiet()
    assert settings.values.quiet_drive_models == []


def test_watch_plans_that_come_after_the_warning_are_not_taken(
    watch: DriveWatch, client: FakeClient
) -> None:
    watch.take_answer(answer_with(0.7))
    watch.take_answer(answer_with(0.1))
    answer_plan(client, plan_that_reads(0))
    assert watch.warning is None
