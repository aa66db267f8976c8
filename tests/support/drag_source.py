"""Another program that drags a file or folder over the screen: ``python -m ... PATH X Y``.

It takes part in the protocol of X11 as a file manager does: the window below the pointer hears of
the drag from the display server. Only the hand is played: mouse events of its own window.
"""

import sys

from PySide6.QtCore import QEvent, QMimeData, QPointF, Qt, QTimer, QUrl
from PySide6.QtGui import QDrag, QMouseEvent
from PySide6.QtWidgets import QApplication, QWidget

MOVE_INTERVAL_MS = 50
SIZE = 20


def drag_to(source: QWidget, path: str, place: QPointF) -> bool:
    """Drag over a place of the screen until that is accepted, and drop; return whether it was."""
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(path)])
    drag = QDrag(source)
    drag.setMimeData(data)
    moves = QTimer(drag)
    moves.setInterval(MOVE_INTERVAL_MS)
    steps = iter(range(1_000_000))

    def move() -> None:
        # The pointer of a person never rests, so that a window which opens late is met too.
        _mouse(source, QEvent.Type.MouseMove, place + QPointF(next(steps) % 2, 0))

    def release(action: Qt.DropAction) -> None:
        if action is not Qt.DropAction.IgnoreAction:
            moves.stop()
            QTimer.singleShot(0, lambda: _mouse(source, QEvent.Type.MouseButtonRelease, place))

    moves.timeout.connect(move)
    drag.actionChanged.connect(release)
    moves.start()
    return drag.exec(Qt.DropAction.CopyAction) is Qt.DropAction.CopyAction


def _mouse(source: QWidget, kind: QEvent.Type, place: QPointF) -> None:
    is_release = kind is QEvent.Type.MouseButtonRelease
    held = Qt.MouseButton.NoButton if is_release else Qt.MouseButton.LeftButton
    button = Qt.MouseButton.LeftButton if is_release else Qt.MouseButton.NoButton
    inside = QPointF(source.mapFromGlobal(place))
    event = QMouseEvent(kind, inside, place, button, held, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(source.windowHandle(), event)


def main(path: str, x: str, y: str) -> int:
    """Drag once; what was taken is handed over until somebody ends this program, or return 1."""
    application = QApplication(["drag"])
    source = QWidget(None, Qt.WindowType.X11BypassWindowManagerHint)
    source.setGeometry(0, 0, SIZE, SIZE)
    source.show()

    def begin() -> None:
        if not drag_to(source, path, QPointF(float(x), float(y))):
            application.exit(1)

    QTimer.singleShot(0, begin)
    return application.exec()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
