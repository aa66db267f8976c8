"""The line below plans that says which figures of this PC are stated and not found."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.text.error_heads import StepWords
from app.text.figure_words import stated_line, stated_list
from app.views.pieces import button, label
from runtime.protocol.figure_messages import StatedFigures


class StatedLine(QWidget):
    """How many figures are stated; hovering, or a screen reader, tells which; and the way there."""

    settings_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._line = label("", "dim", is_wrapping=True)
        self.settings = button(StepWords.SETTINGS, "quiet")
        self.settings.clicked.connect(self.settings_wanted)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._line, 1)
        layout.addWidget(self.settings)

    def show_stated(self, stated: StatedFigures | None) -> None:
        """Show what is stated; hidden where nothing is."""
        self.setVisible(stated is not None)
        if stated is None:
            return
        told = stated_list(stated)
        self._line.setText(stated_line(stated))
        self._line.setToolTip(told)
        self._line.setAccessibleDescription(told)
        self.settings.setAccessibleDescription(self._line.text())

    def text(self) -> str:
        """Return what is shown."""
        return self._line.text()

    def told(self) -> str:
        """Return which figures are told of."""
        return self._line.toolTip()
