"""The card about the program: versions, licences, and the report for whoever helps."""

import sys

from PySide6.QtCore import QLibraryInfo, Signal
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QPlainTextEdit

from app.state.report_bundle import version, versions
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
        self.parts = QPlainTextEdit()
        self.parts.setReadOnly(True)
        self.parts.setTabChangesFocus(True)
        self.parts.setAccessibleName(AboutWords.PARTS)
        self.parts.setFixedHeight(PARTS_HEIGHT)
        self.parts.hide()
        self._told = label("", "dim", is_wrapping=True)
        self._told.hide()
        self.body.addLayout(actions)
        self.body.addWidget(label(AboutWords.REPORT_EXPLAINED, "dim", is_wrapping=True))
        self.body.addWidget(self._told)
        self.body.addWidget(self.parts)

    def save_report(self, path: str, data: bytes) -> None:
        """Write a report and say what came of it."""
        save(path, data, self._told)

    def told(self) -> str:
        """Return what was said of the last report."""
        return self._told.text()

    def _on_parts_clicked(self) -> None:
        if not self.parts.toPlainText():
            self.parts.setPlainText("\n".join(versions()))
        self.parts.setVisible(self.parts.isHidden())

    def _on_report_clicked(self) -> None:
        path, _ = QFileDialog.getSaveFileName(
            self, AboutWords.REPORT, "larder-report.zip", AboutWords.REPORT_FILES
        )
        if path:
            self.report_wanted.emit(path)
