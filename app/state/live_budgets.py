"""The budgets of the loaded model while a person moves them: preview, then change."""

import msgspec
from PySide6.QtCore import QObject, Signal

from app.state.budget_estimate import Estimate, estimate_at
from app.state.session import Session
from runtime.protocol.errors import ErrorReport
from runtime.protocol.messages import (
    BudgetsPlanned,
    BudgetsSet,
    CommandFailed,
    ModelPlanned,
    Reply,
)
from runtime.protocol.plan import BudgetCurve, PlacementPlan
from runtime.protocol.values import Budgets


class LiveBudgets(QObject):
    """Plans what the person points at, and on ``apply`` makes it so.

    One plan is asked for at a time and the newest wish counts, so that a slider may move as fast as
    it likes. Threads: window thread.
    """

    changed = Signal()

    def __init__(self, session: Session, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._wanted: Budgets | None = None
        self._asked: Budgets | None = None
        self._preview: PlacementPlan | None = None
        self._planned: Budgets | None = None
        self._bounds: PlacementPlan | None = None
        self._curve: BudgetCurve | None = None
        self._error: ErrorReport | None = None
        self._num_applying = 0
        self._applied: Budgets | None = None
        self._was_set = False
        self._kept: PlacementPlan | None = None
        self._folder = ""
        session.changed.connect(self._on_session_changed)

    @property
    def wanted(self) -> Budgets | None:
        """What the sliders point at and is not in force; None while they rest."""
        return self._wanted

    @property
    def preview(self) -> PlacementPlan | None:
        """The plan of ``wanted``, or of what was wanted shortly before; None while at rest."""
        return self._preview

    @property
    def estimate(self) -> Estimate | None:
        """What is to be expected of ``wanted`` until its plan comes; None once it is there."""
        wanted, curve = self._wanted, self._curve
        if wanted is None or curve is None or wanted == self._planned:
            return None
        vram_bytes = wanted.vram_bytes.get(curve.device)
        return estimate_at(curve, ram_bytes=wanted.ram_bytes, vram_bytes=vram_bytes)

    @property
    def bounds(self) -> PlacementPlan | None:
        """A plan whose least and most bytes hold for the context that is loaded.

        The plan in force may have been made when the context could still be shortened.
        """
        return self._bounds

    @property
    def is_applying(self) -> bool:
        """Whether a change was asked for and is not in force."""
        return self._num_applying > 0

    @property
    def was_set(self) -> bool:
        """Whether the last thing that happened is that a change came into force."""
        return self._was_set

    @property
    def kept(self) -> PlacementPlan | None:
        """The plan in force if it keeps more of a device than was asked; None else.

        What every token uses has to be somewhere, and the RAM that was given does not hold it.
        """
        return self._kept if self._was_set else None

    @property
    def error(self) -> ErrorReport | None:
        """Why the last wish could not be planned or carried out."""
        return self._error

    def move_ram(self, ram_bytes: int) -> None:
        """Point at another RAM budget."""
        base = self._base()
        if base is not None:
            self._want(msgspec.structs.replace(base, ram_bytes=ram_bytes))

    def move_vram(self, device: str, vram_bytes: int) -> None:
        """Point at another VRAM budget of a device."""
        base = self._base()
        if base is not None:
            vram = {**base.vram_bytes, device: vram_bytes}
            self._want(msgspec.structs.replace(base, vram_bytes=vram))

    def apply(self) -> None:
        """Change the model to what is wanted."""
        budgets = self._wanted
        if budgets is not None and self._session.budgets.change_loaded(budgets, self._on_set):
            self._num_applying += 1
            self._applied = budgets
            self.changed.emit()

    def carry_out(self, budgets: Budgets) -> None:
        """Change the model to budgets that come from a plan."""
        self._want(budgets)
        self.apply()

    def _base(self) -> Budgets | None:
        if self._wanted is not None:
            return self._wanted
        # Not those of the plan, in which every budget is a number: RAM that follows what fits takes
        # in what leaves the card.
        return self._session.loaded_budgets if self._session.loaded_plan is not None else None

    def _want(self, budgets: Budgets) -> None:
        self._wanted = budgets
        self._error = None
        self._was_set = False
        self._ask()
        self.changed.emit()

    def _ask(self) -> None:
        if self._asked is None and self._wanted is not None:
            wanted = self._wanted
            if self._session.budgets.plan_loaded(wanted, self._on_planned):
                self._asked = wanted

    def _on_planned(self, event: Reply) -> None:
        asked, self._asked = self._asked, None
        plan = self._session.loaded_plan
        if self._wanted is None or plan is None:
            return
        if isinstance(event, ModelPlanned):
            found = next((each for each in event.plans if each.kind is plan.kind), None)
            self._preview = found
            self._planned = asked
            self._error = found.problem if found is not None else None
        else:
            self._error = _error_of(event)
        if self._wanted != asked:
            self._ask()
        self.changed.emit()

    def _on_set(self, event: Reply) -> None:
        self._num_applying = max(0, self._num_applying - 1)
        if isinstance(event, BudgetsSet):
            self._was_set = True
            asked = self._applied.vram_bytes if self._applied is not None else {}
            is_more = any(
                event.plan.budgets.vram_bytes.get(device, 0) > num_bytes
                for device, num_bytes in asked.items()
            )
            self._kept = event.plan if is_more else None
            self._ask_bounds()
        else:
            self._error = _error_of(event)
        # A slider that moved on meanwhile is not let go: what it points at is still to be applied.
        if not self._num_applying and self._wanted == self._applied:
            self._wanted = None
            self._preview = None
        self.changed.emit()

    def _on_session_changed(self) -> None:
        loaded = self._session.loaded
        folder = loaded.folder if loaded is not None else ""
        if folder != self._folder:
            self._folder = folder
            self._wanted = self._asked = self._preview = self._error = None
            self._applied = self._bounds = self._planned = self._curve = None
            self._num_applying = 0
            self._was_set = False
            self._ask_bounds()
            self._ask_curve()
            self.changed.emit()

    def _ask_bounds(self) -> None:
        """Ask how far each memory reaches beside what the other one is given."""
        plan = self._session.loaded_plan
        if plan is not None:
            self._session.budgets.plan_loaded(plan.budgets, self._on_bounded)

    def _ask_curve(self) -> None:
        """Ask once for each loaded model: its curve holds for all budgets."""
        plan = self._session.loaded_plan
        if plan is not None:
            self._session.budgets.curve_of_loaded(plan.kind, self._on_curve)

    def _on_bounded(self, event: Reply) -> None:
        plan = self._session.loaded_plan
        if isinstance(event, ModelPlanned) and plan is not None:
            self._bounds = next((each for each in event.plans if each.kind is plan.kind), None)
            self.changed.emit()

    def _on_curve(self, event: Reply) -> None:
        if isinstance(event, BudgetsPlanned):
            self._curve = event.curve


def _error_of(event: Reply) -> ErrorReport | None:
    return event.error if isinstance(event, CommandFailed) else None
