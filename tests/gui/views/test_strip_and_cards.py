"""The strip, the cards beside a chat, and the line under an answer."""

import msgspec
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

from app.state.drive_warning import DriveWarning, use_of_answer
from app.theme.palette import DARK, LIGHT
from app.views.answer_cards import AnswerCards
from app.views.answer_view import AnswerView
from app.views.chat_view import ChatView
from app.views.small_map_card import SmallMapCard
from app.views.strip import Strip
from runtime.protocol.chat import GenerationStats
from runtime.protocol.plan import Reason, ReasonCode
from runtime.protocol.telemetry import ExpertMap
from runtime.protocol.values import Tier, TierCount, WeightFormat
from tests.gui.text.test_units import plain
from tests.support.drive_values import answer_with
from tests.support.monitor_stage import MonitorStage, loaded_with_device, plan_with_device
from tests.support.played_answers import finish, write
from tests.support.unnarrowed import now
from tests.support.window_values import some_forecast


def shown(widget: QWidget) -> str:
    """Return the words that are on the screen."""
    return plain(
        " | ".join(each.text() for each in widget.findChildren(QLabel) if each.isVisible())
    )


@pytest.fixture
def strip(qtbot: QtBot) -> Strip:
    strip = Strip(LIGHT)
    qtbot.addWidget(strip)
    strip.resize(1276, 40)
    strip.show_model(loaded_with_device(), "", plan_with_device())
    strip.show_answer(msgspec.structs.replace(answer_with(0.7), predicted=some_forecast()))
    strip.show()
    return strip


def test_strip_says_tiers_rate_forecast_and_power(strip: Strip) -> None:
    text = shown(strip)
    for part in ("5.1 GiB VRAM (simulated)", "8.6 GiB RAM", "2.8 GiB drive", "21.4", "59 W"):
        assert part in text
    assert "forecast 19–24" in text
    tooltip = plain(strip._bar.toolTip())
    assert "VRAM (simulated): 1,904 experts, 5.1 GiB" in tooltip
    assert "Beside the experts, what every token uses: 1.0 GiB in VRAM" in tooltip


def test_strip_says_the_mean_bits_of_experts_in_several_formats(strip: Strip) -> None:
    model = msgspec.structs.replace(loaded_with_device(), expert_format=WeightFormat.Q4K_G32)
    strip.show_model(model, "", plan_with_device())
    assert "4.5 bits" in shown(strip)
    model = msgspec.structs.replace(model, mean_bits=5.1667)
    strip.show_model(model, "", plan_with_device())
    assert "5.2 bits" in shown(strip)


def test_strip_warning_is_shown_clicked_and_gone(strip: Strip, qtbot: QtBot) -> None:
    assert not strip.drive_button.isVisible()
    strip.show_drive(DriveWarning(use_of_answer(answer_with(0.7))))
    assert plain(strip.drive_button.text()) == "waiting for the drive 70 %"
    assert strip.drive_button.accessibleName() == strip.drive_button.text()
    with qtbot.waitSignal(strip.drive_clicked):
        strip.drive_button.click()
    strip.show_drive(None)
    assert not strip.drive_button.isVisible()


def test_strip_says_what_was_given_back_until_it_is_taken_again(strip: Strip, qtbot: QtBot) -> None:
    plan, model = plan_with_device(), loaded_with_device()
    assert not strip.memory_button.isVisible()
    given = Reason(
        code=ReasonCode.RAM_GIVEN_BACK,
        parameters={"given_bytes": 2 << 30, "wanted_bytes": 8 << 30},
    )
    strip.show_model(model, "", msgspec.structs.replace(plan, reasons=[given]))
    assert plain(strip.memory_button.text()) == "gave back 2.0 GiB of RAM"
    assert strip.memory_button.accessibleName() == strip.memory_button.text()
    assert "2.0 GiB of the 8.0 GiB" in plain(strip.memory_button.toolTip())
    with qtbot.waitSignal(strip.memory_clicked):
        strip.memory_button.click()
    taken = Reason(code=ReasonCode.RAM_TAKEN_AGAIN, parameters={"wanted_bytes": 8 << 30})
    strip.show_model(model, "", msgspec.structs.replace(plan, reasons=[taken]))
    assert not strip.memory_button.isVisible()


def test_strip_narrow_lets_go_of_what_matters_least(strip: Strip) -> None:
    strip.show_drive(DriveWarning(use_of_answer(answer_with(0.7))))
    strip.resize(640, 40)
    text = shown(strip)
    assert "Qwen3-30B-A3B" in text
    assert "21.4" in text
    assert strip.drive_button.isVisible()
    assert "forecast" not in text
    assert strip.drive_button.geometry().right() < 640
    strip.resize(1400, 40)
    assert "forecast" in shown(strip)
    strip.show_palette(DARK)


def test_strip_shows_work_beside_a_model_and_keeps_its_cancel_when_narrow(
    strip: Strip, qtbot: QtBot
) -> None:
    strip.show_work("Preparing · 41 %", can_cancel=True)
    strip.resize(1400, 40)
    assert "Preparing · 41 %" in shown(strip)
    strip.resize(420, 40)
    assert strip.cancel_button.isVisible()
    assert strip.cancel_button.geometry().right() < 420
    with qtbot.waitSignal(strip.cancel_clicked):
        QTest.mouseClick(strip.cancel_button, Qt.MouseButton.LeftButton)
    strip.show_work("", can_cancel=False)
    assert not strip.cancel_button.isVisible()


def test_strip_without_a_model_shows_what_goes_on(strip: Strip) -> None:
    strip.show_model(None, "Loading", None)
    assert shown(strip).replace(" | ", "") == "Loading"


@pytest.fixture
def cards(stage: MonitorStage, qtbot: QtBot) -> AnswerCards:
    cards = AnswerCards(stage.monitor, LIGHT)
    qtbot.addWidget(cards)
    cards.resize(284, 800)
    cards.show()
    return cards


def test_cards_draw_the_map_and_the_time_of_now(
    cards: AnswerCards, stage: MonitorStage, qtbot: QtBot
) -> None:
    cards.show_answer(answer_with(0.5))
    assert "waiting for the drive 50 %" in shown(cards)
    stage.play(60)
    qtbot.waitUntil(lambda: "48 layers × 128 experts" in shown(cards), timeout=3000)
    qtbot.waitUntil(lambda: "graphics card 33 %" in shown(cards), timeout=3000)
    assert "7.0 GB per 100 tokens" in plain(cards.drive.text())
    assert "Fine for now." in cards.drive.text()
    cards.show_palette(DARK)
    assert cards.map_card.map is not None
    before = cards.map_card.map.image().pixelColor(0, 0)
    assert abs(before.red() - QColor(DARK.vram).red()) < 20


def test_cards_say_of_a_model_without_experts_that_it_has_none(qtbot: QtBot) -> None:
    card = SmallMapCard(LIGHT)
    qtbot.addWidget(card)
    card.show()
    card.show_map(ExpertMap(num_layers=0, num_experts=0, use=b""), is_simulated=False)
    assert "This model has no experts." in shown(card)
    assert card.map is not None
    assert card.map.accessibleDescription() == "This model has no experts."


def test_cards_click_on_the_map_wants_the_monitor(
    cards: AnswerCards, stage: MonitorStage, qtbot: QtBot
) -> None:
    assert now(cards.map_card.map) is None
    stage.play(1)
    qtbot.waitUntil(lambda: now(cards.map_card.map) is not None, timeout=3000)
    small = cards.map_card.map
    assert small is not None
    with qtbot.waitSignal(cards.map_clicked):
        QTest.mouseClick(small, Qt.MouseButton.LeftButton, pos=QPoint(20, 20))


def test_cards_hold_the_map_until_it_can_be_drawn(
    cards: AnswerCards, stage: MonitorStage, qtbot: QtBot
) -> None:
    cards.hold_map(True)
    stage.play(1)
    with qtbot.waitSignal(cards.clock.fast):
        pass
    assert now(cards.map_card.map) is None
    cards.hold_map(False)
    qtbot.waitUntil(lambda: now(cards.map_card.map) is not None, timeout=3000)


def test_cards_say_when_the_drive_costs_too_much_or_nothing(
    cards: AnswerCards, stage: MonitorStage
) -> None:
    assert cards.drive.isHidden()
    stage.monitor.drive.take_answer(answer_with(0.7))
    assert "This costs time or energy." in cards.drive.text()
    idle = msgspec.structs.replace(answer_with(0.0), drive_bytes_read=0)
    stage.monitor.drive.take_answer(idle)
    assert cards.drive.text() == "Nothing is read from the drive."


def test_cards_before_the_first_answer_wait(cards: AnswerCards) -> None:
    cards.show_answer(None)
    assert "Ask something, then this fills." in shown(cards)


def line_under(page: ChatView, stage: MonitorStage, qtbot: QtBot, stats: GenerationStats) -> str:
    """Ask in the page, let it be answered; return what is on the screen about the answer."""
    QTest.keyClicks(page.composer.edit, "a question")
    QTest.keyClick(page.composer.edit, Qt.Key.Key_Return)
    num_messages = len(page._chat.messages)
    write(stage.client, "an answer", 1)
    finish(stage.client, stats=stats)
    qtbot.waitUntil(lambda: len(page.messages.views()) == num_messages and page.messages.is_drawn)
    view = page.messages.views()[-1]
    assert isinstance(view, AnswerView)
    qtbot.waitUntil(lambda: "tokens/s" in shown(view))
    return shown(view)


def test_line_under_an_answer_warns_of_that_answer_alone(
    page: ChatView, stage: MonitorStage, qtbot: QtBot
) -> None:
    page.show()
    warning = "waited for the drive 62 % of the time, 20.0 GB per 100 tokens, "
    slow = line_under(page, stage, qtbot, answer_with(0.62))
    assert warning in slow
    assert slow.endswith("ct per 1000 tokens")
    fast = answer_with(0.1)
    assert "waited for the drive" not in line_under(page, stage, qtbot, fast)
    hot = TierCount(tier=Tier.VRAM, hits=1, misses=0, bytes=1)
    on_card = msgspec.structs.replace(fast, tiers=[hot])
    assert line_under(page, stage, qtbot, on_card).endswith("VRAM is simulated")
    first = page.messages.views()[1]
    assert warning in shown(first)
