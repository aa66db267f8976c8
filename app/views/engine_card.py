"""The card of settings about the engine for graphics cards."""

from PySide6.QtWidgets import QHBoxLayout

from app.state.engine_parts import EngineParts, EngineStage
from app.text import engine_words
from app.text.engine_words import EngineWords
from app.text.errors import sentence
from app.views.pieces import Card, button, label

_CAN_FETCH = (EngineStage.OFFERED, EngineStage.FAILED)


class EngineCard(Card):
    """Shows ``EngineParts``; hidden while there is nothing to say."""

    def __init__(self, parts: EngineParts) -> None:
        super().__init__(EngineWords.TITLE)
        self._parts = parts
        self._told = label("", is_wrapping=True)
        self.fetch = button(EngineWords.FETCH, "primary")
        self.fetch.clicked.connect(parts.fetch)
        self.stop = button(EngineWords.STOP)
        self.stop.clicked.connect(parts.stop)
        self.give_back = button(EngineWords.GIVE_BACK)
        self.give_back.clicked.connect(parts.give_back)
        actions = QHBoxLayout()
        for action in (self.fetch, self.stop, self.give_back):
            actions.addWidget(action)
        actions.addStretch(1)
        self.body.addWidget(self._told)
        self.body.addLayout(actions)
        parts.changed.connect(self._show)
        self._show()

    def told(self) -> str:
        """Return what is said of the engine."""
        return self._told.text()

    def _show(self) -> None:
        stage = self._parts.stage
        self._told.setText(self._line())
        # One that could not be removed is still here, and is not to be fetched again.
        is_left = stage is EngineStage.FAILED and self._parts.is_here
        self.fetch.setVisible(stage in _CAN_FETCH and not is_left)
        self.stop.setVisible(stage is EngineStage.FETCHING)
        self.give_back.setVisible(stage is EngineStage.READY or is_left)
        self.setVisible(stage is not EngineStage.NOT_NEEDED)

    def _line(self) -> str:
        parts, listed = self._parts, self._parts.listed
        if parts.stage is EngineStage.READY:
            return EngineWords.READY
        if parts.stage is EngineStage.GIVEN_BACK:
            return EngineWords.GIVEN_BACK
        if parts.error is not None:
            return sentence(parts.error)
        if listed is None:
            return ""
        if parts.stage is EngineStage.FETCHING:
            return engine_words.fetching(parts.done_bytes, listed.size_bytes)
        return engine_words.offered(parts.card, listed.size_bytes, listed.source)
