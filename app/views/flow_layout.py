"""Widgets beside each other that go on in the next line where there is no more room."""

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem, QStyle, QWidget


class FlowLayout(QLayout):
    """Lines of widgets, each as wide as it wants to be and none cut; hidden ones take no room.

    Drawing of a narrow one::

        [Sum up the oldest] [Leave out the oldest]
        [Ask in a new chat]
    """

    def __init__(self, parent: QWidget, spacing: int) -> None:
        super().__init__(parent)
        self.setContentsMargins(0, 0, 0, 0)
        self.setSpacing(spacing)
        self._items: list[QLayoutItem] = []

    def _lines(self, width: int) -> list[list[tuple[QLayoutItem, QSize]]]:
        """Return what stands in each line of a width."""
        lines: list[list[tuple[QLayoutItem, QSize]]] = []
        room = 0
        for item in self._items:
            if item.isEmpty():
                continue
            size = item.sizeHint()
            size.setWidth(min(size.width(), width))
            if not lines or size.width() > room:
                lines.append([])
                room = width
            lines[-1].append((item, size))
            room -= size.width() + self.spacing()
        return lines

    def addItem(self, item: QLayoutItem) -> None:
        """Take a widget at the end; called by Qt."""
        self._items.append(item)

    def count(self) -> int:
        """Return how many widgets there are, hidden ones too."""
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        """Return a widget's item."""
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        """Give a widget's item back."""
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        """Return no direction: more room changes nothing."""
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        """Return that fewer widgets fit into a narrower line."""
        return True

    def heightForWidth(self, width: int) -> int:
        """Return the height of all lines."""
        heights = [_height(line) for line in self._lines(width)]
        return sum(heights) + self.spacing() * max(0, len(heights) - 1)

    def setGeometry(self, area: QRect) -> None:
        """Move the widgets, each to the middle of its line's height; called by Qt."""
        super().setGeometry(area)
        holder = self.parentWidget()
        assert holder is not None
        direction = holder.layoutDirection()
        top = area.top()
        for line in self._lines(area.width()):
            left, height = area.left(), _height(line)
            for item, size in line:
                place = QRect(QPoint(left, top + (height - size.height()) // 2), size)
                item.setGeometry(QStyle.visualRect(direction, area, place))
                left += size.width() + self.spacing()
            top += height + self.spacing()

    def sizeHint(self) -> QSize:
        """Return the size of one line with everything."""
        sizes = [item.sizeHint() for item in self._items if not item.isEmpty()]
        width = sum(size.width() for size in sizes) + self.spacing() * max(0, len(sizes) - 1)
        return QSize(width, max((size.height() for size in sizes), default=0))

    def minimumSize(self) -> QSize:
        """Return the size of the widest widget alone."""
        size = QSize()
        for item in self._items:
            size = size if item.isEmpty() else size.expandedTo(item.minimumSize())
        return size


def _height(line: list[tuple[QLayoutItem, QSize]]) -> int:
    return max(size.height() for _, size in line)
