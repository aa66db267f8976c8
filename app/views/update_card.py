"""The card of settings about newer versions of the program."""

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QCheckBox, QHBoxLayout

from app.state.updates import Updates, UpdateStage
from app.text import update_words
from app.text.errors import sentence
from app.text.update_words import UpdateWords
from app.views.pieces import Card, button, label


class UpdateCard(Card):
    """Shows ``Updates`` and passes on what the person wants."""

    def __init__(self, updates: Updates) -> None:
        super().__init__(UpdateWords.TITLE)
        self._updates = updates
        package = updates.package
        address = package.address if package is not None else ""
        self.allowed = QCheckBox(UpdateWords.ALLOWED)
        self.allowed.setAccessibleName(UpdateWords.ALLOWED)
        self.look = button(UpdateWords.LOOK)
        self.look.clicked.connect(updates.look)
        self.fetch = button(UpdateWords.FETCH, "primary")
        self.fetch.clicked.connect(updates.fetch)
        self.stop = button(UpdateWords.STOP)
        self.stop.clicked.connect(updates.stop)
        self.open = button(UpdateWords.OPEN, "primary")
        self.open.clicked.connect(self._on_open)
        self._told = label("", is_wrapping=True)
        self._notes = label("", "dim", is_wrapping=True)
        # What came over the network is text and nothing else.
        self._notes.setTextFormat(Qt.TextFormat.PlainText)
        self._notes.setAccessibleName(UpdateWords.NOTES)
        actions = QHBoxLayout()
        for action in (self.look, self.fetch, self.stop, self.open):
            actions.addWidget(action)
        actions.addStretch(1)
        self.body.addWidget(self.allowed)
        self.body.addWidget(label(update_words.explained(address), "dim", is_wrapping=True))
        self.body.addWidget(self._told)
        self.body.addWidget(self._notes)
        self.body.addLayout(actions)
        self.body.addWidget(label(UpdateWords.UNTOUCHED, "dim", is_wrapping=True))
        if package is not None and package.keeps_previous:
            self.body.addWidget(label(UpdateWords.KEPT, "dim", is_wrapping=True))
        updates.changed.connect(self._show)
        self._show()

    def told(self) -> str:
        """Return what is said of the newer version."""
        return self._told.text()

    def notes(self) -> str:
        """Return what is said to be new; empty while nothing is offered."""
        return self._notes.text()

    def _show(self) -> None:
        updates, stage = self._updates, self._updates.stage
        update = updates.update
        self._told.setText(self._line())
        self._notes.setText(update.notes if update is not None else "")
        self._notes.setVisible(update is not None)
        can_fetch = stage is UpdateStage.FOUND or (
            stage is UpdateStage.FAILED and update is not None
        )
        self.look.setEnabled(not updates.is_busy and stage is not UpdateStage.READY)
        self.fetch.setVisible(can_fetch)
        self.stop.setVisible(updates.is_busy)
        self.open.setVisible(stage is UpdateStage.FETCHED)

    def _line(self) -> str:
        updates, update = self._updates, self._updates.update
        match updates.stage:
            case UpdateStage.LOOKING:
                return UpdateWords.LOOKING
            case UpdateStage.NEWEST:
                return UpdateWords.NEWEST
            case UpdateStage.FAILED if updates.error is not None:
                return sentence(updates.error)
        if update is None:
            return UpdateWords.NOT_LOOKED
        match updates.stage:
            case UpdateStage.FETCHING:
                return update_words.fetching(updates.done_bytes, update.size_bytes)
            case UpdateStage.FETCHED:
                return update_words.fetched(update.version, updates.file)
            case UpdateStage.READY:
                return update_words.ready(update.version)
        return update_words.offered(update.version, update.size_bytes)

    def _on_open(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(self._updates.file))
