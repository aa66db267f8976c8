"""Clocks that stand while nobody looks."""

import pytest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.views.page_clock import PageClock


@pytest.fixture
def widget(qtbot: QtBot) -> QWidget:
    widget = QWidget()
    qtbot.addWidget(widget)
    return widget


def test_clock_runs_while_its_widget_is_shown(widget: QWidget, qtbot: QtBot) -> None:
    clock = PageClock(widget)
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


def test_clock_paused_stands_until_it_goes_on(widget: QWidget, qtbot: QtBot) -> None:
    clock = PageClock(widget)
    clock.pause(True)
    widget.show()
    assert not clock.is_running
    assert clock.is_paused
    with qtbot.waitSignal(clock.fast):
        clock.pause(False)
    assert clock.is_running
    clock.pause(True)
    assert not clock.is_running
