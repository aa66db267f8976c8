"""A window that has nothing to do does nothing, and keeps its hands off the graphics card."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.views.monitor_view import MonitorView
from app.views.rail import Page
from tests.gui.main.conftest import StartWindow
from tests.support.paint_counts import PaintCounts

GPU_LIBRARIES = ("libcuda.so", "libnvidia", "libGLX_nvidia", "libvulkan", "libhsa", "libOpenCL")


def test_resting_monitor_draws_its_curves_once_a_second(
    start_window: StartWindow, qtbot: QtBot
) -> None:
    driver = start_window(["Yes."])
    driver.send("?")
    driver.wait_for_answer()
    window = driver.program.window
    window.show_page(Page.MONITOR)
    view = window.page(Page.MONITOR)
    assert isinstance(view, MonitorView)
    telemetry = driver.program.telemetry
    qtbot.waitUntil(lambda: telemetry.num_samples > 0 and not telemetry.is_working, timeout=30_000)
    qtbot.wait(300)
    counts = PaintCounts(view.energy.plot)
    seen = telemetry.num_samples
    qtbot.waitUntil(lambda: telemetry.num_samples >= seen + 20, timeout=30_000)
    # Twenty samples are two seconds or more: a second each, and one at either end.
    assert counts.num_paints <= 20 // 10 + 2 + (telemetry.num_samples - seen - 20)


@pytest.mark.skipif(sys.platform != "linux", reason="the list of mapped files is Linux's")
def test_window_opens_no_library_of_a_graphics_card(start_window: StartWindow) -> None:
    driver = start_window(["Yes."])
    driver.send("?")
    driver.wait_for_answer()
    for page in Page:
        driver.program.window.show_page(page)
    mapped = Path("/proc/self/maps").read_text(encoding="utf-8")
    assert [name for name in GPU_LIBRARIES if name in mapped] == []
