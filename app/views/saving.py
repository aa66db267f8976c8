"""Writing a file where a person chose, and saying what came of it."""

from pathlib import Path

from PySide6.QtWidgets import QLabel

from app.text.file_words import not_saved, saved_as


def save(path: str, data: bytes, told: QLabel) -> None:
    """Write a file; a line of the page, hidden until then, says where it is or why it is not."""
    try:
        Path(path).write_bytes(data)
    except OSError as error:
        told.setText(not_saved(path, error.strerror or str(error)))
    else:
        told.setText(saved_as(path))
    told.show()
