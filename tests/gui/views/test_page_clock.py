"""Clocks that stand while nobody looks, and while nothing happens."""

import msgspec
import pytest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.state.telemetry import TelemetryState
from app.views.page_clock import PageClock
from tests.support.window_values import resting_sample, some_sample


@pytest.fixture
def widget(qtbot: QtBot) -> QWidget:
    widget = QWidget()
    qtbot.addWidget(widget)
    return widget


@pytest.fixture
def telemetry(qtbot: QtBot) -> TelemetryState:
    """With a model at work."""
    telemetry = TelemetryState()
    telemetry.add(some_sample(num_tokens=1))
    return telemetry


def test_clock_runs_while_its_widget_is_shown(
    widget: QWidget, telemetry: TelemetryState, qtbot: QtBot
) -> None:
    clock = PageClock(widget, telemetry)
    seen: list[bool] = []
    clock.seen_changed.connect(seen.append)
    assert not clock.is_running
    with qtbot.waitSignals([clock.fast, clock.slow]):
        widget.show()
    with qtbot.waitSignals([clock.fast, clock.slow], timeout=3000):
        assert clock.is_running
    widget.hide()
    assert not clock.is_running
    assert seen == [True, False]


def test_clock_paused_stands_until_it_goes_on(
    widget: QWidget, telemetry: TelemetryState, qtbot: QtBot
) -> None:
    clock = PageClock(widget, telemetry)
    clock.pause(True)
    widget.show()
    assert not clock.is_running
    assert clock.is_paused
    with qtbot.assertNotEmitted(clock.fast):
        telemetry.add(some_sample(num_tokens=1))
        telemetry.add(resting_sample())
        clock.tick()
    telemetry.add(some_sample(num_tokens=1))
    with qtbot.waitSignal(clock.fast):
        clock.pause(False)
    assert clock.is_running
    clock.pause(True)
    assert not clock.is_running


def test_clock_of_a_resting_engine_ticks_once_with_each_sample(
    widget: QWidget, telemetry: TelemetryState
) -> None:
    clock = PageClock(widget, telemetry)
    ticks: list[str] = []
    clock.fast.connect(lambda: ticks.append("fast"))
    clock.slow.connect(lambda: ticks.append("slow"))
    telemetry.add(resting_sample())
    assert ticks == []
    widget.show()
    assert not clock.is_running
    assert ticks == ["fast", "slow"]
    telemetry.add(resting_sample())
    assert ticks == ["fast", "slow"] * 2
    telemetry.add(some_sample(num_tokens=1))
    assert clock.is_running
    assert ticks == ["fast", "slow"] * 3
    telemetry.add(some_sample(num_tokens=1))
    assert ticks == ["fast", "slow"] * 3
    telemetry.add(resting_sample())
    assert not clock.is_running
    assert ticks == ["fast", "slow"] * 4


def test_clock_without_a_model_stands(widget: QWidget, qtbot: QtBot) -> None:
    telemetry = TelemetryState()
    clock = PageClock(widget, telemetry)
    widget.show()
    assert not clock.is_running
    telemetry.add(msgspec.structs.replace(resting_sample(), interval_s=0.1))
    assert clock.is_running
    telemetry.clear()
    assert not clock.is_running
