"""What is known about the folder a person looks at: report, plans, budget, the button to start."""

from pathlib import PurePath

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QVBoxLayout, QWidget

from app.state.budget_range import used_device
from app.state.candidate import Candidate
from app.state.candidate_flow import Limits
from app.state.load_flow import MixOrder
from app.state.mix_range import mix_range
from app.state.progress import Progress
from app.text import phrases
from app.text.errors import reason_text
from app.text.library_words import LibraryWords
from app.text.suitability_words import suitability_explained, suitability_line
from app.text.words import ModelWords, ShellWords
from app.theme import metrics
from app.theme.palette import Palette
from app.views.budget_card import BudgetCard
from app.views.found_card import FoundCard
from app.views.mix_card import MixCard
from app.views.pieces import Card, button, clear_layout, label, scrolling
from app.views.plan_card import PlanCard
from app.views.progress_text import progress_name
from app.views.stated_line import StatedLine
from runtime.protocol.errors import ErrorCode
from runtime.protocol.machine import MachineReport


class CandidateView(QWidget):
    """Report and plans of one folder, redrawn when they change."""

    plan_chosen = Signal(object)
    start_wanted = Signal()
    cancel_wanted = Signal()
    unload_wanted = Signal()
    ram_changed = Signal(object)
    vram_changed = Signal(str, object)
    context_changed = Signal(int)
    folder_wanted = Signal()
    mix_wanted = Signal(str, object)
    """The folder, and a ``MixOrder``."""
    settings_wanted = Signal()
    """The person wants to see the figures of this PC."""
    root_wanted = Signal(str)
    """The person wants the models in this folder listed."""

    def __init__(self, palette: Palette, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._palette = palette
        self._candidate: Candidate | None = None
        self._is_reason_open = False
        self._title = label("", "title", is_wrapping=True)
        self._line = label("", "dim", is_wrapping=True)
        self.suits = label("", "dim", is_wrapping=True)
        self._found = QVBoxLayout()
        self._plans = QVBoxLayout()
        for part in (self._found, self._plans):
            part.setSpacing(metrics.GAP)
        self.stated = StatedLine()
        self.stated.settings_wanted.connect(self.settings_wanted)
        self._budget = BudgetCard(palette)
        self._budget.ram_changed.connect(self.ram_changed)
        self._budget.vram_changed.connect(self.vram_changed)
        self._budget.context_changed.connect(self.context_changed)
        self.mix = MixCard()
        self.mix.ordered.connect(self._on_mix_ordered)
        self._reasons = Card(ModelWords.WHY)
        self._reason_text = label("", is_wrapping=True)
        self._reasons.body.addWidget(self._reason_text)
        inside = QWidget()
        column = QVBoxLayout(inside)
        column.setContentsMargins(0, 0, 4, 0)
        column.setSpacing(metrics.GAP)
        for widget in (self._title, self._line, self.suits):
            column.addWidget(widget)
        column.addLayout(self._found)
        column.addLayout(self._plans)
        column.addWidget(self.stated)
        column.addWidget(self._budget)
        column.addWidget(self._reasons)
        column.addWidget(self.mix)
        column.addStretch(1)
        scroll = scrolling(inside, ModelWords.THIS_MODEL)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(scroll, 1)
        layout.addLayout(self._build_foot())

    def _build_foot(self) -> QHBoxLayout:
        self._progress_text = label("", "dim")
        self._progress = QProgressBar()
        self._progress.setTextVisible(False)
        self._why = button(ModelWords.WHY)
        self._why.clicked.connect(self._on_why_clicked)
        self._other = button(ModelWords.CHOOSE_FOLDER)
        self._other.clicked.connect(self.folder_wanted)
        self._list_all = button(LibraryWords.LOOK_IN_IT, "primary")
        self._list_all.clicked.connect(self._on_list_all_clicked)
        self._unload = button(ModelWords.UNLOAD)
        self._unload.clicked.connect(self.unload_wanted)
        self._cancel = button(ShellWords.CANCEL)
        self._cancel.clicked.connect(self.cancel_wanted)
        self._start = button(ModelWords.LOAD, "primary")
        self._start.clicked.connect(self.start_wanted)
        foot = QHBoxLayout()
        foot.setSpacing(8)
        foot.addWidget(self._progress_text, 0)
        foot.addWidget(self._progress, 1)
        foot.addStretch(0)
        for widget in (self._why, self._other, self._list_all, self._unload):
            foot.addWidget(widget)
        for widget in (self._cancel, self._start):
            foot.addWidget(widget)
        return foot

    def show_candidate(
        self,
        candidate: Candidate,
        *,
        loaded_folder: str,
        is_busy: bool,
        machine: MachineReport | None,
        limits: Limits,
    ) -> None:
        """Show a folder; ``is_busy`` while something is being prepared, loaded or ended."""
        if candidate != self._candidate:
            self._candidate = candidate
            self._show_found(candidate)
            self._show_plans(candidate)
            self.stated.show_stated(candidate.stated)
        sizes = None
        if candidate.report is not None and machine is not None:
            sizes = mix_range(candidate.report, candidate.plans, machine)
        self.mix.show_range(sizes, is_busy=is_busy)
        plan = candidate.chosen_plan or (candidate.plans[0] if candidate.plans else None)
        has_budget = plan is not None and plan.min_ram_bytes > 0 and machine is not None
        self._budget.setVisible(has_budget)
        if plan is not None and machine is not None and candidate.report is not None:
            device = used_device(machine)
            budgets = limits.budgets
            vram = budgets.vram_bytes.get(device.device) if device is not None else None
            self._budget.show_vram(plan, device, vram)
            self._budget.show_effect(plan, candidate.curve, is_planning=candidate.is_planning)
            self._budget.show_ram(plan, machine, budgets.ram_bytes)
            self._budget.show_context(
                limits.context_tokens, plan.context_tokens, candidate.report.max_context_tokens
            )
        if plan is not None:
            self._reason_text.setText("\n".join(reason_text(reason) for reason in plan.reasons))
        has_reasons = plan is not None and bool(plan.reasons)
        self._why.setVisible(has_reasons and not is_busy)
        self._reasons.setVisible(has_reasons and self._is_reason_open)
        is_this_loaded = candidate.folder == loaded_folder
        can_run = candidate.report is None or candidate.report.is_runnable
        self._other.setVisible(not can_run)
        problems = candidate.report.problems if candidate.report is not None else []
        is_several = any(each.code is ErrorCode.SEVERAL_MODELS for each in problems)
        self._list_all.setVisible(is_several and not is_busy)
        self._unload.setVisible(is_this_loaded and not is_busy)
        self._cancel.setVisible(is_busy)
        self._start.setVisible(not is_busy and can_run)
        self._start.setEnabled(candidate.can_load)
        chosen = candidate.chosen_plan
        if chosen is not None and chosen.needs_prepare:
            name = ModelWords.PREPARE_AND_LOAD
        else:
            is_other = bool(loaded_folder) and not is_this_loaded
            name = ModelWords.SWITCH if is_other else ModelWords.LOAD
            name = ModelWords.RELOAD if is_this_loaded else name
        self._start.setText(name)
        self._start.setAccessibleName(name)

    def show_progress(self, progress: Progress | None, *, is_busy: bool) -> None:
        """Show how far preparing or loading is."""
        self._progress.setVisible(is_busy)
        self._progress_text.setVisible(is_busy)
        if not is_busy:
            return
        text = progress_name(progress)
        ratio = progress.ratio if progress is not None else None
        self._progress_text.setText(text)
        self._progress.setRange(0, 0 if ratio is None else 1000)
        self._progress.setValue(round((ratio or 0.0) * 1000))
        self._progress.setAccessibleName(text)

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._palette = palette
        self._budget.show_palette(palette)
        if self._candidate is not None:
            self._show_plans(self._candidate)

    def _show_found(self, candidate: Candidate) -> None:
        report = candidate.report
        name = report.name if report is not None else ""
        name = name or PurePath(candidate.folder).name or candidate.folder
        self._title.setText(phrases.on_this_pc(name))
        self._title.setToolTip(candidate.folder)
        if report is None:
            is_working = candidate.is_inspecting and candidate.error is None
            self._line.setText(ModelWords.INSPECTING if is_working else candidate.folder)
        else:
            self._line.setText(phrases.model_line(report) or candidate.folder)
        known = report.suitability if report is not None else None
        explained = suitability_explained(known)
        self.suits.setText(suitability_line(known))
        self.suits.setToolTip(explained)
        self.suits.setAccessibleDescription(explained)
        self.suits.setVisible(known is not None)
        clear_layout(self._found)
        problems = list(report.problems) if report is not None else []
        if candidate.error is not None:
            problems.insert(0, candidate.error)
        if problems:
            self._found.addWidget(FoundCard(ModelWords.PROBLEMS, problems, "error"))
        if report is not None and report.notes:
            self._found.addWidget(FoundCard(ModelWords.NOTES, report.notes))

    def _show_plans(self, candidate: Candidate) -> None:
        clear_layout(self._plans)
        for plan in candidate.plans:
            card = PlanCard(
                plan,
                self._palette,
                is_recommended=plan.kind is candidate.recommended,
                is_chosen=plan.kind is candidate.chosen,
            )
            card.chosen.connect(self.plan_chosen)
            self._plans.addWidget(card)

    def _on_mix_ordered(self, order: MixOrder) -> None:
        assert self._candidate is not None
        self.mix_wanted.emit(self._candidate.folder, order)

    def _on_list_all_clicked(self) -> None:
        assert self._candidate is not None
        self.root_wanted.emit(self._candidate.folder)

    def _on_why_clicked(self) -> None:
        self._is_reason_open = not self._is_reason_open
        self._reasons.setVisible(self._is_reason_open)
