"""Timers of the window's one thread, and how long it may be held up at a go."""

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer

DRAW_SLICE_S = 0.02
"""Drawing gives the window back after this time, and goes on in the next turn of its loop."""


def single_shot(owner: QObject, interval_ms: int, slot: Callable[[], object]) -> QTimer:
    """Return a timer that calls once, so long after it was started last."""
    timer = QTimer(owner)
    timer.setSingleShot(True)
    timer.setInterval(interval_ms)
    timer.timeout.connect(slot)
    return timer
