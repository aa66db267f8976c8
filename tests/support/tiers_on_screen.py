"""The Monitor page as a person has it: what its pixels, cards and curves say, its sliders moved."""

import itertools
import re

import numpy as np
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel

from app.graphs.expert_grid import NUM_LEVELS, MapMode
from app.graphs.expert_map import colour_table
from app.graphs.series import BUCKET_S
from app.text.monitor_words import BudgetWords
from app.theme.apply import palette_for
from app.views.live_budget_card import LiveBudgetCard
from app.views.live_cards import HitCard
from app.views.monitor_view import MonitorView
from app.views.rail import Page
from app.views.tier_slider import TierSlider
from runtime.protocol.values import Tier
from tests.support.window import START_MS, WindowDriver

_DRAG_STEPS = 6
_UNITS = {"MB/s": 1e6, "GB/s": 1e9}


def open_monitor(driver: WindowDriver) -> MonitorView:
    """Show the Monitor page and return it."""
    window = driver.program.window
    window.show_page(Page.MONITOR)
    view = window.page(Page.MONITOR)
    assert isinstance(view, MonitorView)
    return view


def map_shares(driver: WindowDriver, view: MonitorView) -> dict[Tier, float]:
    """Return which part of the expert map on the screen has the colours of each tier."""
    window, shown = driver.program.window, view.map_card.map
    shot = QGuiApplication.primaryScreen().grabWindow(window.winId())
    place = shown.mapTo(window, QPoint(0, 0))
    part = shot.copy(place.x(), place.y(), shown.width(), shown.height())
    image = part.toImage().convertToFormat(QImage.Format.Format_RGB32)
    pixels = np.frombuffer(image.constBits(), np.uint32) | np.uint32(0xFF000000)
    table = colour_table(palette_for(driver.program.settings.values.theme), MapMode.TIER)
    parts = (table[number * NUM_LEVELS :][:NUM_LEVELS] for number in range(len(Tier)))
    counts = [int(np.isin(pixels, colours).sum()) for colours in parts]
    return {tier: count / max(1, pixels.size) for tier, count in zip(Tier, counts, strict=True)}


def hit_percents(view: MonitorView) -> dict[Tier, int]:
    """Return what the hit cards that are seen say, in percent; those without a figure not."""
    found = {}
    for card, tier in zip(view.hits, Tier, strict=True):
        figure = _figure(card)
        if card.isVisible() and figure is not None:
            found[tier] = figure
    return found


def drive_curve_bytes(view: MonitorView) -> float:
    """Return the area below the drive's curve as it is drawn; a point ends what it stands for."""
    units = [each.text() for each in view.throughput.findChildren(QLabel) if each.text() in _UNITS]
    (curve,) = (each for each in view.throughput.plot.curves() if each.colour == "drive")
    area = 0.0
    for part in curve.segments:
        area += part[0][1] * BUCKET_S
        area += sum(y * (x - before) for (before, _), (x, y) in itertools.pairwise(part))
    return area * _UNITS[units[0]]


def drag_to(driver: WindowDriver, view: MonitorView, slider: TierSlider, num_bytes: int) -> None:
    """Take the slider by its handle, move it with the mouse, let go, wait until it is in force."""
    assert slider.isVisible()
    middle = slider.height() // 2
    start, end = (round(slider._x_of(each)) for each in (slider.chosen_bytes(), num_bytes))
    QTest.mousePress(slider, Qt.MouseButton.LeftButton, pos=QPoint(start, middle))
    for step in range(1, _DRAG_STEPS + 1):
        at = start + (end - start) * step // _DRAG_STEPS
        QTest.mouseMove(slider, QPoint(at, middle))
    QTest.mouseRelease(slider, Qt.MouseButton.LeftButton, pos=QPoint(end, middle))
    _wait_in_force(driver, view.budgets)


def press_on(driver: WindowDriver, view: MonitorView, slider: TierSlider, key: Qt.Key) -> None:
    """Move the slider with a key and wait until it is in force."""
    driver.press_on(slider, key)
    _wait_in_force(driver, view.budgets)


def _wait_in_force(driver: WindowDriver, card: LiveBudgetCard) -> None:
    """Wait until the card of the sliders says that the last change is in force."""
    driver.qtbot.waitUntil(
        lambda: (
            not card.ram.slider.is_held
            and not card.vram.slider.is_held
            and driver.program.monitor.live.wanted is None
            and card.status() == BudgetWords.SET
        ),
        timeout=START_MS,
    )


def _figure(card: HitCard) -> int | None:
    texts = (re.fullmatch(r"<?(\d+)\s%", each.text()) for each in card.findChildren(QLabel))
    return next((int(match[1]) for match in texts if match), None)
