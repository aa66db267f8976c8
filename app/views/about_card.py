"""The card about the program: versions, licences, and the report for whoever helps."""

import sys

from PySide6.QtCore import QLibraryInfo, Qt, Signal
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QListWidget, QPlainTextEdit

from app.state.licences import Component, all_components, licence_text, version
from app.text.about_words import AboutWords, version_line
from app.text.view_words import DialogWords
from app.views.pieces import Card, button, label
from app.views.saving import save

PARTS_HEIGHT = 200


class AboutCard(Card):
    """Shows versions; what a report holds is not its matter."""

    report_wanted = Signal(str)
    """The file that the person chose."""

    def __init__(self) -> None:
        super().__init__(AboutWords.TITLE)
        python, qt = sys.version.split()[0], QLibraryInfo.version().toString()
        self.body.addWidget(label(version_line(version(), python, qt)))
        self.body.addWidget(label(DialogWords.ABOUT_TEXT, "dim", is_wrapping=True))
        self.parts_button = button(AboutWords.SHOW_PARTS)
        self.parts_button.clicked.connect(self._on_parts_clicked)
        self.report_button = button(AboutWords.REPORT)
        self.report_button.setAccessibleDescription(AboutWords.REPORT_EXPLAINED)
        self.report_button.clicked.connect(self._on_report_clicked)
        actions = QHBoxLayout()
        actions.addWidget(self.parts_button)
        actions.addWidget(self.report_button)
        actions.addStretch(1)
        self._components: list[Component] = []
        self.parts = QListWidget()
        self.parts.setAccessibleName(AboutWords.PARTS)
        self.parts.setFixedHeight(PARTS_HEIGHT)
        self.parts.setWordWrap(True)
        self.parts.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.parts.currentRowChanged.connect(self._on_part_chosen)
        self.licence = QPlainTextEdit()
        self.licence.setReadOnly(True)
        self.licence.setTabChangesFocus(True)
        self.licence.setAccessibleName(AboutWords.LICENCE)
        self.licence.setFixedHeight(PARTS_HEIGHT)
        for widget in (self.parts, self.licence):
            widget.hide()
        self._told = label("", "dim", is_wrapping=True)
        self._told.hide()
        self.body.addLayout(actions)
        self.body.addWidget(label(AboutWords.REPORT_EXPLAINED, "dim", is_wrapping=True))
        self.body.addWidget(self._told)
        self.body.addWidget(self.parts)
        self.body.addWidget(self.licence)

    def save_report(self, path: str, data: bytes) -> None:
        """Write a report and say what came of it."""
        save(path, data, self._told)

    def told(self) -> str:
        """Return what was said of the last report."""
        return self._told.text()

    def _on_parts_clicked(self) -> None:
        if not self._components:
            self._components = all_components()
            self.parts.addItems([component.line for component in self._components])
            self.parts.setCurrentRow(0)
        is_wanted = self.parts.isHidden()
        for widget in (self.parts, self.licence):
            widget.setVisible(is_wanted)

    def _on_part_chosen(self, row: int) -> None:
        self.licence.setPlainText(licence_text(self._components[row]))

    def _on_report_clicked(self) -> None:
        path, _ = QFileDialog.getSaveFileName(
            self, AboutWords.REPORT, "larder-report.zip", AboutWords.REPORT_FILES
        )
        if path:
            self.report_wanted.emit(path)
