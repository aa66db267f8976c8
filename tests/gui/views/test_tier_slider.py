"""The slider over one memory."""

import dataclasses

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.state.budget_range import BudgetRange
from app.theme.palette import DARK, LIGHT
from app.views.tier_slider import TierSlider
from tests.gui.text.test_units import plain

LIMITED = BudgetRange(
    total_bytes=12_000, least_bytes=2_000, most_bytes=10_000, others_bytes=1_500, reserve_bytes=500
)
ROOMY = BudgetRange(
    total_bytes=100_000, least_bytes=300, most_bytes=600, others_bytes=0, reserve_bytes=0
)


@pytest.fixture
def slider(qtbot: QtBot) -> TierSlider:
    slider = TierSlider(LIGHT, "vram", "VRAM budget", is_from_zero=True)
    qtbot.addWidget(slider)
    slider.resize(416, 24)
    slider.show_range(LIMITED)
    slider.show()
    return slider


def test_slider_stands_where_it_is_put(slider: TierSlider) -> None:
    slider.show_bytes(6_000)
    assert slider.chosen_bytes() == pytest.approx(6_000, abs=12)
    slider.show_bytes(0)
    assert slider.chosen_bytes() == 0


def test_slider_dragged_moves_and_tells_when_it_is_let_go(slider: TierSlider, qtbot: QtBot) -> None:
    moved: list[int] = []
    gone: list[int] = []
    slider.moved_to.connect(moved.append)
    slider.let_go.connect(gone.append)
    QTest.mousePress(slider, Qt.MouseButton.LeftButton, pos=QPoint(108, 12))
    assert slider.is_held
    assert moved[-1] == pytest.approx(3_000, abs=30)
    QTest.mouseMove(slider, QPoint(208, 12))
    assert moved[-1] == pytest.approx(6_000, abs=30)
    slider.show_bytes(0)
    assert slider.chosen_bytes() == moved[-1]
    assert gone == []
    QTest.mouseRelease(slider, Qt.MouseButton.LeftButton, pos=QPoint(208, 12))
    assert gone == [moved[-1]]
    assert not slider.is_held


def test_slider_never_reaches_what_cannot_be_given(slider: TierSlider) -> None:
    QTest.mouseClick(slider, Qt.MouseButton.LeftButton, pos=QPoint(410, 12))
    assert slider.chosen_bytes() == LIMITED.most_bytes


def test_slider_keys_count_as_let_go_after_a_rest(slider: TierSlider, qtbot: QtBot) -> None:
    slider.show_bytes(6_000)
    with qtbot.waitSignal(slider.let_go, timeout=3000) as gone:
        QTest.keyClick(slider, Qt.Key.Key_Right)
        assert slider.is_held
    assert gone.args is not None
    assert gone.args[0] > 6_000


def test_slider_with_room_to_spare_spans_what_is_of_use(qtbot: QtBot) -> None:
    slider = TierSlider(DARK, "ram", "RAM budget", is_from_zero=False)
    qtbot.addWidget(slider)
    slider.resize(416, 24)
    slider.show_range(ROOMY)
    QTest.mouseClick(slider, Qt.MouseButton.LeftButton, pos=QPoint(8, 12))
    assert slider.chosen_bytes() == 300
    QTest.mouseClick(slider, Qt.MouseButton.LeftButton, pos=QPoint(208, 12))
    assert slider.chosen_bytes() == pytest.approx(450, abs=3)


def test_slider_on_a_busy_pc_spans_what_is_of_use_where_that_is_free(qtbot: QtBot) -> None:
    busy = dataclasses.replace(ROOMY, others_bytes=90_000)
    slider = TierSlider(DARK, "ram", "RAM budget", is_from_zero=False)
    qtbot.addWidget(slider)
    slider.resize(416, 24)
    slider.show_range(busy)
    QTest.mouseClick(slider, Qt.MouseButton.LeftButton, pos=QPoint(208, 12))
    assert slider.chosen_bytes() == pytest.approx(450, abs=3)


def test_slider_without_choice_is_disabled(slider: TierSlider) -> None:
    slider.show_range(
        BudgetRange(total_bytes=10, least_bytes=0, most_bytes=0, others_bytes=10, reserve_bytes=0)
    )
    assert not slider.isEnabled()
    slider.show_range(LIMITED)
    assert slider.isEnabled()


def test_slider_draws_given_part_dots_the_reserve_and_hatches_what_others_hold(
    slider: TierSlider,
) -> None:
    slider.show_bytes(6_000)
    image = slider.grab().toImage()
    assert image.pixelColor(60, 12).name().upper() == LIGHT.vram
    assert image.pixelColor(300, 12).name().upper() == LIGHT.empty

    def drawn(left: int, right: int) -> float:
        """Return which part of a stretch is drawn over."""
        points = [(x, y) for x in range(left, right) for y in range(10, 15)]
        marked = [1 for x, y in points if image.pixelColor(x, y).name().upper() == LIGHT.dim]
        return len(marked) / len(points)

    # The reserve from 10,000 to 10,500, others from there on.
    assert 0.1 < drawn(344, 356) < 0.9
    assert 0.05 < drawn(362, 404) < 0.5
    assert drawn(344, 356) != drawn(362, 404)
    slider.show_palette(DARK)
    assert slider.grab().toImage().pixelColor(60, 12).name().upper() == DARK.vram


def test_slider_names_who_holds_the_rest_in_its_tooltip(slider: TierSlider) -> None:
    named = dataclasses.replace(LIMITED, holders=(("a browser", 900 << 20), ("a game", None)))
    slider.show_range(named)
    lines = plain(slider.toolTip()).splitlines()
    assert "Hatched: held by other programs" in lines[0]
    assert "reserve" in lines[0]
    assert lines[1:] == ["a browser: 900 MiB", "a game"]
