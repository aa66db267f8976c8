"""One window for each person's files: a second start hands its folder to the first and ends."""

import enum
import hashlib
from pathlib import Path

import msgspec
from PySide6.QtCore import QByteArray, QLockFile, QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

LOCK_NAME = "window.lock"
ANSWER_MS = 5000
"""How long the first window may take to answer; it may be drawing."""
MAX_MESSAGE_BYTES = 1 << 16
_TAKEN = b"taken\n"


class Start(enum.Enum):
    """What a start came to."""

    FIRST = "first"
    HANDED_OVER = "handed_over"
    NO_ANSWER = "no_answer"
    """Another window is there and does not answer."""


class SingleInstance(QObject):
    """Holds the place of the one window; ``opened`` brings what later starts were given.

    Threads: window thread.
    """

    opened = Signal(str)
    """The window is wanted, with a folder to look at, or with none (empty)."""

    def __init__(self, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = QLockFile(str(folder / LOCK_NAME))
        # Only the end of its process frees the place, however long that runs.
        self._lock.setStaleLockTime(0)
        # Names of local sockets are short, and one name is all that such a place has.
        digest = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
        self._name = f"larder-{digest}"
        self._server: QLocalServer | None = None

    def start(self, path: str = "") -> Start:
        """Take the place, or hand a folder to the window that has it."""
        if self._lock.tryLock(0):
            self._listen()
            return Start.FIRST
        if self._lock.error() is not QLockFile.LockError.LockFailedError:
            # The folder cannot be written: two windows are better than none.
            return Start.FIRST
        return Start.HANDED_OVER if self._hand_over(path) else Start.NO_ANSWER

    def close(self) -> None:
        """Free the place for the next start."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self._lock.unlock()

    def _listen(self) -> None:
        QLocalServer.removeServer(self._name)
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._on_connected)
        self._server.listen(self._name)

    def _hand_over(self, path: str) -> bool:
        socket = QLocalSocket()
        socket.connectToServer(self._name)
        if not socket.waitForConnected(ANSWER_MS):
            return False
        socket.write(QByteArray(msgspec.json.encode({"path": path}) + b"\n"))
        socket.flush()
        is_taken = socket.waitForReadyRead(ANSWER_MS)
        socket.disconnectFromServer()
        return is_taken

    def _on_connected(self) -> None:
        while self._server is not None and self._server.hasPendingConnections():
            socket = self._server.nextPendingConnection()
            socket.disconnected.connect(socket.deleteLater)
            socket.readyRead.connect(lambda socket=socket: self._on_arrived(socket))

    def _on_arrived(self, socket: QLocalSocket) -> None:
        if socket.bytesAvailable() > MAX_MESSAGE_BYTES:
            socket.abort()
            return
        if not socket.canReadLine():
            return
        try:
            message = msgspec.json.decode(bytes(socket.readLine().data()), type=dict[str, str])
        except (msgspec.MsgspecError, RecursionError):
            socket.abort()
            return
        socket.write(QByteArray(_TAKEN))
        socket.flush()
        self.opened.emit(message.get("path", ""))
