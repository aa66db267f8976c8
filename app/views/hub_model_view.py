"""One model of a hub as it would lie on this PC: facts, plans, the button to download."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.state.downloads import DownloadItem, DownloadStage
from app.state.hub_choice import Choice
from app.text import phrases
from app.text.discover_words import DiscoverWords, card_lines, download_button, download_line
from app.text.errors import sentence
from app.text.words import ModelWords
from app.theme import metrics
from app.theme.palette import Palette
from app.views.pieces import Card, button, clear_layout, label, scrolling
from app.views.plan_card import PlanCard
from app.views.variants_card import VariantsCard

_GOING_ON = (DownloadStage.WAITING, DownloadStage.RUNNING, DownloadStage.PAUSING)


class HubModelView(QWidget):
    """Shows a ``Choice`` and the download of the same model."""

    download_wanted = Signal()
    pause_wanted = Signal(str)
    resume_wanted = Signal(str)
    folder_chosen = Signal(str)

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self._palette = palette
        self._choice: Choice | None = None
        self._item: DownloadItem | None = None
        self._title = label("", "title", is_wrapping=True)
        self._line = label("", "dim", is_wrapping=True)
        self._facts = label("", is_wrapping=True)
        self._facts.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._problem = label("", "error", is_wrapping=True)
        self.variants = VariantsCard()
        self._plans = QVBoxLayout()
        self._plans.setSpacing(metrics.GAP)
        self._progress = label("", "dim", is_wrapping=True)
        self.download = button(DiscoverWords.DOWNLOAD, "primary")
        self.pause = button(DiscoverWords.PAUSE)
        self.resume = button(DiscoverWords.RESUME, "primary")
        self.look_at = button(DiscoverWords.LOOK_AT, "primary")
        self._build()
        self.download.clicked.connect(self.download_wanted)
        self.pause.clicked.connect(lambda: self.pause_wanted.emit(self._key()))
        self.resume.clicked.connect(lambda: self.resume_wanted.emit(self._key()))
        self.look_at.clicked.connect(lambda: self.folder_chosen.emit(self._folder()))

    def _build(self) -> None:
        facts = Card()
        facts.body.addWidget(self._facts)
        self._facts_card = facts
        inside = QWidget()
        column = QVBoxLayout(inside)
        column.setContentsMargins(0, 0, 4, 0)
        column.setSpacing(metrics.GAP)
        for part in (self._title, self._line, facts, self.variants, self._problem):
            column.addWidget(part)
        column.addLayout(self._plans)
        column.addStretch(1)
        area = scrolling(inside, ModelWords.THIS_MODEL)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        foot = QHBoxLayout()
        foot.addWidget(self._progress, 1)
        for widget in (self.pause, self.resume, self.look_at, self.download):
            foot.addWidget(widget)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(area, 1)
        layout.addLayout(foot)

    def show_choice(
        self,
        choice: Choice,
        item: DownloadItem | None,
        variant: str = "",
        done: frozenset[str] = frozenset(),
    ) -> None:
        """Show a model, or one of those in GGUF, and the download of it if there is one.

        ``done`` are those of its page that were downloaded since.
        """
        if choice != self._choice:
            self._choice = choice
            self._show_facts(choice)
            self._show_plans(choice)
        self.variants.show_choice(choice, variant, done)
        self._item = item
        stage = item.stage if item is not None else None
        card = choice.card
        is_here = (card is not None and card.is_here) or stage is DownloadStage.DONE
        is_going_on = stage in _GOING_ON
        is_stopped = stage in (DownloadStage.PAUSED, DownloadStage.FAILED)
        can_load = card is not None and card.problem is None
        has_room = card is not None and card.size_bytes - card.kept_bytes <= card.free_bytes
        self.look_at.setVisible(is_here)
        self.pause.setVisible(is_going_on)
        self.pause.setEnabled(stage is not DownloadStage.PAUSING)
        self.resume.setVisible(is_stopped and not is_here)
        self.download.setVisible(can_load and not is_here and not is_going_on and not is_stopped)
        self.download.setEnabled(has_room)
        text = download_line(item) if item is not None and not is_here else ""
        if can_load and not has_room and not is_here:
            text = text or DiscoverWords.NO_ROOM
        self._progress.setText(text)
        if card is not None:
            self.download.setText(download_button(card))
            self.download.setAccessibleName(self.download.text())

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._palette = palette
        if self._choice is not None:
            self._show_plans(self._choice)

    def _show_facts(self, choice: Choice) -> None:
        card, report = choice.card, choice.report
        self._title.setText(choice.model_id)
        line = phrases.model_line(report) if report is not None else ""
        if choice.is_asking:
            line = DiscoverWords.ASKING if card is None else DiscoverWords.PLANNING
        elif card is not None and card.problem is None and not card.outline_folder:
            line = DiscoverWords.NO_OUTLINE
        self._line.setText(line)
        self._line.setVisible(bool(line))
        self._facts.setText(card_lines(card) if card is not None else "")
        self._facts_card.setVisible(card is not None)
        self._problem.setText(sentence(choice.error) if choice.error is not None else "")
        self._problem.setVisible(choice.error is not None)

    def _show_plans(self, choice: Choice) -> None:
        clear_layout(self._plans)
        for plan in choice.plans:
            card = PlanCard(
                plan,
                self._palette,
                is_recommended=plan.kind is choice.recommended,
                is_chosen=plan.kind is choice.recommended,
                can_choose=False,
            )
            self._plans.addWidget(card)

    def _key(self) -> str:
        return self._item.key if self._item is not None else ""

    def _folder(self) -> str:
        if self._item is not None and self._item.folder:
            return self._item.folder
        card = self._choice.card if self._choice is not None else None
        return card.folder if card is not None else ""
