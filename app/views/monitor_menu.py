"""The menu of the Monitor page: how far back curves go, and saving what is seen."""

from PySide6.QtCore import Signal
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QMenu, QToolButton

from app.graphs.series import WINDOW_S, WINDOWS_S
from app.text.memory_words import SaveWords, window_name
from app.theme.palette import Palette
from app.views.pieces import IconButton


class MonitorMenu(IconButton):
    """A button that opens the menu."""

    window_chosen = Signal(float)
    """Seconds."""
    table_wanted = Signal()
    picture_wanted = Signal()

    def __init__(self, palette: Palette) -> None:
        super().__init__("more", SaveWords.MORE, palette)
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.setProperty("look", "menu")
        menu = QMenu(self)
        # Styles draw a section's title as a bare line.
        menu.addAction(SaveWords.WINDOW).setEnabled(False)
        group = QActionGroup(menu)
        self.windows: dict[float, QAction] = {}
        for window_s in WINDOWS_S:
            action = menu.addAction(window_name(window_s))
            action.setCheckable(True)
            action.setChecked(window_s == WINDOW_S)
            action.triggered.connect(
                lambda _=False, window_s=window_s: self.window_chosen.emit(window_s)
            )
            group.addAction(action)
            self.windows[window_s] = action
        menu.addSeparator()
        self.table = menu.addAction(SaveWords.AS_TABLE)
        self.table.triggered.connect(self.table_wanted)
        self.picture = menu.addAction(SaveWords.AS_PICTURE)
        self.picture.triggered.connect(self.picture_wanted)
        self.setMenu(menu)
