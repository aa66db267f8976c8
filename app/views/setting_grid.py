"""A card of settings: captions at the left, fields at the right, hints below them."""

from PySide6.QtWidgets import QGridLayout, QWidget

from app.views.pieces import Card, label

MAX_FIELD_WIDTH = 520


class SettingGrid(Card):
    """One area of the settings."""

    def __init__(self, heading: str) -> None:
        super().__init__(heading)
        self.grid = QGridLayout()
        self.grid.setHorizontalSpacing(16)
        self.grid.setVerticalSpacing(10)
        self.grid.setColumnMinimumWidth(0, 220)
        self.grid.setColumnStretch(1, 1)
        self.body.addLayout(self.grid)

    def add_row(self, name: str, field: QWidget, hint: str = "") -> None:
        """Add a field under a name that screen readers say too."""
        row = self.grid.rowCount()
        caption = label(name, is_wrapping=True)
        caption.setBuddy(field)
        field.setAccessibleName(name)
        field.setMaximumWidth(min(field.maximumWidth(), MAX_FIELD_WIDTH))
        self.grid.addWidget(caption, row, 0)
        self.grid.addWidget(field, row, 1)
        if hint:
            field.setAccessibleDescription(hint)
            self.grid.addWidget(label(hint, "dim", is_wrapping=True), row + 1, 1)
