"""The folder a person looks at on the Models page, before and beside the loaded model."""

import dataclasses

from runtime.protocol.errors import ErrorReport
from runtime.protocol.figure_messages import StatedFigures
from runtime.protocol.model import ModelReport
from runtime.protocol.plan import BudgetCurve, PlacementPlan, PlanKind


@dataclasses.dataclass(frozen=True, slots=True)
class Candidate:
    """A folder with its report, its plans and the choice among them; replaced, never changed."""

    folder: str
    is_inspecting: bool = True
    is_planning: bool = False
    report: ModelReport | None = None
    plans: tuple[PlacementPlan, ...] = ()
    """Loadable or not; each plan's ``problem`` says why not."""
    recommended: PlanKind | None = None
    chosen: PlanKind | None = None
    stated: StatedFigures | None = None
    """Figures of this PC that the plans take from the person; None where all are as found."""
    curve: BudgetCurve | None = None
    """What the chosen kind of plan would do under other budgets; None until that is known."""
    error: ErrorReport | None = None
    """Why inspecting or planning itself failed; findings about the model are in the report."""

    @property
    def chosen_plan(self) -> PlacementPlan | None:
        """The plan that ``prepare_and_load`` would carry out; None before planning."""
        return next((plan for plan in self.plans if plan.kind is self.chosen), None)

    @property
    def can_load(self) -> bool:
        """Whether the chosen plan can be carried out."""
        plan = self.chosen_plan
        return plan is not None and plan.problem is None and not self.is_planning
