"""Small widgets that recur: labels in a look, cards, buttons with an icon."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QIcon, QKeyEvent
from PySide6.QtWidgets import (
    QFrame,
    QLabel,
    QLayout,
    QPushButton,
    QScrollArea,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.theme import metrics
from app.theme.apply import icon
from app.theme.palette import Palette


def set_look(widget: QWidget, name: str, value: object) -> None:
    """Set a property that the style sheet looks at, and let it look again."""
    if widget.property(name) == value:
        return
    widget.setProperty(name, value)
    widget.style().unpolish(widget)
    widget.style().polish(widget)


def label(text: str = "", look: str = "", is_wrapping: bool = False) -> QLabel:
    """Return a label in a look; its text is never taken for markup."""
    widget = QLabel(text)
    widget.setTextFormat(Qt.TextFormat.PlainText)
    widget.setWordWrap(is_wrapping)
    if look:
        widget.setProperty("look", look)
    return widget


def button(text: str, look: str = "") -> QPushButton:
    """Return a push button in a look, named by its text."""
    widget = QPushButton(text)
    widget.setAccessibleName(text)
    widget.setCursor(Qt.CursorShape.PointingHandCursor)
    # Enter presses it too, on every system and outside of dialogs.
    widget.setAutoDefault(True)
    if look:
        widget.setProperty("look", look)
    return widget


class ToolButton(QToolButton):
    """A button that Enter presses as Space does, on every system."""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Press it."""
        super().keyPressEvent(as_space(event))

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        """Let it go."""
        super().keyReleaseEvent(as_space(event))


def as_space(event: QKeyEvent) -> QKeyEvent:
    """Return the event of the space bar for that of Enter; any other is itself."""
    if event.key() not in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
        return event
    key, modifiers = Qt.Key.Key_Space, event.modifiers()
    return QKeyEvent(event.type(), key, modifiers, " ", event.isAutoRepeat())


class IconButton(ToolButton):
    """A button that is only an icon; its name is in tooltip and accessible name."""

    def __init__(self, icon_name: str, name: str, palette: Palette, size: int = 16) -> None:
        super().__init__()
        self._icon_name = icon_name
        self.setToolTip(name)
        self.setAccessibleName(name)
        self.setIconSize(QSize(size, size))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.show_palette(palette)

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self.setIcon(icon(self._icon_name, palette.dim))

    def set_revealed(self, is_revealed: bool, palette: Palette) -> None:
        """Draw the icon or leave its place empty; the button works either way."""
        self.setIcon(icon(self._icon_name, palette.dim) if is_revealed else QIcon())


class Card(QFrame):
    """A surface with a thin line and round corners, laid out from top to bottom."""

    def __init__(self, heading: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("look", "card")
        self.body = QVBoxLayout(self)
        self.body.setContentsMargins(14, 12, 14, 12)
        self.body.setSpacing(8)
        if heading:
            self.body.addWidget(label(heading, "heading"))


def clear_layout(layout: QLayout) -> None:
    """Remove and delete everything in a layout, nested layouts included."""
    while (item := layout.takeAt(0)) is not None:
        if (widget := item.widget()) is not None:
            widget.hide()
            widget.deleteLater()
        elif (inner := item.layout()) is not None:
            clear_layout(inner)


def remove(layout: QLayout, widget: QWidget) -> None:
    """Take a widget out of its layout and delete it."""
    layout.removeWidget(widget)
    widget.hide()
    widget.deleteLater()


def scrolling(inside: QWidget, name: str) -> QScrollArea:
    """Return an area without a frame that moves a widget up and down, as wide as there is room.

    Its name is said when the focus comes to it, where the cursor keys move it.
    """
    area = QScrollArea()
    area.setProperty("look", "scroller")
    area.setAccessibleName(name)
    area.setWidgetResizable(True)
    area.setWidget(inside)
    return area


def menu_text(text: str) -> str:
    """Return a text whose ampersands do not become marks for keys."""
    return text.replace("&", "&&")


def margins(layout: QLayout, *, page: bool = False) -> None:
    """Give a layout the margins of a page, or none."""
    size = metrics.PAGE_MARGIN if page else 0
    layout.setContentsMargins(size, size if not page else 14, size, size)
