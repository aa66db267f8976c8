"""How often widgets are drawn."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QWidget


class PaintCounts(QObject):
    """Counts the paint events of a widget and of all below it."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self.num_paints = 0
        for each in (widget, *widget.findChildren(QWidget)):
            each.installEventFilter(self)

    def take(self) -> int:
        """Return how many there were since the last call."""
        number, self.num_paints = self.num_paints, 0
        return number

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        self.num_paints += event.type() == QEvent.Type.Paint
        return False
