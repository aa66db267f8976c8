"""The warning about the drive: it comes and goes with what is measured."""

import dataclasses

from PySide6.QtCore import QObject, Signal

from app.state.drive_warning import (
    DriveUse,
    DriveWarning,
    best_remedies,
    is_too_much,
    use_of_answer,
    use_of_totals,
)
from app.state.session import Session
from app.state.settings import SettingsState
from app.state.telemetry import TelemetryState
from runtime.protocol.chat import GenerationStats
from runtime.protocol.messages import ModelPlanned, Reply
from runtime.protocol.plan import PlacementPlan
from runtime.protocol.values import Budgets

LOOK_BACK_S = 5.0


class DriveWatch(QObject):
    """Looks at measurements and answers, and keeps the warning that is due.

    Threads: window thread.
    """

    changed = Signal()
    """``warning`` or ``use`` is another."""

    def __init__(
        self,
        session: Session,
        telemetry: TelemetryState,
        settings: SettingsState,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._session = session
        self._telemetry = telemetry
        self._settings = settings
        self._use: DriveUse | None = None
        self._warning: DriveWarning | None = None
        self._plan: PlacementPlan | None = None
        self._roomy: list[PlacementPlan] = []
        telemetry.steadied.connect(self._on_steadied)
        session.changed.connect(self._on_session_changed)
        settings.changed.connect(self._on_settings_changed)
        self._quiet_models = settings.values.quiet_drive_models

    @property
    def use(self) -> DriveUse | None:
        """What the drive takes part in, as last measured; None before the first answer."""
        return self._use

    @property
    def warning(self) -> DriveWarning | None:
        """What a person has to be told now; nothing of a model they want no warning of."""
        return None if self.is_quiet else self._warning

    @property
    def is_quiet(self) -> bool:
        """Whether the person wants no warning of the loaded model."""
        loaded = self._session.loaded
        return loaded is not None and loaded.folder in self._settings.values.quiet_drive_models

    @property
    def max_energy_ratio(self) -> float:
        """The person's limit for the drive's share of the energy."""
        return self._settings.values.max_drive_energy_ratio

    def is_answer_warned(self, stats: GenerationStats) -> bool:
        """Whether one answer by itself went over the limits."""
        return not self.is_quiet and is_too_much(use_of_answer(stats), self.max_energy_ratio)

    def be_quiet(self) -> None:
        """Warn no more of the loaded model, until the settings say otherwise."""
        loaded = self._session.loaded
        if loaded is not None and not self.is_quiet:
            models = [*self._settings.values.quiet_drive_models, loaded.folder]
            self._settings.change(quiet_drive_models=models)

    def take_answer(self, stats: GenerationStats | None) -> None:
        """Take what an answer took that has just ended."""
        if stats is not None and self._session.loaded is not None:
            self._take(use_of_answer(stats))

    def _on_steadied(self) -> None:
        telemetry = self._telemetry
        totals = telemetry.series.recent_decoding(telemetry.now_s, LOOK_BACK_S)
        if totals.num_tokens:
            self._take(use_of_totals(totals))

    def _take(self, use: DriveUse) -> None:
        before = self._warning
        self._use = use
        if not is_too_much(use, self.max_energy_ratio, was_too_much=before is not None):
            self._warning = None
        elif before is None:
            self._warning = DriveWarning(use)
            self._ask()
        else:
            self._warning = dataclasses.replace(before, use=use)
        self.changed.emit()

    def _on_session_changed(self) -> None:
        plan = self._session.loaded_plan
        if plan is self._plan:
            return
        is_other_model = (
            plan is None
            or self._plan is None
            or (plan.model_folder, plan.kind) != (self._plan.model_folder, self._plan.kind)
        )
        self._plan = plan
        if is_other_model:
            self._use = None
        reads_nothing = plan is not None and (
            plan.forecast is not None and plan.forecast.drive_bytes_per_token <= 0
        )
        if is_other_model or reads_nothing:
            self._warning = None
        elif self._warning is not None:
            self._warning = dataclasses.replace(self._warning, remedies=())
            self._ask()
        self.changed.emit()

    def _on_settings_changed(self) -> None:
        models = self._settings.values.quiet_drive_models
        if models != self._quiet_models:
            self._quiet_models = models
            self.changed.emit()

    def _ask(self) -> None:
        """Ask for the plans that this PC could carry out without budgets of the person's own."""
        self._session.budgets.plan_loaded(Budgets(), self._on_roomy_planned)

    def _on_roomy_planned(self, event: Reply) -> None:
        """Ask for those under the budgets in force too, where they differ."""
        if not isinstance(event, ModelPlanned):
            return
        self._roomy = event.plans
        budgets = self._session.loaded_budgets
        if budgets == Budgets():
            self._on_planned(event)
        else:
            self._session.budgets.plan_loaded(budgets, self._on_planned)

    def _on_planned(self, event: Reply) -> None:
        plan = self._session.loaded_plan
        if isinstance(event, ModelPlanned) and self._warning is not None and plan is not None:
            remedies = best_remedies(plan, self._roomy, event.plans)
            self._warning = dataclasses.replace(self._warning, remedies=remedies)
            self.changed.emit()
