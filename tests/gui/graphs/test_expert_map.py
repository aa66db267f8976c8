"""The expert map as pixels, and what it names."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.graphs.expert_grid import MapMode
from app.graphs.expert_map import ExpertMapView, PointedExpert, colour_table
from app.theme.palette import DARK, LIGHT, Palette
from runtime.protocol.telemetry import ExpertMap
from tests.support.expert_maps import some_expert_map
from tests.support.paint_counts import PaintCounts

BOTH = pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])


def tiny_map() -> ExpertMap:
    """Two layers of four experts; each tier's strongest is at full use."""
    return ExpertMap(
        num_layers=2,
        num_experts=4,
        use=bytes([200, 10, 200, 200, 200, 200, 200, 10]),
        tier=bytes([2, 2, 1, 0, 0, 1, 2, 2]),
        bits=bytes([4, 4, 8, 16, 16, 8, 4, 4]),
    )


@pytest.fixture
def view(qtbot: QtBot) -> ExpertMapView:
    view = ExpertMapView(LIGHT)
    qtbot.addWidget(view)
    view.resize(400, 200)
    view.show_map(tiny_map())
    view.show()
    return view


def test_map_pixels_are_the_tiers_colours_in_order(view: ExpertMapView) -> None:
    image = view.image()
    row = [image.pixelColor(x, 0).name().upper() for x in range(4)]
    assert row == [LIGHT.vram, LIGHT.ram, LIGHT.drive, LIGHT.drive_weak]


def test_map_on_screen_shows_the_bands(view: ExpertMapView) -> None:
    picture = view.grab().toImage()
    ratio = picture.width() / view.width()
    colours = [picture.pixelColor(round(x * ratio), round(50 * ratio)) for x in (50, 150, 250)]
    assert [c.name().upper() for c in colours] == [LIGHT.vram, LIGHT.ram, LIGHT.drive]


def test_map_in_other_palette_and_mode_has_its_colours(view: ExpertMapView) -> None:
    view.show_palette(DARK)
    assert view.image().pixelColor(0, 0).name().upper() == DARK.vram
    view.show_mode(MapMode.BITS, is_sorted=False)
    row = [view.image().pixelColor(x, 0).name().upper() for x in range(4)]
    assert row == [DARK.bits_4, DARK.bits_4, DARK.bits_8, DARK.bits_16]


@BOTH
@pytest.mark.parametrize("mode", list(MapMode))
def test_map_has_a_colour_for_every_index(palette: Palette, mode: MapMode, qtbot: QtBot) -> None:
    view = ExpertMapView(palette)
    qtbot.addWidget(view)
    view.show_mode(mode, is_sorted=True)
    view.show_map(some_expert_map(8, 32))
    table = colour_table(palette, mode)
    highest = int(view.grid.indices().max())
    assert highest < len(table)
    assert all(QColor.fromRgba(int(colour)).alpha() == 255 for colour in table[:highest])


def test_map_pointer_names_the_expert(view: ExpertMapView, qtbot: QtBot) -> None:
    found: list[PointedExpert | None] = []
    view.pointed.connect(found.append)
    QTest.mouseMove(view, QPoint(350, 150))
    assert found[-1] is not None
    assert (found[-1].layer, found[-1].expert, found[-1].tier, found[-1].bits) == (1, 3, 2, 4)
    view.leaveEvent(None)  # type: ignore[arg-type]
    assert found[-1] is None


def test_map_keys_walk_over_the_experts(view: ExpertMapView) -> None:
    found: list[PointedExpert | None] = []
    view.pointed.connect(found.append)
    view.setFocus()
    keys = (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Left)
    for key in keys:
        QTest.keyClick(view, key)
    cells = [(each.layer, each.expert) for each in found if each is not None]
    assert cells[0] == (0, 3)
    assert cells[1] == (0, 2)
    assert cells[-1] == (1, 0)


def test_map_follows_the_named_cell_when_the_map_changes(view: ExpertMapView) -> None:
    found: list[PointedExpert | None] = []
    view.pointed.connect(found.append)
    QTest.mouseMove(view, QPoint(50, 50))
    first = found[-1]
    assert first is not None
    changed = tiny_map()
    view.show_map(
        ExpertMap(
            num_layers=2,
            num_experts=4,
            use=changed.use,
            tier=bytes([0, 2, 1, 2, 0, 1, 2, 2]),
            bits=changed.bits,
        )
    )
    second = found[-1]
    assert second is not None
    assert (first.expert, second.expert) == (3, 0)


def test_map_that_is_as_before_is_not_drawn_again(view: ExpertMapView, qtbot: QtBot) -> None:
    qtbot.waitExposed(view)
    counts = PaintCounts(view)
    QTest.qWait(50)
    counts.take()
    for _ in range(5):
        view.show_map(tiny_map())
        QTest.qWait(5)
    assert counts.take() == 0
    view.show_mode(MapMode.USE, is_sorted=True)
    QTest.qWait(20)
    assert counts.take() > 0


def test_map_empty_draws_and_names_nothing(qtbot: QtBot) -> None:
    view = ExpertMapView(DARK)
    qtbot.addWidget(view)
    view.resize(100, 50)
    found: list[object] = []
    view.pointed.connect(found.append)
    QTest.mouseMove(view, QPoint(20, 20))
    QTest.keyClick(view, Qt.Key.Key_Right)
    assert [each for each in found if each is not None] == []
    assert view.grab().toImage().pixelColor(50, 25).name().upper() == DARK.empty


def test_map_small_tells_of_a_click_and_names_nothing(qtbot: QtBot) -> None:
    view = ExpertMapView(LIGHT, is_small=True)
    qtbot.addWidget(view)
    view.resize(100, 100)
    view.show_map(tiny_map())
    with qtbot.waitSignal(view.clicked), qtbot.assertNotEmitted(view.pointed):
        QTest.mouseClick(view, Qt.MouseButton.LeftButton, pos=QPoint(50, 50))
