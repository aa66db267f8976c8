"""Measurements in the whole window: when they are asked for, and where the warning leads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.main import Program
from app.state.chat_values import AnswerEnd
from app.state.drive_warning import Remedy, RemedyKind
from app.state.stages import Stage
from app.views.monitor_view import MonitorView
from app.views.rail import Page
from runtime.protocol.plan import PlanKind
from tests.gui.main.conftest import StartWindow
from tests.gui.main.test_notices import kill_runtime
from tests.support.drive_values import answer_with
from tests.support.window import START_MS

_DRAW_A_MAP = """
import os, sys, threading
from PySide6.QtCore import QTimer
from app.main import Program, StartOptions, make_application

class Watch:
    threads = []
    def find_spec(self, name, path=None, target=None):
        if name == "numpy" or name.startswith("numpy."):
            self.threads.append(threading.current_thread())

sys.meta_path.insert(0, Watch())
application = make_application(["larder"])
options = StartOptions(
    folder=sys.argv[1], is_demo_wanted=False, runtime_arguments=("--engine", "scripted")
)
program = Program(options, os.environ)
program.window.resize(1360, 850)
program.show()

def look():
    view = program.chat_view.cards.map_card.map
    if view is not None and not view.grid.is_empty:
        program.window.close()

timer = QTimer()
timer.timeout.connect(look)
timer.start(20)
application.exec()
program.close()
print(len(Watch.threads) > 0, threading.main_thread() in Watch.threads)
"""
"""A window until the first map beside the chat; then whether numpy was imported, and whether in
the window's thread."""


@pytest.fixture
def program(start_window: StartWindow) -> Program:
    return start_window(["one"]).program


def test_telemetry_is_asked_for_while_it_is_shown(program: Program) -> None:
    program.window.resize(1360, 850)
    program.window.show_page(Page.CHAT)
    assert program.watch.is_watching
    program.window.show_page(Page.SETTINGS)
    assert not program.watch.is_watching
    program.window.show_page(Page.MONITOR)
    assert program.watch.is_watching
    program.window.show_page(Page.MODELS)
    assert not program.watch.is_watching
    program.window.show_page(Page.CHAT)
    assert program.watch.is_watching
    program.window.resize(800, 600)
    assert not program.watch.is_watching


def test_telemetry_rests_while_the_window_is_minimised(program: Program, qtbot: QtBot) -> None:
    program.window.show_page(Page.MONITOR)
    program.window.showMinimized()
    qtbot.waitUntil(lambda: not program.watch.is_watching)
    program.window.showNormal()
    qtbot.waitUntil(lambda: program.watch.is_watching)


def test_samples_reach_the_monitor(program: Program, qtbot: QtBot) -> None:
    program.window.show_page(Page.MONITOR)
    qtbot.waitUntil(lambda: program.telemetry.num_samples > 1, timeout=START_MS)
    assert "pyqtgraph" not in sys.modules


def test_warning_in_the_strip_leads_to_the_monitor(program: Program) -> None:
    assert not program.window.strip.drive_button.isVisible()
    program.monitor.drive.take_answer(answer_with(0.7))
    assert program.window.strip.drive_button.isVisible()
    program.window.strip.drive_button.click()
    assert program.window.current_page() is Page.MONITOR
    view = program.window.page(Page.MONITOR)
    assert isinstance(view, MonitorView)
    assert view.warning.isVisible()
    program.monitor.drive.take_answer(answer_with(0.1))
    assert not program.window.strip.drive_button.isVisible()
    assert not view.warning.isVisible()


def test_remedy_of_other_bits_is_carried_out_where_the_person_is(
    start_window: StartWindow,
) -> None:
    window = start_window(["one"], prepare_s=600.0)
    program = window.program
    plan = program.session.loaded_plan
    assert plan is not None
    program.window.show_page(Page.MONITOR)
    view = program.window.page(Page.MONITOR)
    assert isinstance(view, MonitorView)
    lower = msgspec.structs.replace(plan, kind=PlanKind.FOUR_BIT)
    view.remedy_wanted.emit(Remedy(RemedyKind.LOWER_BITS, lower))
    window.wait_for_stage(Stage.PREPARING)
    assert program.window.current_page() is Page.MONITOR
    program.session.cancel()
    window.wait_for_stage(Stage.READY)


def test_remedy_of_another_model_leads_to_the_models(program: Program) -> None:
    view = program.window.page(Page.MONITOR)
    assert isinstance(view, MonitorView)
    view.remedy_wanted.emit(Remedy(RemedyKind.SMALLER_MODEL))
    assert program.window.current_page() is Page.MODELS


def test_remedy_of_more_memory_changes_the_budgets(program: Program, qtbot: QtBot) -> None:
    plan = program.session.loaded_plan
    assert plan is not None
    view = program.window.page(Page.MONITOR)
    assert isinstance(view, MonitorView)
    view.remedy_wanted.emit(Remedy(RemedyKind.MORE_MEMORY, plan))
    qtbot.waitUntil(lambda: program.monitor.live.was_set, timeout=START_MS)
    assert program.settings.values.ram_budget_bytes == plan.ram_bytes


def test_answer_that_is_cut_off_is_not_summed_up_as_the_one_before(
    start_window: StartWindow,
) -> None:
    window = start_window(["one ", "two " * 2000])
    book = window.program.monitor.energy
    window.send("?")
    window.wait_for_answer()
    assert book.session.num_answers == 1
    window.send("?")
    window.wait_for_text()
    kill_runtime(window)
    assert window.program.chat.messages[-1].end is AnswerEnd.CUT_OFF
    assert book.session.num_answers == book.month.num_answers == 1


def test_monitor_key_opens_it_without_a_model(start_window: StartWindow) -> None:
    window = start_window(is_loading=False)
    window.press(Qt.Key.Key_3, Qt.KeyboardModifier.ControlModifier)
    assert window.program.window.current_page() is Page.MONITOR
    assert window.program.session.stage is Stage.IDLE


def test_window_comes_up_without_numpy() -> None:
    code = "import sys, app.main, app.views.main_window; print('numpy' in sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert found.stdout.strip() == "False"


def test_first_map_comes_without_an_import_in_the_windows_thread(tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-c", _DRAW_A_MAP, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert found.stdout.split() == ["True", "False"]
