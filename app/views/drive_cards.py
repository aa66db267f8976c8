"""What reading from the drive takes: a quiet card beside a chat, a warning on the Monitor page."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app.state.drive_warning import Remedy
from app.state.monitor import Monitor
from app.text import drive_phrases
from app.text.monitor_words import DriveWords
from app.theme.palette import Palette
from app.views.pieces import Card, button, label
from app.views.tier_bar import Dot


class DriveCard(Card):
    """Beside a chat: how much is read, what it takes, and whether that is fine."""

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(DriveWords.TITLE)
        self._monitor = monitor
        self._text = label("", is_wrapping=True)
        self.body.addWidget(self._text)
        monitor.drive.changed.connect(self._show_use)
        self._show_use()

    def text(self) -> str:
        """Return what is said."""
        return self._text.text()

    def _show_use(self) -> None:
        drive = self._monitor.drive
        self.setVisible(drive.use is not None)
        if drive.use is not None:
            is_warned = drive.warning is not None
            self._text.setText(drive_phrases.drive_card(drive.use, is_warned=is_warned))


class DriveWarningCard(QFrame):
    """On the Monitor page: what reading costs, and the one thing that would help most."""

    remedy_wanted = Signal(object)
    """The ``Remedy`` that is shown."""

    def __init__(self, monitor: Monitor, palette: Palette, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("look", "warning")
        self._monitor = monitor
        self._remedy: Remedy | None = None
        self._dot = Dot(palette, "drive")
        self._text = label("", "strong", is_wrapping=True)
        self._remedy_text = label("", "", is_wrapping=True)
        self._act: QPushButton = button(DriveWords.MORE_MEMORY, "primary")
        self._act.clicked.connect(lambda: self.remedy_wanted.emit(self._remedy))
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addWidget(self._text)
        words.addWidget(self._remedy_text)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(14, 10, 14, 10)
        layout.setSpacing(10)
        layout.addWidget(self._dot)
        layout.addLayout(words, 1)
        layout.addWidget(self._act)
        monitor.drive.changed.connect(self.show_warning)
        monitor.settings.changed.connect(self.show_warning)
        self.show_warning()

    def text(self) -> str:
        """Return what is said, empty while nothing has to be."""
        return "" if self.isHidden() else f"{self._text.text()}\n{self._remedy_text.text()}"

    def remedy_button(self) -> QPushButton:
        """Return the button that does what would help."""
        return self._act

    def show_warning(self) -> None:
        """Show the warning that is due, or nothing."""
        warning = self._monitor.drive.warning
        self.setVisible(warning is not None)
        if warning is None:
            return
        price, currency = self._monitor.tariff
        self._text.setText(drive_phrases.warning_text(warning.use, price, currency))
        self._remedy_text.setText(drive_phrases.remedy_text(warning.remedy))
        self._remedy = warning.remedy
        self._act.setVisible(warning.remedy is not None)
        if warning.remedy is not None:
            name = drive_phrases.remedy_button(warning.remedy.kind)
            self._act.setText(name)
            self._act.setAccessibleName(name)
        self.setAccessibleName(self._text.text())

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._dot.show_palette(palette)
