"""A window to drag a folder from: `python -m installers.drag FOLDER`, on the screen of DISPLAY.

It lies in the corner at the top right and says on standard output where its middle is.
"""

from __future__ import annotations

import sys

from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtGui import QDrag, QGuiApplication, QMouseEvent
from PySide6.QtWidgets import QApplication, QWidget

SIZE = 60


class Source(QWidget):
    """Begins a drag of the folder when it is pressed."""

    def __init__(self, folder: str) -> None:
        super().__init__(None, Qt.WindowType.X11BypassWindowManagerHint)
        self._folder = folder
        screen = QGuiApplication.primaryScreen().geometry()
        self.setGeometry(screen.right() - SIZE, 0, SIZE, SIZE)

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's spelling
        """Drag."""
        data = QMimeData()
        data.setUrls([QUrl.fromLocalFile(self._folder)])
        drag = QDrag(self)
        drag.setMimeData(data)
        drag.exec(Qt.DropAction.CopyAction)


def main(arguments: list[str]) -> int:
    """Show the window until the process is ended."""
    application = QApplication(["drag"])
    source = Source(arguments[0])
    source.show()
    source.raise_()
    middle = source.geometry().center()
    sys.stdout.write(f"{middle.x()} {middle.y()}\n")
    sys.stdout.flush()
    return application.exec()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
