"""The sliders of the Settings page, with a model and without."""

from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

from app.state.budget_range import free_range
from app.theme.palette import DARK, LIGHT
from app.views.memory_settings import MemorySettings
from runtime.protocol.machine import MemoryHolder
from runtime.protocol.messages import DescribeMachine, MachineDescribed, SetBudgets
from tests.gui.text.test_units import plain
from tests.support.monitor_stage import DEVICE, GIB, MonitorStage, machine_with_device, ready_stage
from tests.support.window_values import some_machine


def shown(widget: QWidget) -> str:
    return plain(" ".join(each.text() for each in widget.findChildren(QLabel)))


def settings_of(stage: MonitorStage, qtbot: QtBot) -> MemorySettings:
    view = MemorySettings(stage.monitor, LIGHT)
    qtbot.addWidget(view)
    view.resize(700, 300)
    view.show()
    return view


def test_loaded_model_is_changed_without_loading_it_again(
    stage: MonitorStage, qtbot: QtBot
) -> None:
    num_looks = stage.client.count(DescribeMachine)
    view = settings_of(stage, qtbot)
    assert stage.client.count(DescribeMachine) == num_looks + 1, "names are those of now"
    assert view.live.isVisible()
    assert not view.next.isVisible()
    text = shown(view.live)
    assert "prompt" in text
    assert "context" in text
    assert "Dotted: the reserve" in text
    slider = view.live.vram.slider
    QTest.mouseClick(slider, Qt.MouseButton.LeftButton, pos=QPoint(slider.width() // 4, 12))
    asked = stage.client.last(SetBudgets).budgets.vram_bytes[DEVICE]
    assert asked == pytest.approx(3 * GIB, rel=0.1)
    view.show_palette(DARK)


def test_without_a_model_the_budgets_are_those_of_the_next(
    empty_stage: MonitorStage, qtbot: QtBot
) -> None:
    view = settings_of(empty_stage, qtbot)
    assert not view.live.isVisible()
    assert view.next.isVisible()
    assert "this is what the next one may take" in shown(view.next)
    budgets = empty_stage.monitor.session.budgets
    slider = view.next.vram.slider
    QTest.mouseClick(slider, Qt.MouseButton.LeftButton, pos=QPoint(slider.width() // 4, 12))
    qtbot.waitUntil(lambda: DEVICE in budgets.vram_bytes)
    assert budgets.vram_bytes[DEVICE] == slider.chosen_bytes()
    slider = view.next.ram.slider
    QTest.mouseClick(slider, Qt.MouseButton.LeftButton, pos=QPoint(slider.width() // 2, 12))
    qtbot.waitUntil(lambda: budgets.ram_bytes == slider.chosen_bytes())
    view.next.ram.automatic.click()
    assert budgets.ram_bytes is None


def test_before_this_pc_is_known_nothing_is_shown(tmp_path: Path, qtbot: QtBot) -> None:
    stage = ready_stage(tmp_path, is_loaded=False)
    stage.monitor.session._machine = None
    view = settings_of(stage, qtbot)
    assert not view.next.isVisible()
    answer = MachineDescribed(
        request_id=stage.client.last(DescribeMachine).request_id, machine=some_machine()
    )
    stage.monitor.session._on_machine(answer)
    assert view.next.isVisible()
    assert view.next.vram.isHidden()
    stage.close()


def test_range_for_any_model_is_what_is_free_less_the_reserve_with_names() -> None:
    holder = MemoryHolder(name="a browser", process_id=7, held_bytes=3 * GIB)
    machine = msgspec.structs.replace(
        machine_with_device(), ram_held_by=[holder], ram_reserve_bytes=2 * GIB
    )
    ram = free_range(machine, None)
    assert (ram.total_bytes, ram.others_bytes, ram.reserve_bytes) == (32 * GIB, 8 * GIB, 2 * GIB)
    assert ram.most_bytes == 22 * GIB
    assert ram.holders == (("a browser", 3 * GIB),)
    card = free_range(machine, machine.devices[0])
    assert card.total_bytes == 12 * GIB
    assert card.most_bytes == machine.devices[0].free_bytes
