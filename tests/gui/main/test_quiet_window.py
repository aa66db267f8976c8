"""A window that has nothing to do does nothing, and keeps its hands off the graphics card."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.views.rail import Page
from runtime.service.sampling_pace import REST_INTERVAL_S
from tests.gui.main.conftest import StartWindow
from tests.support.paint_counts import PaintCounts

GPU_LIBRARIES = ("libcuda.so", "libnvidia", "libGLX_nvidia", "libvulkan", "libhsa", "libOpenCL")


def test_resting_window_measures_and_draws_once_in_two_seconds(
    start_window: StartWindow, qtbot: QtBot
) -> None:
    driver = start_window(["Yes."])
    window, telemetry = driver.program.window, driver.program.telemetry
    window.resize(1360, 850)
    driver.send("?")
    driver.wait_for_answer()
    cards = driver.program.chat_view.cards
    assert cards.isVisible()
    qtbot.waitUntil(
        lambda: telemetry.latest is not None and not telemetry.is_lively, timeout=30_000
    )
    assert not cards.clock.is_running
    assert cards.map_card.map is not None
    seen, begun_s = telemetry.num_samples, time.monotonic()
    drawn = PaintCounts(cards)
    qtbot.waitUntil(lambda: telemetry.num_samples > seen, timeout=30_000)
    # Loose, because a sample may be read late and the next one in time.
    assert time.monotonic() - begun_s > REST_INTERVAL_S / 4
    qtbot.waitUntil(lambda: not telemetry.is_lively)
    # The map, whose uses fade, and its card below it; not the bars, whose shares are as before.
    assert drawn.take() <= 4 * (telemetry.num_samples - seen)
    # A question is seen at once, and not when the next sample of the rest is due.
    driver.program.chat.ask("?")
    qtbot.waitUntil(lambda: cards.clock.is_running, timeout=10_000)
    driver.wait_for_answer()


@pytest.mark.skipif(sys.platform != "linux", reason="the list of mapped files is Linux's")
def test_window_opens_no_library_of_a_graphics_card(start_window: StartWindow) -> None:
    driver = start_window(["Yes."])
    driver.send("?")
    driver.wait_for_answer()
    for page in Page:
        driver.program.window.show_page(page)
    mapped = Path("/proc/self/maps").read_text(encoding="utf-8")
    assert [name for name in GPU_LIBRARIES if name in mapped] == []
