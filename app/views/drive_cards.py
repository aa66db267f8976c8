"""What reading from the drive takes: a quiet card beside a chat, a warning on the Monitor page."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app.state.drive_warning import Remedy
from app.state.monitor import Monitor
from app.text import drive_phrases
from app.text.monitor_words import DriveWords
from app.theme.palette import Palette
from app.views.pieces import Card, button, label, set_look
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
            self._text.setText(
                drive_phrases.drive_card(drive.use, is_warned=is_warned, is_quiet=drive.is_quiet)
            )


class RemedyRow(QWidget):
    """One remedy: what it would do, and the button that does it."""

    wanted = Signal(object)
    """The ``Remedy`` that is shown."""

    def __init__(self) -> None:
        super().__init__()
        self._remedy: Remedy | None = None
        self.text = label("", "", is_wrapping=True)
        self.button: QPushButton = button(DriveWords.MORE_MEMORY)
        self.button.clicked.connect(lambda: self.wanted.emit(self._remedy))
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(10)
        layout.addWidget(self.text, 1)
        layout.addWidget(self.button)

    def show_remedy(self, remedy: Remedy | None, *, is_second: bool) -> None:
        """Show a remedy; None for the first says that it is being worked out."""
        self._remedy = remedy
        self.setVisible(remedy is not None or not is_second)
        self.button.setVisible(remedy is not None)
        if remedy is None:
            self.text.setText(DriveWords.WORKING_OUT)
            return
        self.text.setText(drive_phrases.remedy_text(remedy, is_second=is_second))
        name = drive_phrases.remedy_button(remedy)
        self.button.setText(name)
        self.button.setAccessibleName(name)
        self.button.setAccessibleDescription(self.text.text())
        set_look(self.button, "look", "" if is_second else "primary")


class DriveWarningCard(QFrame):
    """On the Monitor page: what reading costs, the two things that would help most, or silence."""

    remedy_wanted = Signal(object)
    """The ``Remedy`` whose button was pressed."""

    def __init__(self, monitor: Monitor, palette: Palette, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("look", "warning")
        self._monitor = monitor
        self._dot = Dot(palette, "drive")
        self._text = label("", "strong", is_wrapping=True)
        self.remedies = (RemedyRow(), RemedyRow())
        for row in self.remedies:
            row.wanted.connect(self.remedy_wanted)
        self.quiet = button(DriveWords.QUIET, "quiet")
        self.quiet.setToolTip(DriveWords.QUIET_EXPLAINED)
        self.quiet.setAccessibleDescription(DriveWords.QUIET_EXPLAINED)
        self.quiet.clicked.connect(monitor.drive.be_quiet)
        head = QHBoxLayout()
        head.setSpacing(10)
        head.addWidget(self._text, 1)
        head.addWidget(self.quiet, 0, Qt.AlignmentFlag.AlignTop)
        words = QVBoxLayout()
        words.setSpacing(4)
        words.addLayout(head)
        for row in self.remedies:
            words.addWidget(row)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(14, 10, 14, 10)
        layout.setSpacing(10)
        layout.addWidget(self._dot)
        layout.addLayout(words, 1)
        monitor.drive.changed.connect(self.show_warning)
        monitor.settings.changed.connect(self.show_warning)
        self.show_warning()

    def text(self) -> str:
        """Return what is said, empty while nothing has to be."""
        if self.isHidden():
            return ""
        rows = (row.text.text() for row in self.remedies if not row.isHidden())
        return "\n".join((self._text.text(), *rows))

    def show_warning(self) -> None:
        """Show the warning that is due, or nothing."""
        warning = self._monitor.drive.warning
        self.setVisible(warning is not None)
        if warning is None:
            return
        price, currency = self._monitor.tariff
        self._text.setText(drive_phrases.warning_text(warning.use, price, currency))
        for index, row in enumerate(self.remedies):
            remedy = warning.remedies[index] if index < len(warning.remedies) else None
            row.show_remedy(remedy, is_second=index > 0)
        self.setAccessibleName(self._text.text())

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._dot.show_palette(palette)
