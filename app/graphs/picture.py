"""A drawing of our own, which assistive programs are told is a picture."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPixmap
from PySide6.QtWidgets import QLabel, QWidget


class Picture(QLabel):
    """The base of what is drawn by ``paintEvent``; its accessible name says what is seen.

    Qt calls a label with an image a picture, and has no other way to give a widget that role: the
    image here is never drawn.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        image = QPixmap(1, 1)
        image.fill(Qt.GlobalColor.transparent)
        self.setPixmap(image)

    def sizeHint(self) -> QSize:
        """Return no size: drawings take the room that their layout gives."""
        return QSize()

    def minimumSizeHint(self) -> QSize:
        """Return no size."""
        return QSize()
