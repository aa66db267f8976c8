"""The import of what draws expert maps, beside the work of the window."""

import gc
import threading

from PySide6.QtCore import QObject, QTimer, Signal

LOOK_MS = 20


class MapImport(QObject):
    """Imports ``expert_grid``, and numpy with it, in a thread that ends with the import.

    The window's thread would stand still for as long as that takes. Nothing of Qt is imported here,
    whose classes are made in the window's thread. While the thread runs the garbage collector
    rests: it frees in whatever thread it is called, and objects of Qt belong to the window's.

    Threads: used by the window thread; ``_import`` alone runs in the other and touches no object
    of the window.
    """

    running_changed = Signal(bool)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._thread: threading.Thread | None = None
        self._was_collecting = False
        self._look = QTimer(self)
        self._look.setInterval(LOOK_MS)
        self._look.timeout.connect(self._on_look)

    @property
    def is_running(self) -> bool:
        """Whether a map would have to wait for the import."""
        return self._look.isActive()

    def begin(self) -> None:
        """Begin; once is enough."""
        if self._thread is not None:
            return
        self._was_collecting = gc.isenabled()
        gc.disable()
        self._thread = threading.Thread(target=_import, name="map import")
        self._thread.start()
        self._look.start()
        self.running_changed.emit(True)

    def close(self) -> None:
        """Wait until an import that runs has ended."""
        if self._thread is not None and self.is_running:
            self._thread.join()
            self._on_look()

    def _on_look(self) -> None:
        if self._thread is None or self._thread.is_alive():
            return
        self._look.stop()
        if self._was_collecting:
            gc.enable()
        self.running_changed.emit(False)


def _import() -> None:
    import app.graphs.expert_grid  # noqa: F401
