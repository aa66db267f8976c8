"""Sliders of the Monitor and the Models page."""

import time

import msgspec
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QLabel
from pytestqt.qtbot import QtBot

from app.theme.palette import DARK, LIGHT
from app.theme.stylesheet import style_sheet
from app.views.budget_card import BudgetCard
from app.views.candidate_view import CandidateView
from app.views.live_budget_card import LiveBudgetCard
from app.views.pieces import label
from runtime.protocol.messages import (
    BudgetsPlanned,
    BudgetsSet,
    CommandFailed,
    PlanBudgets,
    PlanModel,
    SetBudgets,
)
from runtime.protocol.plan import BudgetCurve
from runtime.protocol.values import Budgets
from tests.gui.text.test_units import plain
from tests.support.monitor_stage import (
    DEVICE,
    GIB,
    MonitorStage,
    loaded_with_device,
    machine_with_device,
    plan_with_device,
)
from tests.support.session_replies import answer_plan
from tests.support.window_values import some_curve, some_error, some_machine, some_plan


@pytest.fixture
def live_card(stage: MonitorStage, qtbot: QtBot) -> LiveBudgetCard:
    card = LiveBudgetCard(stage.monitor, LIGHT)
    qtbot.addWidget(card)
    card.resize(700, 180)
    card.show()
    return card


def test_live_card_shows_what_is_in_force(live_card: LiveBudgetCard) -> None:
    assert live_card.vram.slider.chosen_bytes() == pytest.approx(7.4 * GIB, rel=0.01)
    assert live_card.ram.slider.chosen_bytes() == pytest.approx(9.2 * GIB, rel=0.01)
    text = plain(live_card.effect())
    assert text.startswith("Experts: 31 % in VRAM (simulated), 52 % in RAM, 17 % on the drive")
    assert "19–24 tokens/s" in text
    shown = plain(" ".join(each.text() for each in live_card.findChildren(QLabel)))
    assert "of 12.0 GiB · others hold 1.1 GiB · reserve 819 MiB" in shown
    assert "VRAM budget (simulated)" in shown


def test_live_card_moving_previews_and_letting_go_applies(
    live_card: LiveBudgetCard, stage: MonitorStage
) -> None:
    slider = live_card.vram.slider
    y = slider.height() // 2
    QTest.mousePress(slider, Qt.MouseButton.LeftButton, pos=QPoint(slider.width() // 4, y))
    asked = stage.client.last(PlanModel).budgets.vram_bytes[DEVICE]
    assert asked == pytest.approx(3 * GIB, rel=0.1)
    assert stage.client.count(SetBudgets) == 0
    smaller = msgspec.structs.replace(plan_with_device(), vram_bytes=0, device="cpu")
    answer_plan(stage.client, smaller)
    assert "The graphics card is not used. It is of use from 2.0 GiB on." in plain(
        live_card.effect()
    )
    QTest.mouseRelease(slider, Qt.MouseButton.LeftButton, pos=QPoint(slider.width() // 4, y))
    command = stage.client.last(SetBudgets)
    assert command.budgets.vram_bytes == {DEVICE: asked}
    assert "Changing" in live_card.status()
    plan = msgspec.structs.replace(plan_with_device(), vram_bytes=asked, budgets=command.budgets)
    stage.client.answer(
        BudgetsSet(request_id=command.request_id, model=loaded_with_device(), plan=plan)
    )
    assert live_card.status() == "In force."
    assert slider.chosen_bytes() == pytest.approx(asked, rel=0.01)


def test_live_card_says_what_of_the_graphics_card_is_kept(
    live_card: LiveBudgetCard, stage: MonitorStage
) -> None:
    stage.monitor.live.carry_out(Budgets(vram_bytes={DEVICE: 0}))
    command = stage.client.last(SetBudgets)
    plan = msgspec.structs.replace(
        plan_with_device(), vram_bytes=GIB, budgets=Budgets(vram_bytes={DEVICE: GIB})
    )
    stage.client.answer(
        BudgetsSet(request_id=command.request_id, model=loaded_with_device(), plan=plan)
    )
    assert "It keeps 1.0 GiB of the graphics card" in plain(live_card.status())


def test_live_card_refused_change_says_why_and_goes_back(
    live_card: LiveBudgetCard, stage: MonitorStage
) -> None:
    slider = live_card.ram.slider
    before = slider.chosen_bytes()
    QTest.mouseClick(slider, Qt.MouseButton.LeftButton, pos=QPoint(slider.width() // 5, 12))
    assert slider.chosen_bytes() != before
    command = stage.client.last(SetBudgets)
    stage.client.answer(CommandFailed(request_id=command.request_id, error=some_error()))
    assert "is not a model folder" in live_card.status()
    assert slider.chosen_bytes() == before
    live_card.show_palette(DARK)


def test_live_card_without_a_model_stays_blank(empty_stage: MonitorStage, qtbot: QtBot) -> None:
    card = LiveBudgetCard(empty_stage.monitor, LIGHT)
    qtbot.addWidget(card)
    assert card.effect() == ""


@pytest.fixture
def card(qtbot: QtBot) -> BudgetCard:
    card = BudgetCard(LIGHT)
    qtbot.addWidget(card)
    card.resize(600, 300)
    card.show()
    return card


def test_card_vram_slider_is_there_only_with_a_device(card: BudgetCard) -> None:
    plan, machine = plan_with_device(), machine_with_device()
    card.show_vram(plan, None, None)
    assert card.vram.isHidden()
    card.show_vram(plan, machine.devices[0], None)
    assert not card.vram.isHidden()
    assert card.vram.automatic.isChecked()
    assert card.vram.slider.chosen_bytes() == pytest.approx(7.4 * GIB, rel=0.01)


def test_card_moved_slider_plans_and_automatic_gives_it_back(
    card: BudgetCard, qtbot: QtBot
) -> None:
    card.show_vram(plan_with_device(), machine_with_device().devices[0], None)
    slider = card.vram.slider
    with qtbot.waitSignal(card.vram_changed, timeout=3000) as moved:
        QTest.mouseClick(slider, Qt.MouseButton.LeftButton, pos=QPoint(slider.width() // 4, 12))
    assert moved.args is not None
    assert moved.args[0] == DEVICE
    assert moved.args[1] == slider.chosen_bytes()
    assert not card.vram.automatic.isChecked()
    with qtbot.waitSignal(card.vram_changed) as automatic:
        card.vram.automatic.click()
    assert automatic.args == [DEVICE, None]
    with qtbot.waitSignal(card.vram_changed) as fixed:
        card.vram.automatic.click()
    assert fixed.args == [DEVICE, slider.chosen_bytes()]


def test_card_says_what_to_expect_while_the_plan_is_made(card: BudgetCard) -> None:
    plan, curve = plan_with_device(), curve_of_device()
    card.show_vram(plan, machine_with_device().devices[0], None)
    card.show_effect(plan, None, is_planning=False)
    exact = plain(card.effect())
    assert exact.startswith("Experts: 31 % in VRAM (simulated)")
    slider = card.vram.slider
    QTest.mouseClick(slider, Qt.MouseButton.LeftButton, pos=QPoint(0, 12))
    assert plain(card.effect()) == exact
    card.show_effect(plan, curve, is_planning=True)
    expected = plain(card.effect())
    assert expected.startswith("Experts: ")
    assert expected != exact
    assert "VRAM" not in expected
    QTest.mouseClick(slider, Qt.MouseButton.LeftButton, pos=QPoint(slider.width() - 1, 12))
    assert "50 % in VRAM (simulated)" in plain(card.effect())
    card.show_effect(plan, curve, is_planning=False)
    assert plain(card.effect()) == exact
    nothing = msgspec.structs.replace(curve, context_tokens=[0] * 6)
    card.show_effect(plan, nothing, is_planning=True)
    assert plain(card.effect()) == exact


def curve_of_device() -> BudgetCurve:
    """Return a curve over 0, 4 and 8 GiB of VRAM and 6 and 12 GiB of RAM."""
    return msgspec.structs.replace(
        some_curve(plan_with_device().kind, DEVICE),
        vram_budgets=[0, 4 * GIB, 8 * GIB],
        ram_budgets=[6 * GIB, 12 * GIB],
        automatic_vram=8 * GIB,
        automatic_ram=[12 * GIB, 9 * GIB, 6 * GIB],
    )


def test_live_card_says_what_to_expect_until_the_plan_comes(
    live_card: LiveBudgetCard, stage: MonitorStage
) -> None:
    curve = curve_of_device()
    for command in [each for each in stage.client.sent if isinstance(each, PlanBudgets)]:
        stage.client.answer(BudgetsPlanned(request_id=command.request_id, curve=curve))
    stage.monitor.live.move_vram(DEVICE, 8 * GIB)
    assert plain(live_card.effect()).startswith("Experts: 50 % in VRAM (simulated)")


def test_preview_of_a_whole_curve_follows_the_hand_within_50_ms(
    live_card: LiveBudgetCard, stage: MonitorStage
) -> None:
    vram = [0, *(GIB * (64 + 7 * step) // 32 for step in range(32))]
    ram = [GIB * (2 + 2 * step) for step in range(9)]
    number = len(vram) * len(ram)
    curve = msgspec.structs.replace(
        some_curve(plan_with_device().kind, DEVICE),
        num_experts=6144,
        vram_budgets=vram,
        ram_budgets=ram,
        automatic_ram=[ram[-1]] * len(vram),
        num_in_vram=[index * 5 for index in range(number)],
        num_in_ram=[index * 4 for index in range(number)],
        context_tokens=[4096] * number,
        prompt_tokens_per_s_low=[100.0] * number,
        prompt_tokens_per_s_high=[200.0] * number,
        decode_tokens_per_s_low=[5 + index / 10 for index in range(number)],
        decode_tokens_per_s_high=[8 + index / 10 for index in range(number)],
        drive_bytes_per_token=[1e6] * number,
    )
    for command in [each for each in stage.client.sent if isinstance(each, PlanBudgets)]:
        stage.client.answer(BudgetsPlanned(request_id=command.request_id, curve=curve))
    took_s, seen = [], set()
    slider = live_card.vram.slider
    slider.setSliderDown(True)
    for step in range(1, 41):
        started_s = time.perf_counter()
        slider.setValue(step * 20)
        live_card.repaint()
        took_s.append(time.perf_counter() - started_s)
        seen.add(live_card.effect())
    slider.setSliderDown(False)
    assert len(seen) > 20, "the words follow"
    assert sorted(took_s)[len(took_s) // 2] < 0.05


def test_card_ram_and_context_are_chosen(card: BudgetCard, qtbot: QtBot) -> None:
    card.show_ram(some_plan(), some_machine(), 150 << 20)
    assert not card.ram.automatic.isChecked()
    assert card.ram.slider.chosen_bytes() == pytest.approx(150 << 20, rel=0.01)
    card.show_context(3000, 4096, 8192)
    box = card._context
    assert [box.itemData(index) for index in range(box.count())] == [
        0,
        1024,
        2048,
        3000,
        4096,
        8192,
    ]
    assert box.currentData() == 3000
    with qtbot.waitSignal(card.context_changed) as chosen:
        card._on_context_chosen(1)
    assert chosen.args == [1024]
    card.show_palette(DARK)


def test_candidate_shows_the_device_of_the_machine(stage: MonitorStage, qtbot: QtBot) -> None:
    session = stage.monitor.session
    view = CandidateView(DARK)
    qtbot.addWidget(view)
    assert session.candidate is not None
    view.show_candidate(
        session.candidate,
        loaded_folder="",
        is_busy=False,
        machine=session.machine,
        limits=session.budgets.limits(),
    )
    budgets = view.findChild(BudgetCard)
    assert budgets is not None
    assert not budgets.vram.isHidden()
    view.show_palette(LIGHT)


def test_context_above_what_the_model_can_do_shows_its_most(qtbot: QtBot) -> None:
    card = BudgetCard(LIGHT)
    qtbot.addWidget(card)
    card.show_context(8192, 512, 512)
    (box,) = card.findChildren(QComboBox)
    assert box.currentData() == 512
    assert max(box.itemData(index) for index in range(box.count())) == 512


def test_context_of_a_second_model_has_room_for_its_words(card: BudgetCard, qtbot: QtBot) -> None:
    box = card._context
    card.show_context(0, 0, 0)
    card.resize(900, 400)
    card.show()
    qtbot.waitUntil(box.isVisible)
    before = box.width()
    card.show_context(0, 131_072, 131_072)
    words = box.fontMetrics().horizontalAdvance(box.currentText())
    qtbot.waitUntil(lambda: box.width() > max(before, words))


def test_live_card_shows_the_ram_that_takes_in_what_leaves_the_card(
    live_card: LiveBudgetCard, stage: MonitorStage
) -> None:
    slider = live_card.vram.slider
    QTest.mousePress(slider, Qt.MouseButton.LeftButton, pos=QPoint(0, slider.height() // 2))
    assert stage.client.last(PlanModel).budgets.ram_bytes is None
    answer_plan(stage.client, msgspec.structs.replace(plan_with_device(), ram_bytes=3 * GIB))
    shown = plain(" ".join(each.text() for each in live_card.ram.findChildren(QLabel)))
    assert "3.0 GiB" in shown


def test_label_with_an_error_is_red_text_without_a_frame(qtbot: QtBot) -> None:
    line = label("What is wrong", "error")
    qtbot.addWidget(line)
    line.setStyleSheet(style_sheet(LIGHT))
    line.resize(120, 24)
    image = line.grab().toImage()
    colours = {image.pixelColor(x, y).name().upper() for x in range(120) for y in range(24)}
    assert LIGHT.error in colours
    assert LIGHT.error_area not in colours
    assert {image.pixelColor(x, 0).name().upper() for x in range(120)} != {LIGHT.error}
