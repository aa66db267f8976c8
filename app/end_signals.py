"""The system's wish that the program ends, as a Qt signal."""

import contextlib
import signal
import socket

from PySide6.QtCore import QObject, QSocketNotifier, Signal

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
END_SIGNALS: tuple[signal.Signals, ...] = tuple(
    signal.Signals[name] for name in _NAMES if name in signal.Signals.__members__
)
"""Ctrl+C, a request to terminate, the end of the session; on Windows also a console that closes."""
_READ_BYTES = 64


class EndSignals(QObject):
    """Tells the event loop of each signal that asks for the end, instead of interrupting it.

    An exception out of a handler would surface in whatever Qt happens to call. A signal that comes
    before the loop runs is told when it does. Threads: made and closed by the main thread, which
    is the window thread.
    """

    arrived = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._reader, self._writer = socket.socketpair()
        for end in (self._reader, self._writer):
            end.setblocking(False)
        self._notifier = QSocketNotifier(self._reader.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._on_readable)
        self._before_fd = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        # Without a handler of Python's own nothing is written to the socket.
        self._before = {
            number: signal.signal(number, lambda _number, _frame: None) for number in END_SIGNALS
        }

    def close(self) -> None:
        """Put everything back as it was."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._before_fd)
        self._notifier.setEnabled(False)
        self._reader.close()
        self._writer.close()

    def _on_readable(self) -> None:
        with contextlib.suppress(BlockingIOError):
            if not set(END_SIGNALS).isdisjoint(self._reader.recv(_READ_BYTES)):
                self.arrived.emit()
