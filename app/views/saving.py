"""Writing a file where a person chose, and saying what came of it."""

from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice
from PySide6.QtGui import QColor, QPainter, QPixmap
from PySide6.QtWidgets import QLabel, QWidget

from app.state.json_file import export_whole
from app.text.file_words import not_saved, saved_as


def save(path: str, data: bytes, told: QLabel) -> None:
    """Write a file; a line of the page, hidden until then, says where it is or why it is not."""
    try:
        export_whole(Path(path), data)
    except OSError as error:
        told.setText(not_saved(path, error.strerror or str(error)))
    else:
        told.setText(saved_as(path))
    told.show()


def picture_of(widget: QWidget, background: str) -> bytes:
    """Return all of a widget as a PNG, on a ground of its own: nothing shines through."""
    drawn = widget.grab()
    image = QPixmap(drawn.size())
    image.setDevicePixelRatio(drawn.devicePixelRatio())
    image.fill(QColor(background))
    painter = QPainter(image)
    painter.drawPixmap(0, 0, drawn)
    painter.end()
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")
    return bytes(data.data())
