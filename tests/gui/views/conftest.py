"""A model in three tiers, loaded in a runtime that the test plays, and the Chat page with it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.state.chat import ChatState
from app.theme.palette import LIGHT
from app.views.chat_view import ChatView
from tests.support.monitor_stage import MonitorStage, ready_stage


@pytest.fixture
def stage(qtbot: QtBot, tmp_path: Path) -> Iterator[MonitorStage]:
    stage = ready_stage(tmp_path)
    yield stage
    stage.close()


@pytest.fixture
def empty_stage(qtbot: QtBot, tmp_path: Path) -> Iterator[MonitorStage]:
    stage = ready_stage(tmp_path, is_loaded=False)
    yield stage
    stage.close()


@pytest.fixture
def page(stage: MonitorStage, tmp_path: Path, qtbot: QtBot) -> Iterator[ChatView]:
    state = ChatState(tmp_path / "chats.db", stage.monitor.session, stage.monitor.settings)
    view = ChatView(state, stage.monitor, LIGHT)
    qtbot.addWidget(view)
    view.resize(1200, 700)
    yield view
    state.close()
