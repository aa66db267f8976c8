"""The real window, the real runtime, the demo model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.main import StartOptions
from app.state.stages import Stage
from runtime.protocol.chat import SamplingSettings
from tests.gui.conftest import _nothing_left_behind  # noqa: F401
from tests.support.measured_pc import kept_rates, measured_before  # noqa: F401
from tests.support.own_screen import SCREEN_VARIABLE, own_screen
from tests.support.window import WindowDriver

PATIENCE_S = 300
"""Each test starts a window and a runtime, beside another one that does so."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let tests that say nothing of it take longer than others may."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(PATIENCE_S))


@pytest.fixture(scope="session", autouse=True)
def _own_screen() -> Iterator[None]:
    """Under X11 each process of tests has a screen to itself."""
    size = os.environ.get(SCREEN_VARIABLE)
    if size is None:
        yield
        return
    with own_screen(size) as display, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISPLAY", display)
        yield


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
