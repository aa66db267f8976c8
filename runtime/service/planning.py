"""What the service asks the packages that look at models and machines."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Protocol

from runtime.protocol.figure_messages import Figure, StatedFigures
from runtime.protocol.hub import HubOutlook, HubSketch
from runtime.protocol.machine import MachineReport
from runtime.protocol.model import ModelReport
from runtime.protocol.plan import BudgetCurve, PlacementPlan, PlanKind
from runtime.protocol.values import Budgets


@dataclasses.dataclass(frozen=True, slots=True)
class Planned:
    """A folder's report and the plans that could be made for it, best first."""

    report: ModelReport
    plans: list[PlacementPlan]
    recommended: PlanKind | None
    stated: StatedFigures | None = None
    """What of this PC the plans take from the person; None where all is as found."""


@dataclasses.dataclass(frozen=True, slots=True)
class Figures:
    """What can be stated of this PC, and where that is written."""

    figures: list[Figure]
    file: str
    is_fixed: bool = False
    """Whether the file was named for this run, so that nothing is changed in it."""


class Planning(Protocol):
    """Answers about models and machines that need neither an engine nor torch.

    Threads: ``inspect`` may be called by any thread, the others by one at a time.
    """

    def inspect(self, folder: str) -> ModelReport:
        """Return what the headers of a folder say, also for a broken model."""

    def plan(
        self,
        folder: str,
        budgets: Budgets,
        context_tokens: int,
        held_vram: Mapping[str, int] | None = None,
        kind: PlanKind | None = None,
    ) -> Planned:
        """Return the plans for a folder under budgets; 0 tokens lets the planner choose.

        A ``kind`` has a plan even where nothing speaks for it. ``held_vram`` is what the loaded
        model takes of each device. A plan would take its place, so that this counts as free, as
        does the RAM of this process.
        """

    def curve(
        self,
        folder: str,
        kind: PlanKind,
        context_tokens: int,
        held_vram: Mapping[str, int] | None = None,
    ) -> BudgetCurve | None:
        """Return what a kind of plan would do under a grid of budgets; None if there is none."""

    def forecast(
        self,
        sketches: Sequence[HubSketch],
        folder: str,
        budgets: Budgets,
        context_tokens: int,
        held_vram: Mapping[str, int] | None = None,
    ) -> list[HubOutlook]:
        """Return for sketches how their models would do if they lay in a folder.

        Of each the recommended plan counts; the other arguments are those of ``plan``.
        """

    def figures(
        self,
        folder: str,
        held_vram: Mapping[str, int] | None = None,
        *,
        is_fresh: bool = False,
    ) -> Figures:
        """Return what can be stated of this PC; fresh forgets what was measured and measures.

        What a loaded model holds counts as free, as in ``describe``.
        """

    def state_figure(self, name: str, value: float | str | None) -> None:
        """State a figure, or take it back for None; raises ``LarderError`` for what cannot be."""

    def describe(
        self,
        folders: Sequence[str],
        held_vram: Mapping[str, int] | None = None,
        *,
        is_thorough: bool = False,
    ) -> MachineReport:
        """Return what this PC has, and the drives of these folders.

        ``held_vram`` is what the loaded model takes of each device; where it is given, that and
        the RAM of this process count as free. None: nothing is loaded.
        Thorough takes a second or two for each drive that was never measured so.
        """
