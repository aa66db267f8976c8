"""The places below which models are looked for: what each holds, adding and removing."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QVBoxLayout, QWidget

from app.state.library_search import SearchRoot
from app.text.library_words import LibraryWords, root_line
from app.theme.palette import Palette
from app.views.pieces import Card, IconButton, button, clear_layout, label


class RootsCard(Card):
    """A row for each place; shown while the person wants to see them."""

    root_added = Signal(str)
    root_removed = Signal(str)

    def __init__(self, palette: Palette, parent: QWidget | None = None) -> None:
        super().__init__(LibraryWords.PLACES_TITLE, parent)
        self._palette = palette
        self._roots: list[SearchRoot] = []
        self.setAccessibleName(LibraryWords.PLACES_TITLE)
        self.body.addWidget(label(LibraryWords.PLACES_TEXT, "dim", is_wrapping=True))
        self._rows = QVBoxLayout()
        self._rows.setSpacing(8)
        self.body.addLayout(self._rows)
        self.add_button = button(LibraryWords.ADD_PLACE)
        self.add_button.clicked.connect(self.choose)
        foot = QHBoxLayout()
        foot.addWidget(self.add_button)
        foot.addStretch(1)
        self.body.addLayout(foot)

    def show_roots(self, roots: Sequence[SearchRoot]) -> None:
        """Show these places."""
        if list(roots) == self._roots:
            return
        self._roots = list(roots)
        clear_layout(self._rows)
        for root in self._roots:
            self._rows.addLayout(self._row(root))

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._palette = palette
        for each in self.findChildren(IconButton):
            each.show_palette(palette)

    def choose(self) -> None:
        """Ask for a place."""
        folder = QFileDialog.getExistingDirectory(self, LibraryWords.ADD_PLACE)
        if folder:
            self.root_added.emit(folder)

    def _row(self, root: SearchRoot) -> QHBoxLayout:
        path = label(root.path, is_wrapping=True)
        path.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        line = root_line(root)
        if root.is_usual:
            line = f"{line} ({LibraryWords.USUAL})"
        remove = IconButton("close", f"{LibraryWords.REMOVE_PLACE}: {root.path}", self._palette, 14)
        remove.clicked.connect(lambda: self.root_removed.emit(root.path))
        texts = QVBoxLayout()
        texts.setSpacing(0)
        texts.addWidget(path)
        texts.addWidget(label(line, "dim", is_wrapping=True))
        row = QHBoxLayout()
        row.addLayout(texts, 1)
        row.addWidget(remove, 0, Qt.AlignmentFlag.AlignTop)
        return row
