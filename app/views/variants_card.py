"""The models in GGUF of one page: the same weights in files of several sizes, one to choose."""

import dataclasses
from collections.abc import Mapping, Sequence

import msgspec
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QRadioButton, QVBoxLayout, QWidget

from app.state.hub_choice import Choice
from app.text.discover_words import DiscoverWords, unreadable_line, variant_line
from app.theme import metrics
from app.views.pieces import Card, clear_layout, label
from runtime.protocol.hub import HubFit, HubOutlook, HubVariant

_Shown = tuple[tuple[HubVariant, ...], Mapping[str, HubOutlook], str]


class VariantRow(QWidget):
    """A radio button whose words wrap, which those of a radio button alone do not."""

    def __init__(self) -> None:
        super().__init__()
        self.radio = QRadioButton()
        self._line = label("", is_wrapping=True)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.radio, 0, Qt.AlignmentFlag.AlignTop)
        layout.addWidget(self._line, 1)

    def text(self) -> str:
        """Return the words."""
        return self._line.text()

    def set_text(self, line: str) -> None:
        """Show other words."""
        self._line.setText(line)
        self.radio.setAccessibleName(line)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Choose it by its words too."""
        if event.button() is Qt.MouseButton.LeftButton and self.rect().contains(
            event.position().toPoint()
        ):
            self.radio.click()


class VariantsCard(Card):
    """Shows the variants of a ``Choice``, each with what it would be like on this PC."""

    chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._shown: _Shown | None = None
        self._group = QButtonGroup(self)
        self._rows = QVBoxLayout()
        self._rows.setSpacing(metrics.GAP // 2)
        self._others = label("", "dim", is_wrapping=True)
        self.body.addWidget(label(DiscoverWords.SIZES, "strong", is_wrapping=True))
        self.body.addLayout(self._rows)
        self.body.addWidget(self._others)
        self.choices: dict[str, VariantRow] = {}
        """By the names of variants that can be read."""

    def show_choice(self, choice: Choice, current: str, done: frozenset[str] = frozenset()) -> None:
        """Show what there is, which of it is looked at, and what came meanwhile."""
        variants = tuple(
            msgspec.structs.replace(each, is_here=each.is_here or each.name in done)
            for each in choice.variants
        )
        choice = dataclasses.replace(choice, variants=variants)
        shown = (choice.variants, choice.outlooks, choice.advised)
        if shown != self._shown:
            self._shown = shown
            self._show_rows(choice)
        if current in self.choices:
            self.choices[current].radio.setChecked(True)
        self.setVisible(bool(choice.variants))

    def _show_rows(self, choice: Choice) -> None:
        readable = [each for each in choice.variants if each.fit is not HubFit.NOT_RUNNABLE]
        if list(self.choices) != [each.name for each in readable]:
            self._make_rows(readable)
        for variant in readable:
            line = variant_line(
                variant,
                choice.outlooks.get(variant.name),
                is_advised=variant.name == choice.advised,
            )
            self.choices[variant.name].set_text(line)
        others = unreadable_line([each for each in choice.variants if each not in readable])
        self._others.setText(others)
        self._others.setVisible(bool(others))

    def _make_rows(self, variants: Sequence[HubVariant]) -> None:
        clear_layout(self._rows)
        self.choices = {}
        for variant in variants:
            row = VariantRow()
            row.radio.clicked.connect(lambda _=False, name=variant.name: self.chosen.emit(name))
            self._group.addButton(row.radio)
            self._rows.addWidget(row)
            self.choices[variant.name] = row
