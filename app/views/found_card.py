"""What was found about a model that is looked at: why it cannot run, or what to know."""

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout

from app.text.errors import sentence
from app.text.words import ShellWords
from app.views.pieces import Card, button, label
from runtime.protocol.errors import ErrorReport


class FoundCard(Card):
    """A sentence for each finding; those of a model that cannot run can be copied with details.

    What helps stands beside it: the plans, the list of models, the button that chooses a folder.
    """

    def __init__(self, heading: str, found: Sequence[ErrorReport], look: str = "") -> None:
        super().__init__(heading)
        self._heading = heading
        self._found = list(found)
        for report in found:
            line = label(sentence(report), look, is_wrapping=True)
            line.setTextInteractionFlags(
                Qt.TextInteractionFlag.TextSelectableByMouse
                | Qt.TextInteractionFlag.TextSelectableByKeyboard
            )
            self.body.addWidget(line)
        if look == "error":
            self.copy_button = button(ShellWords.COPY_DETAILS, "quiet")
            self.copy_button.clicked.connect(self._on_copy_clicked)
            actions = QHBoxLayout()
            actions.addWidget(self.copy_button)
            actions.addStretch(1)
            self.body.addLayout(actions)
        self.setAccessibleName(heading)

    def _on_copy_clicked(self) -> None:
        parts = [self._heading]
        for report in self._found:
            parts += [sentence(report), report.detail]
        QGuiApplication.clipboard().setText("\n\n".join(part for part in parts if part))
