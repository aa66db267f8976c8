"""Copies the chats now and then, beside the work of the window."""

import gc
import threading
from pathlib import Path

from PySide6.QtCore import QObject, QTimer

from app.state.chat_copy import copy_chats, is_copy_due

INTERVAL_MS = 600_000
"""Chats that changed are copied this often."""
LOOK_MS = 50
MAX_COPIED_AT_END_BYTES = 16 << 20
"""A larger file is not copied while a person waits for the program to end."""


class ChatBackup(QObject):
    """Keeps the copy of the chats' file, in a thread that ends with each copy.

    While it runs the garbage collector rests: it frees in whatever thread it is called, and objects
    of Qt belong to the window's.

    Threads: used by the window thread; ``copy_chats`` alone runs in the other.
    """

    def __init__(self, path: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._path = path
        self._thread: threading.Thread | None = None
        self._was_collecting = False
        self._timer = QTimer(self)
        self._timer.setInterval(INTERVAL_MS)
        self._timer.timeout.connect(self.begin)
        self._timer.start()
        self._look = QTimer(self)
        self._look.setInterval(LOOK_MS)
        self._look.timeout.connect(self._on_look)

    @property
    def is_running(self) -> bool:
        """Whether a copy is being made."""
        return self._thread is not None

    def begin(self) -> None:
        """Begin a copy, unless one is being made or nothing has changed."""
        if self._thread is None and is_copy_due(self._path):
            self._was_collecting = gc.isenabled()
            gc.disable()
            self._thread = threading.Thread(
                target=copy_chats, args=(self._path,), name="chat backup"
            )
            self._thread.start()
            self._look.start()

    def close(self) -> None:
        """Wait for a copy that is being made, and make a last one, once the file is closed."""
        self._timer.stop()
        if self._thread is not None:
            self._thread.join()
            self._on_look()
        if is_copy_due(self._path) and self._path.stat().st_size <= MAX_COPIED_AT_END_BYTES:
            copy_chats(self._path)

    def _on_look(self) -> None:
        if self._thread is not None and not self._thread.is_alive():
            self._thread = None
            self._look.stop()
            if self._was_collecting:
                gc.enable()
