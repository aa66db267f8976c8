"""The way from RAM to a device: one thread that copies in pieces, one copy after the other."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import torch

MovePiece = Callable[[torch.Tensor, torch.Tensor], None]
"""Copies one piece, or begins to; called by the link's thread."""
EndCopy = Callable[[], None]
"""Waits for the pieces that have begun; called by the link's thread."""


def _end_nothing() -> None:
    """Return at once: every piece has ended when it returns."""


class LinkEvent:
    """The end of one copy; see ``DeviceEvent``."""

    def __init__(self, outcome: Future[None]) -> None:
        self._outcome = outcome

    @property
    def is_done(self) -> bool:
        """Whether the copy has ended; never waits."""
        return self._outcome.done()

    def wait(self) -> None:
        """Return when it has ended; raise what went wrong."""
        self._outcome.result()


class Link:
    """Copies in the order in which they were asked for, counted as they pass.

    What is small and urgent does not wait in this queue: whoever moves it tells with ``note`` what
    has passed.

    Threads: ``copy``, ``note`` and ``close`` belong to the engine thread; any thread may read the
    count.
    """

    def __init__(
        self, move_piece: MovePiece, piece_bytes: int, end_copy: EndCopy = _end_nothing
    ) -> None:
        self._end_copy = end_copy
        self._move_piece = move_piece
        self._piece_bytes = piece_bytes
        self._thread = ThreadPoolExecutor(1, "device-link")
        self._is_closing = threading.Event()
        self._num_bytes = 0
        self._num_noted_bytes = 0

    @property
    def num_bytes(self) -> int:
        """What was copied so far."""
        return self._num_bytes + self._num_noted_bytes

    def note(self, num_bytes: int) -> None:
        """Count what has passed beside the queue."""
        self._num_noted_bytes += num_bytes

    def copy(self, source: torch.Tensor, target: torch.Tensor) -> LinkEvent:
        """Begin to copy all bytes of ``source`` to ``target``."""
        if source.numel() != target.numel():
            raise ValueError(f"{source.numel()} bytes to a place of {target.numel()}")
        return LinkEvent(self._thread.submit(self._copy, source, target))

    def close(self) -> None:
        """Leave what was not copied yet; may be called twice."""
        self._is_closing.set()
        self._thread.shutdown(cancel_futures=True)

    def _copy(self, source: torch.Tensor, target: torch.Tensor) -> None:
        for start in range(0, source.numel(), self._piece_bytes):
            if self._is_closing.is_set():
                break
            piece = source[start : start + self._piece_bytes]
            self._move_piece(piece, target[start : start + self._piece_bytes])
            self._num_bytes += piece.numel()
        self._end_copy()
