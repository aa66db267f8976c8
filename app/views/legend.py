"""What the colours of a bar or of curves mean: entries in as many columns as there is room for."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Generic, TypeVar

from PySide6.QtCore import QEvent
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QWidget

from app.theme.palette import Palette
from app.views.pieces import label
from app.views.tier_bar import Dot

MAX_COLUMNS = 3
MIN_WIDTH = 200
SPACING = 12
SPARE = 16
"""A column more is made only with so much room beside it, so that growing digits change nothing."""
Key = TypeVar("Key", bound=Hashable)


class Legend(QWidget, Generic[Key]):
    """A dot and a text for each key that is shown."""

    def __init__(self, palette: Palette, colours: Mapping[Key, str]) -> None:
        super().__init__()
        self._dots = {key: Dot(palette, colour) for key, colour in colours.items()}
        self._texts = {key: label("", "dim") for key in colours}
        self._entries: dict[Key, QWidget] = {}
        for key in colours:
            entry = self._entries[key] = QWidget(self)
            entry.hide()
            line = QHBoxLayout(entry)
            line.setContentsMargins(0, 0, 0, 0)
            line.setSpacing(5)
            line.addWidget(self._dots[key])
            line.addWidget(self._texts[key], 1)
        self._shown: list[Key] = []
        self._num_columns = MAX_COLUMNS
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(SPACING)
        self._grid.setVerticalSpacing(2)
        # What it needs depends on the columns, and those on the room.
        self.setMinimumWidth(MIN_WIDTH)

    @property
    def num_columns(self) -> int:
        """In how many columns the entries stand."""
        return self._num_columns

    def show_texts(self, texts: Mapping[Key, str]) -> None:
        """Show these entries and no others, in the order of the colours."""
        for key, text in texts.items():
            self._texts[key].setText(text)
        shown = [key for key in self._entries if key in texts]
        if shown != self._shown:
            self._shown = shown
            for key, entry in self._entries.items():
                entry.setVisible(key in texts)
            self._arrange(self._fitting())

    def texts(self) -> Sequence[str]:
        """Return the texts that are shown."""
        return [self._texts[key].text() for key in self._shown]

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        for dot in self._dots.values():
            dot.show_palette(palette)

    def _fit(self) -> None:
        """Take other columns, if they fit better."""
        if (num_columns := self._fitting()) != self._num_columns:
            self._arrange(num_columns)

    def _fitting(self) -> int:
        widths = [self._entries[key].sizeHint().width() for key in self._shown]
        widest = max(widths, default=0) + SPACING
        room = self.width() + SPACING
        fitting = max(1, min(MAX_COLUMNS, room // widest))
        roomy = max(1, min(MAX_COLUMNS, (room - SPARE) // widest))
        return fitting if fitting < self._num_columns else max(self._num_columns, roomy)

    def _arrange(self, num_columns: int) -> None:
        self._num_columns = num_columns
        for entry in self._entries.values():
            self._grid.removeWidget(entry)
        for index, key in enumerate(self._shown):
            self._grid.addWidget(self._entries[key], *divmod(index, num_columns))
        for column in range(MAX_COLUMNS):
            self._grid.setColumnStretch(column, int(column < num_columns))

    def event(self, event: QEvent) -> bool:
        """Fit the columns when a text became longer or shorter."""
        if event.type() == QEvent.Type.LayoutRequest:
            self._fit()
        return super().event(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the columns to the new width."""
        super().resizeEvent(event)
        self._fit()
