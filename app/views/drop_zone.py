"""Dropping a model folder: the dashed field on the Models page, and anywhere on the window."""

from PySide6.QtCore import QEvent, QMimeData, QObject, QRect, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDragMoveEvent, QDropEvent
from PySide6.QtWidgets import QFileDialog, QFrame, QHBoxLayout, QLabel, QWidget

from app.text.words import ModelWords, ShellWords
from app.views.pieces import button, label, set_look

HINT_SIZE = (480, 140)


def dropped_path(data: QMimeData) -> str:
    """Return the one local path in a drag, or an empty text."""
    urls = data.urls() if data.hasUrls() else []
    if len(urls) == 1 and urls[0].isLocalFile():
        return urls[0].toLocalFile()
    return ""


class DropTarget(QObject):
    """Makes a whole widget take one dropped folder; files are taken too, and then explained.

    Installed as event filter on the widget, whose children then need not know of it. What cannot be
    taken is taken all the same, so that the person can be told why.
    """

    folder_dropped = Signal(str)
    refused = Signal()
    """Several things were dropped, or something that is not on this PC."""
    hover_changed = Signal(bool)

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self._widget = widget
        self.hint = QLabel(widget)
        """Says over the widget what will happen, while something is dragged over it."""
        self.hint.setProperty("look", "drophint")
        self.hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.hint.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hint.hide()
        widget.setAcceptDrops(True)
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Take what is dropped."""
        if isinstance(event, QDropEvent) and event.type() == QEvent.Type.Drop:
            self._end_hover()
            event.acceptProposedAction()
            if path := dropped_path(event.mimeData()):
                self.folder_dropped.emit(path)
            else:
                self.refused.emit()
            return True
        if isinstance(event, QDragEnterEvent | QDragMoveEvent):
            if event.mimeData().hasUrls():
                event.acceptProposedAction()
                self._hover(is_welcome=bool(dropped_path(event.mimeData())))
            return True
        if event.type() == QEvent.Type.DragLeave:
            self._end_hover()
            return True
        return False

    def _hover(self, *, is_welcome: bool) -> None:
        self.hint.setText(ShellWords.DROP_HERE if is_welcome else ShellWords.DROP_ONLY_FOLDERS)
        place = QRect(0, 0, *HINT_SIZE)
        place.moveCenter(self._widget.rect().center())
        self.hint.setGeometry(place)
        self.hint.raise_()
        self.hint.show()
        self.hover_changed.emit(is_welcome)

    def _end_hover(self) -> None:
        self.hint.hide()
        self.hover_changed.emit(False)


class DropZone(QFrame):
    """The dashed field that says what can be dropped, with a button for those who rather choose."""

    folder_chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("look", "dropzone")
        text = label(ModelWords.DROP, "dim", is_wrapping=True)
        choose = button(ModelWords.CHOOSE_FOLDER)
        choose.clicked.connect(self.choose)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(16, 14, 16, 14)
        layout.addWidget(text, 1, Qt.AlignmentFlag.AlignVCenter)
        layout.addWidget(choose, 0)

    def choose(self) -> None:
        """Ask for a folder."""
        folder = QFileDialog.getExistingDirectory(self, ModelWords.CHOOSE_FOLDER)
        if folder:
            self.folder_chosen.emit(folder)

    def show_hover(self, is_welcome: bool) -> None:
        """Show that what is dragged would be taken."""
        set_look(self, "isWelcome", is_welcome)
