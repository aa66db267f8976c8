"""The window: rail, strip, notice and pages; pages are made when they are first shown."""

import base64
from collections.abc import Callable

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QCloseEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import QHBoxLayout, QMainWindow, QStackedWidget, QVBoxLayout, QWidget

from app.text.shortcut_words import Shortcut
from app.text.words import ShellWords
from app.theme.palette import Palette
from app.views.notice_bar import NoticeBar
from app.views.rail import Page, Rail
from app.views.strip import Strip


class MainWindow(QMainWindow):
    """The frame around the pages; knows none of them by name."""

    closed = Signal()
    new_chat_wanted = Signal()
    stop_wanted = Signal()
    search_wanted = Signal()
    open_wanted = Signal()
    keys_wanted = Signal()
    page_shown = Signal(object)
    seen_changed = Signal(bool)
    """The window is on the screen, or minimised."""

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self.setWindowTitle(ShellWords.PROGRAM)
        self.resize(1360, 850)
        self.setMinimumSize(760, 520)
        self.rail = Rail(palette)
        self.strip = Strip(palette)
        self.notice = NoticeBar(palette)
        self._pages = QStackedWidget()
        self._whole = QStackedWidget()
        """The frame with the pages, and what covers all of it."""
        self._makers: dict[Page, Callable[[], QWidget]] = {}
        self._made: dict[Page, QWidget] = {}
        right = QVBoxLayout()
        right.setSpacing(0)
        right.addWidget(self.strip)
        right.addWidget(self.notice)
        right.addWidget(self._pages, 1)
        frame = QWidget()
        frame.setProperty("look", "page")
        layout = QHBoxLayout(frame)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.rail)
        layout.addLayout(right, 1)
        self._whole.addWidget(frame)
        self.setCentralWidget(self._whole)
        self.rail.page_chosen.connect(self.show_page)
        self._add_shortcuts()

    def add_page(self, page: Page, make: Callable[[], QWidget]) -> None:
        """Register how a page is made, once, when it is first shown."""
        self._makers[page] = make

    def cover(self, widget: QWidget) -> None:
        """Show a widget in place of everything, until a page is gone to."""
        self._whole.addWidget(widget)
        self._whole.setCurrentWidget(widget)

    def covers(self) -> list[QWidget]:
        """Return what covers the pages, if anything does."""
        widget = self._whole.widget(1)
        return [widget] if widget is not None else []

    def uncover(self) -> None:
        """Show rail, strip and pages again; what covered them is deleted."""
        for widget in self.covers():
            self._whole.removeWidget(widget)
            widget.deleteLater()

    def show_page(self, page: Page) -> None:
        """Go to a page."""
        self.uncover()
        if page not in self._made:
            self._made[page] = self._makers[page]()
            self._pages.addWidget(self._made[page])
        self.rail.show_page(page)
        self._pages.setCurrentWidget(self._made[page])
        self.page_shown.emit(page)

    def page(self, page: Page) -> QWidget:
        """Return a page, made if it was not yet."""
        if page not in self._made:
            self._made[page] = self._makers[page]()
            self._pages.addWidget(self._made[page])
        return self._made[page]

    def made_pages(self) -> list[QWidget]:
        """Return the pages that exist."""
        return list(self._made.values())

    def current_page(self) -> Page:
        """Return the page that is shown."""
        widget = self._pages.currentWidget()
        return next(page for page, made in self._made.items() if made is widget)

    def geometry_text(self) -> str:
        """Return position and size for the settings."""
        return base64.b64encode(self.saveGeometry().data()).decode("ascii")

    def take_geometry(self, text: str) -> None:
        """Go where the window was; a text that is none of ours changes nothing."""
        try:
            self.restoreGeometry(base64.b64decode(text, validate=True))
        except ValueError:
            return

    def _add_shortcuts(self) -> None:
        actions: dict[Shortcut, Callable[[], object]] = {
            Shortcut.CHAT: lambda: self.show_page(Page.CHAT),
            Shortcut.MODELS: lambda: self.show_page(Page.MODELS),
            Shortcut.MONITOR: lambda: self.show_page(Page.MONITOR),
            Shortcut.SETTINGS: lambda: self.show_page(Page.SETTINGS),
            Shortcut.NEW_CHAT: self.new_chat_wanted.emit,
            Shortcut.OPEN: self.open_wanted.emit,
            Shortcut.SEARCH: self.search_wanted.emit,
            Shortcut.STOP: self.stop_wanted.emit,
            Shortcut.KEYS: self.keys_wanted.emit,
            Shortcut.QUIT: self.close,
        }
        for keys, action in actions.items():
            shortcut = QShortcut(QKeySequence(keys.value), self)
            shortcut.setContext(Qt.ShortcutContext.WindowShortcut)
            shortcut.activated.connect(action)

    def changeEvent(self, event: QEvent) -> None:
        """Tell when the window is minimised or shown again."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.WindowStateChange:
            self.seen_changed.emit(not self.isMinimized())

    def closeEvent(self, event: QCloseEvent) -> None:
        """Tell that the window goes; nothing has to be confirmed, because nothing is lost."""
        self.closed.emit()
        super().closeEvent(event)
