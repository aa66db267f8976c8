"""A model that nobody asks gives its memory back after the time that was set."""

import pytest
from pytestqt.qtbot import QtBot

from app.state import idle_unload
from app.state.idle_unload import IdleUnload
from app.state.session import Session
from app.state.settings import SettingsState
from app.state.stages import Stage
from runtime.protocol.chat import ChatMessage, Role, SamplingSettings
from tests.support.fake_client import FakeClient
from tests.support.window_values import FOLDER, some_loaded

QUESTION = [ChatMessage(role=Role.USER, text="hello")]


@pytest.fixture
def short_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Minutes that a test can wait for."""
    monkeypatch.setattr(idle_unload, "MS_PER_MINUTE", 20)


@pytest.mark.usefixtures("short_minutes")
def test_model_that_rests_is_unloaded_and_told(
    qtbot: QtBot, ready_session: Session, settings: SettingsState
) -> None:
    idle = IdleUnload(ready_session, settings)
    with qtbot.waitSignal(idle.unloaded) as told:
        settings.change(unload_after_min=1)
    assert told.args == [FOLDER, some_loaded().name]
    assert ready_session.loaded is None
    settings.change(unload_after_min=2)
    assert not idle._timer.isActive(), "nothing is loaded"
    idle._on_rested()
    assert ready_session.loaded is None


def test_model_is_kept_unless_a_time_is_set(
    ready_session: Session, settings: SettingsState
) -> None:
    idle = IdleUnload(ready_session, settings)
    ready_session.changed.emit()
    settings.change(theme="dark")
    assert not idle._timer.isActive()
    idle.note_use()
    assert not idle._timer.isActive()
    settings.change(unload_after_min=30)
    assert idle._timer.interval() == 30 * 60_000
    assert idle._timer.isActive()
    settings.change(unload_after_min=0)
    assert not idle._timer.isActive()


def test_answer_and_typing_begin_the_wait_anew(
    qtbot: QtBot, ready_session: Session, client: FakeClient, settings: SettingsState
) -> None:
    settings.change(unload_after_min=30)
    idle = IdleUnload(ready_session, settings)
    ready_session.changed.emit()
    qtbot.waitUntil(lambda: idle._timer.remainingTime() < 30 * 60_000)
    before_ms = idle._timer.remainingTime()
    ready_session.changed.emit()
    assert idle._timer.remainingTime() <= before_ms, "what happens elsewhere is no use of it"
    idle.note_use()
    assert idle._timer.isActive()
    assert ready_session.start_answer(QUESTION, SamplingSettings(), lambda _: None)
    assert ready_session.stage is Stage.ANSWERING
    assert not idle._timer.isActive()
