"""Takes the chats of a file into the store, a slice of time at a time."""

import time
from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, Signal

from app.state.chat_import import ImportedChat
from app.timers import single_shot

SLICE_S = 0.03
"""Keeping chats gives the window back after this time."""


class ImportFlow(QObject):
    """One import after the other; ``ended`` tells how many chats were taken in. Window thread."""

    ended = Signal(int)

    def __init__(
        self, keep: Callable[[ImportedChat], object], parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._keep = keep
        self._waiting: list[ImportedChat] = []
        self._num_kept = 0
        self._timer = single_shot(self, 0, self._on_time)

    def start(self, chats: Sequence[ImportedChat]) -> None:
        """Take in these chats. The first of a file is the newest, and is kept last."""
        self._waiting = [*reversed(chats), *self._waiting]
        self._timer.start()

    def finish(self) -> None:
        """Take in at once what still waits."""
        if self._waiting:
            self._work(float("inf"))

    def _on_time(self) -> None:
        self._work(SLICE_S)

    def _work(self, slice_s: float) -> None:
        end_s = time.perf_counter() + slice_s
        while self._waiting:
            self._keep(self._waiting.pop(0))
            self._num_kept += 1
            if time.perf_counter() > end_s:
                self._timer.start()
                return
        self._timer.stop()
        num_kept, self._num_kept = self._num_kept, 0
        self.ended.emit(num_kept)
