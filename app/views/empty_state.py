"""What a page shows while it is empty: what will be here, and the one action that starts it."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QProgressBar, QVBoxLayout, QWidget

from app.views.pieces import button, label


class EmptyState(QWidget):
    """A title, a sentence, and at most one button or a progress bar."""

    acted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._title = label("", "title", is_wrapping=True)
        self._text = label("", "dim", is_wrapping=True)
        self._action = button("", "primary")
        self._action.clicked.connect(self.acted)
        self._progress = QProgressBar()
        self._progress.setTextVisible(False)
        self._progress.setFixedWidth(320)
        layout = QVBoxLayout(self)
        layout.setSpacing(10)
        layout.addStretch(2)
        for widget in (self._title, self._text):
            widget.setAlignment(Qt.AlignmentFlag.AlignCenter)
            layout.addWidget(widget)
        layout.addWidget(self._progress, 0, Qt.AlignmentFlag.AlignCenter)
        layout.addWidget(self._action, 0, Qt.AlignmentFlag.AlignCenter)
        layout.addStretch(3)
        self.show_state("", "")

    def show_state(
        self, title: str, text: str, action: str = "", progress: float | None = None
    ) -> None:
        """Show other words; ``progress`` from 0 to 1 shows a bar, below 0 one without an amount."""
        self._title.setText(title)
        self._text.setText(text)
        self._action.setText(action)
        self._action.setAccessibleName(action)
        self._action.setVisible(bool(action))
        self._progress.setVisible(progress is not None)
        if progress is not None:
            self._progress.setRange(0, 0 if progress < 0 else 1000)
            self._progress.setValue(round(max(0.0, progress) * 1000))
            self._progress.setAccessibleName(text)
