"""Takes the chats of a file into the store as they are read, a slice of time at a time."""

import dataclasses
import time
from collections.abc import Callable, Iterator

from PySide6.QtCore import QObject, Signal

from app.state.chat_import import ChatImportError, ImportedChat
from app.state.chat_reading import ImportEnd, Reading
from app.timers import single_shot

SLICE_S = 0.03
"""Reading and keeping chats gives the window back after this time."""
TELL_INTERVAL_S = 0.3
LAST_S = 1.0
"""At the end of the program what is read goes on for so long."""
_APART_S = 1e-3


class ImportFlow(QObject):
    """One file after the other. Threads: window thread."""

    progressed = Signal(float, int)
    """How much of a file was read, from 0 to 1, and how many chats were taken in."""
    ended = Signal(object)
    """The ``ImportEnd`` of a file."""

    def __init__(
        self, keep: Callable[[ImportedChat], object], parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._keep = keep
        self._waiting: list[Reading] = []
        self._chats: Iterator[ImportedChat | None] | None = None
        self._num_kept = 0
        self._begun_s = self._told_s = 0.0
        self._timer = single_shot(self, 0, self._on_time)

    def start(self, reading: Reading) -> None:
        """Take in chats; the first of a file counts as the newest, unless it says when it was."""
        self._waiting.append(reading)
        self._timer.start()

    def stop(self) -> None:
        """End the file that is read; what was taken in stays."""
        if self._waiting:
            self._end(is_stopped=True)

    def finish(self) -> None:
        """Take in what can be in a moment, and end."""
        end_s = time.perf_counter() + LAST_S
        while self._waiting and time.perf_counter() < end_s:
            self._work(end_s)
        while self._waiting:
            self.stop()
        self._timer.stop()

    def _on_time(self) -> None:
        self._work(time.perf_counter() + SLICE_S)
        if self._waiting:
            self._timer.start()
        now_s = time.perf_counter()
        if self._chats is not None and now_s - self._told_s >= TELL_INTERVAL_S:
            self._told_s = now_s
            self.progressed.emit(self._waiting[0].ratio, self._num_kept)

    def _work(self, end_s: float) -> None:
        """Read on until a moment, or to the end of the file."""
        if not self._waiting:
            return
        if self._chats is None:
            self._chats, self._begun_s, self._num_kept = iter(self._waiting[0]), time.time(), 0
        try:
            for chat in self._chats:
                if chat is not None:
                    self._take(chat)
                if time.perf_counter() >= end_s:
                    return
        except ChatImportError as error:
            self._end(error=str(error))
        except OSError as error:
            self._end(error=error.strerror or str(error))
        else:
            self._end()

    def _take(self, chat: ImportedChat) -> None:
        if not chat.changed_at_s:
            moment_s = self._begun_s - self._num_kept * _APART_S
            chat = dataclasses.replace(chat, changed_at_s=moment_s)
        self._keep(chat)
        self._num_kept += 1

    def _end(self, *, error: str = "", is_stopped: bool = False) -> None:
        reading = self._waiting.pop(0)
        num_kept, self._num_kept, self._chats = self._num_kept, 0, None
        reading.close()
        self.ended.emit(ImportEnd(num_kept, reading.num_too_large, error, is_stopped))
