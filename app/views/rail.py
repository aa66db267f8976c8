"""The rail at the left edge: one button for each page."""

import enum

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QFont, QFontMetrics
from PySide6.QtWidgets import QButtonGroup, QFrame, QToolButton, QVBoxLayout, QWidget

from app.text.words import ShellWords
from app.theme import metrics
from app.theme.apply import icon
from app.theme.palette import Palette
from app.views.pieces import ToolButton

SIDE = 8
AROUND_NAME = 2 * SIDE + 6
"""Margins of the rail, padding and border of a button."""


class Page(enum.Enum):
    """The pages, in the order of the rail."""

    CHAT = "chat"
    MODELS = "models"
    MONITOR = "monitor"
    SETTINGS = "settings"


def _name(page: Page) -> str:
    names = {
        Page.CHAT: ShellWords.CHAT,
        Page.MODELS: ShellWords.MODELS,
        Page.MONITOR: ShellWords.MONITOR,
        Page.SETTINGS: ShellWords.SETTINGS,
    }
    return names[page]


class Rail(QFrame):
    """Buttons for the pages, of which one is checked."""

    page_chosen = Signal(object)

    def __init__(self, palette: Palette, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("look", "rail")
        self._buttons: dict[Page, QToolButton] = {}
        group = QButtonGroup(self)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SIDE, 14, SIDE, 8)
        layout.setSpacing(6)
        for number, page in enumerate(Page, start=1):
            button = ToolButton()
            button.setProperty("look", "rail")
            name = _name(page)
            button.setText(name)
            button.setAccessibleName(name)
            button.setToolTip(f"{name} (Ctrl+{number})")
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextUnderIcon)
            button.setIconSize(QSize(20, 20))
            button.setCheckable(True)
            button.setCursor(Qt.CursorShape.PointingHandCursor)
            button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            button.clicked.connect(lambda _=False, page=page: self.page_chosen.emit(page))
            group.addButton(button)
            layout.addWidget(button)
            self._buttons[page] = button
        layout.addStretch(1)
        self._fit()
        self._palette = palette
        self.show_page(Page.CHAT)

    def _fit(self) -> None:
        """Be as wide as the longest name needs, which other languages may have longer."""
        font = QFont(self.font())
        font.setPixelSize(metrics.BODY_PX)
        font.setWeight(QFont.Weight.DemiBold)
        measure = QFontMetrics(font)
        widest = max(measure.horizontalAdvance(each.text()) for each in self._buttons.values())
        width = min(max(metrics.RAIL_WIDTH, widest + AROUND_NAME), metrics.MAX_RAIL_WIDTH)
        self.setFixedWidth(width)
        for each in self._buttons.values():
            each.setFixedSize(width - 2 * SIDE, 56)

    def show_page(self, page: Page) -> None:
        """Check the button of the page that is open."""
        self._buttons[page].setChecked(True)
        self.show_palette(self._palette)

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._palette = palette
        for page, button in self._buttons.items():
            colour = palette.accent_text if button.isChecked() else palette.dim
            button.setIcon(icon(page.value, colour))
