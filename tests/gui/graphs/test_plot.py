"""Curves as pixels."""

import pytest
from PySide6.QtGui import QColor, QImage
from pytestqt.qtbot import QtBot

from app.graphs.plot import CurvePlot, DrawnCurve
from app.theme.palette import DARK, LIGHT


@pytest.fixture
def plot(qtbot: QtBot) -> CurvePlot:
    plot = CurvePlot(LIGHT, "Curves")
    qtbot.addWidget(plot)
    plot.resize(400, 160)
    plot.setStyleSheet(f"background: {LIGHT.surface}")
    return plot


def near(image: QImage, colour: str) -> list[tuple[int, int]]:
    """Return the pixels of nearly this colour."""
    wanted = QColor(colour)
    return [
        (x, y)
        for y in range(image.height())
        for x in range(image.width())
        if abs((found := image.pixelColor(x, y)).red() - wanted.red()) < 50
        and abs(found.green() - wanted.green()) < 50
        and abs(found.blue() - wanted.blue()) < 50
    ]


def test_plot_constant_curve_is_a_level_line(plot: CurvePlot) -> None:
    plot.show_curves([DrawnCurve("vram", [[(-60.0, 5.0), (0.0, 5.0)]])])
    pixels = near(plot.grab().toImage(), LIGHT.vram)
    rows = {y for _, y in pixels}
    columns = {x for x, _ in pixels}
    assert len(rows) <= 3
    assert len(columns) > 250


def test_plot_gap_between_segments_stays_empty(plot: CurvePlot) -> None:
    plot.show_curves([DrawnCurve("ram", [[(-60.0, 5.0), (-45.0, 5.0)], [(-15.0, 5.0), (0, 5)]])])
    columns = {x for x, _ in near(plot.grab().toImage(), LIGHT.ram)}
    middle = set(range(180, 240))
    assert columns
    assert not columns & middle


def test_plot_larger_value_is_drawn_higher(plot: CurvePlot) -> None:
    plot.show_curves(
        [
            DrawnCurve("vram", [[(-60.0, 9.0), (0.0, 9.0)]]),
            DrawnCurve("ram", [[(-60.0, 1.0), (0.0, 1.0)]], (2.0, 2.0)),
        ]
    )
    image = plot.grab().toImage()
    high = min(y for _, y in near(image, LIGHT.vram))
    low = min(y for _, y in near(image, LIGHT.ram))
    assert high < low - 40


def test_plot_without_curves_still_has_axes(plot: CurvePlot) -> None:
    plot.show_palette(DARK)
    assert plot.curves() == ()
    assert near(plot.grab().toImage(), DARK.dim)
    assert plot.accessibleName() == "Curves"
