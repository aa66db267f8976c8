"""A model in three tiers in a runtime that the test plays, the Chat page with it, a composer."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.state.chat import ChatState
from app.theme.palette import LIGHT
from app.views.chat_view import ChatView
from app.views.composer import Composer
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
def composer(qtbot: QtBot) -> Composer:
    """A composer in which something can be asked."""
    composer = Composer(LIGHT)
    qtbot.addWidget(composer)
    composer.show_state(can_ask=True, is_answering=False, hint="")
    composer.show()
    return composer


@pytest.fixture
def page(stage: MonitorStage, tmp_path: Path, qtbot: QtBot) -> Iterator[ChatView]:
    state = ChatState(tmp_path / "chats.db", stage.monitor.session, stage.monitor.settings)
    view = ChatView(state, stage.monitor, LIGHT)
    qtbot.addWidget(view)
    view.resize(1200, 700)
    yield view
    state.close()
