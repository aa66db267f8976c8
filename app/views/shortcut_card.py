"""The list of all keys, at the end of the settings."""

from PySide6.QtCore import Qt

from app.text.shortcut_words import ShortcutWords, shortcut_lines
from app.views.pieces import label
from app.views.setting_grid import SettingGrid


class ShortcutCard(SettingGrid):
    """Keys at the left, what they do at the right; it takes the focus so that it can be shown."""

    def __init__(self) -> None:
        super().__init__(ShortcutWords.TITLE)
        lines = shortcut_lines()
        self.setAccessibleName(ShortcutWords.TITLE)
        self.setAccessibleDescription("\n".join(f"{keys}: {what}" for keys, what in lines))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.grid.setVerticalSpacing(6)
        for row, (keys, what) in enumerate(lines):
            self.grid.addWidget(label(keys, "strong"), row, 0)
            self.grid.addWidget(label(what, is_wrapping=True), row, 1)
