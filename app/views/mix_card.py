"""The card that orders a copy of mixed bits: size, text, and the button."""

from pathlib import Path

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QDoubleSpinBox,
    QFileDialog,
    QGridLayout,
    QHBoxLayout,
    QSizePolicy,
)

from app.state.load_flow import MixOrder
from app.state.mix_range import MixRange
from app.text.mix_words import MixWords, bits_of
from app.views.pieces import Card, button, label

_GIB = 1 << 30


class MixCard(Card):
    """Shows which sizes there are; the one that suits this PC is proposed."""

    ordered = Signal(object)
    """A ``MixOrder``."""

    def __init__(self) -> None:
        super().__init__(MixWords.TITLE)
        self._range: MixRange | None = None
        self._text = ""
        self.body.addWidget(label(MixWords.EXPLAINED, "dim", is_wrapping=True))
        self.amount = QDoubleSpinBox()
        self.amount.setSuffix(" GiB")
        self.amount.setAccessibleName(MixWords.SIZE)
        self.amount.valueChanged.connect(self._show_bits)
        self._bits = label("", "dim", is_wrapping=True)
        self.text = QComboBox()
        self.text.setAccessibleName(MixWords.TEXT)
        # The name of a person's file may be long.
        self.text.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.text.addItem(MixWords.OURS, "")
        self.text.addItem(MixWords.YOURS, None)
        self.text.activated.connect(self._on_text_chosen)
        self.order = button(MixWords.ORDER)
        self.order.clicked.connect(self._on_ordered)
        grid = QGridLayout()
        grid.setHorizontalSpacing(10)
        grid.setColumnStretch(0, 2)
        grid.setColumnStretch(2, 3)
        grid.addWidget(label(MixWords.SIZE, is_wrapping=True), 0, 0)
        grid.addWidget(self.amount, 0, 1)
        grid.addWidget(self._bits, 0, 2)
        grid.addWidget(label(MixWords.TEXT, is_wrapping=True), 1, 0)
        grid.addWidget(self.text, 1, 1, 1, 2)
        foot = QHBoxLayout()
        foot.addStretch(1)
        foot.addWidget(self.order)
        self.body.addLayout(grid)
        self.body.addLayout(foot)

    def show_range(self, sizes: MixRange | None, *, is_busy: bool) -> None:
        """Show the sizes of another model, with the best chosen; hidden where there are none."""
        self.setVisible(sizes is not None)
        self.order.setEnabled(not is_busy)
        if sizes is None or sizes == self._range:
            return
        before, self._range = self._range, sizes
        is_other = before is None or before.num_parameters != sizes.num_parameters
        step = 0.1 if sizes.most_bytes > _GIB else 0.001
        with QSignalBlocker(self.amount):
            self.amount.setDecimals(1 if step == 0.1 else 3)
            self.amount.setSingleStep(step)
            self.amount.setRange(sizes.least_bytes / _GIB, sizes.most_bytes / _GIB)
            if is_other:
                self.amount.setValue(sizes.best_bytes / _GIB)
        self._show_bits()

    def bits(self) -> str:
        """Return what is said beside the size."""
        return self._bits.text()

    def _show_bits(self) -> None:
        if self._range is not None:
            self._bits.setText(bits_of(self._range.bits(self._size_bytes())))

    def _size_bytes(self) -> int:
        return round(self.amount.value() * _GIB)

    def _on_text_chosen(self, index: int) -> None:
        if self.text.itemData(index) is None:
            path, _ = QFileDialog.getOpenFileName(self, MixWords.TEXT, "", MixWords.FILES)
            if path:
                self._take_text(path)
            else:
                self.text.setCurrentIndex(self.text.findData(self._text))
        else:
            self._text = str(self.text.itemData(index))

    def _take_text(self, path: str) -> None:
        """List a text of the person's in place of the one before, and choose it."""
        if self.text.count() > 2:
            self.text.removeItem(1)
        self.text.insertItem(1, Path(path).name, path)
        self.text.setCurrentIndex(1)
        self._text = path

    def _on_ordered(self) -> None:
        self.ordered.emit(MixOrder(self._size_bytes(), self._text))
