"""A model in three tiers, loaded in a runtime that the test plays."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

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
