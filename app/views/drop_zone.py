"""Dropping a model folder: the dashed field on the Models page, and anywhere on the window."""

from PySide6.QtCore import QEvent, QMimeData, QObject, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDragMoveEvent, QDropEvent
from PySide6.QtWidgets import QFileDialog, QFrame, QHBoxLayout, QWidget

from app.text.words import ModelWords
from app.views.pieces import button, label, set_look


def dropped_path(data: QMimeData) -> str:
    """Return the one local path in a drag, or an empty text."""
    urls = data.urls() if data.hasUrls() else []
    if len(urls) == 1 and urls[0].isLocalFile():
        return urls[0].toLocalFile()
    return ""


class DropTarget(QObject):
    """Makes a whole widget take one dropped folder; files are taken too, and then explained.

    Installed as event filter on the widget, whose children then need not know of it.
    """

    folder_dropped = Signal(str)
    hover_changed = Signal(bool)

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        widget.setAcceptDrops(True)
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Take what is dropped."""
        if isinstance(event, QDropEvent) and event.type() == QEvent.Type.Drop:
            self.hover_changed.emit(False)
            if path := dropped_path(event.mimeData()):
                event.acceptProposedAction()
                self.folder_dropped.emit(path)
            return True
        if isinstance(event, QDragEnterEvent | QDragMoveEvent):
            if dropped_path(event.mimeData()):
                event.acceptProposedAction()
                self.hover_changed.emit(True)
            return True
        if event.type() == QEvent.Type.DragLeave:
            self.hover_changed.emit(False)
            return True
        return False


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
