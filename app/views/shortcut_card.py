"""The list of all keys, at the end of the settings."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout

from app.text.shortcut_words import ShortcutWords, shortcut_lines
from app.views.pieces import Card, label


class ShortcutCard(Card):
    """Keys at the left, what they do at the right; it takes the focus so that it can be shown."""

    def __init__(self) -> None:
        super().__init__(ShortcutWords.TITLE)
        lines = shortcut_lines()
        self.setAccessibleName(ShortcutWords.TITLE)
        self.setAccessibleDescription("\n".join(f"{keys}: {what}" for keys, what in lines))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        grid = QGridLayout()
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(6)
        grid.setColumnMinimumWidth(0, 220)
        grid.setColumnStretch(1, 1)
        for row, (keys, what) in enumerate(lines):
            grid.addWidget(label(keys, "strong"), row, 0)
            grid.addWidget(label(what, is_wrapping=True), row, 1)
        self.body.addLayout(grid)
