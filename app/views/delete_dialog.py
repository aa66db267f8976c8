"""The question before a model goes to the trash: what goes, how large it is, where it lies."""

from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QDialogButtonBox,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.state.model_removal import Removal
from app.text.library_words import DeleteWords, copy_title, removal_paths, trash_button, weight_line
from app.text.units import size
from app.theme import metrics
from app.views.pieces import Card, label, set_look
from runtime.protocol.model import PreparedCopy


class DeleteDialog(QDialog):
    """A tick for the model and each of its prepared copies; nothing but the model is ticked."""

    def __init__(self, removal: Removal, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._removal = removal
        self.setWindowTitle(removal.name)
        self.setMinimumWidth(520)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(*(metrics.PAGE_MARGIN,) * 4)
        layout.setSpacing(metrics.GAP)
        layout.addWidget(label(DeleteWords.TITLE, "heading"))
        weight = removal.weight
        self.model_tick = QCheckBox(DeleteWords.MODEL)
        self.model_tick.setChecked(weight.obstacle is None)
        self.model_tick.setEnabled(weight.obstacle is None)
        layout.addWidget(_row(self.model_tick, removal_paths(removal), weight_line(weight)))
        self.copy_ticks: list[tuple[QCheckBox, PreparedCopy]] = []
        for copy in removal.copies:
            tick = QCheckBox(copy_title(copy))
            self.copy_ticks.append((tick, copy))
            layout.addWidget(_row(tick, copy.folder, size(copy.size_bytes)))
        layout.addWidget(label(DeleteWords.TRASH_TEXT, "dim", is_wrapping=True))
        buttons = QDialogButtonBox()
        self.trash = QPushButton()
        set_look(self.trash, "look", "primary")
        buttons.addButton(self.trash, QDialogButtonBox.ButtonRole.AcceptRole)
        keep = buttons.addButton(DeleteWords.KEEP, QDialogButtonBox.ButtonRole.RejectRole)
        # Enter pressed by slip changes nothing.
        keep.setDefault(True)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        self.finished.connect(self.deleteLater)
        layout.addWidget(buttons)
        for tick in (self.model_tick, *(tick for tick, _ in self.copy_ticks)):
            tick.toggled.connect(self._show_amount)
        self._show_amount()
        keep.setFocus()

    @property
    def is_model_wanted(self) -> bool:
        """Whether the model is ticked."""
        return self.model_tick.isChecked()

    @property
    def copies_wanted(self) -> list[PreparedCopy]:
        """The copies that are ticked."""
        return [copy for tick, copy in self.copy_ticks if tick.isChecked()]

    def _show_amount(self) -> None:
        num_bytes = sum(copy.size_bytes for copy in self.copies_wanted)
        num_bytes += self._removal.weight.num_bytes if self.is_model_wanted else 0
        is_any = self.is_model_wanted or bool(self.copies_wanted)
        name = trash_button(num_bytes) if is_any else DeleteWords.CHOOSE
        self.trash.setText(name)
        self.trash.setAccessibleName(name)
        self.trash.setEnabled(is_any)


def _row(tick: QCheckBox, folder: str, line: str) -> Card:
    card = Card()
    card.body.setSpacing(2)
    card.body.addWidget(tick)
    tick.setAccessibleDescription(f"{folder}, {line}")
    card.body.addWidget(label(line, is_wrapping=True))
    card.body.addWidget(label(folder, "dim", is_wrapping=True))
    return card
