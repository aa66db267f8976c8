"""The real window, the real runtime, the demo model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.main import StartOptions
from app.state.stages import Stage
from runtime.protocol.chat import SamplingSettings
from tests.gui.conftest import _nothing_left_behind  # noqa: F401
from tests.support.window import WindowDriver


@pytest.fixture
def demo_window(
    qtbot: QtBot, demo_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[WindowDriver]:
    """A first start: the demo model loads by itself; greedy, so that answers repeat."""
    monkeypatch.setenv("LARDER_DEMO_DIR", str(demo_folder))
    driver = WindowDriver(qtbot, StartOptions())
    driver.program.settings.change(sampling=SamplingSettings(temperature=0.0, max_tokens=120))
    yield driver
    driver.close()


@pytest.fixture
def ready_window(demo_window: WindowDriver) -> WindowDriver:
    """The same, once the model can be asked."""
    demo_window.wait_for_stage(Stage.READY)
    return demo_window
