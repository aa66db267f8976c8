"""How a dropped folder becomes a report and plans."""

import dataclasses
from collections.abc import Callable

from app.state.candidate import Candidate
from runtime.protocol.errors import ErrorReport
from runtime.protocol.messages import (
    AnyCommand,
    BudgetsPlanned,
    CommandFailed,
    InspectModel,
    ModelInspected,
    ModelPlanned,
    PlanBudgets,
    PlanModel,
    Reply,
)
from runtime.protocol.model import ModelReport
from runtime.protocol.plan import PlanKind
from runtime.protocol.values import Budgets

Send = Callable[[Callable[[int], AnyCommand], Callable[[Reply], None]], int | None]
"""Sends a command to the runtime; None if there is none that listens."""


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """The budgets and the context that plans are made for."""

    budgets: Budgets
    context_tokens: int


def fitted(limits: Limits, report: ModelReport | None) -> Limits:
    """Return the limits with no more context than a model can do, where it says so."""
    most = report.max_context_tokens if report is not None else 0
    if not 0 < most < limits.context_tokens:
        return limits
    return dataclasses.replace(limits, context_tokens=most)


class CandidateFlow:
    """Inspects and plans the folder a person looks at, one request at a time.

    What is wanted is in the candidate itself (``is_inspecting``, ``is_planning``), so that
    ``resume`` can go on in a runtime that was started anew.
    """

    def __init__(
        self, send: Send, limits: Callable[[], Limits], changed: Callable[[], None]
    ) -> None:
        self._send = send
        self._limits = limits
        self._changed = changed
        self._request_id: int | None = None
        self._planned_limits: Limits | None = None
        self._curve_id: int | None = None
        self._curve_of: tuple[str, PlanKind, int] | None = None
        self.candidate: Candidate | None = None

    def drop(self, folder: str, kind: PlanKind | None = None) -> None:
        """Look at another folder; what was asked about the one before is not waited for.

        A ``kind`` is chosen once there are plans; without one the recommended is.
        """
        self._request_id = self._curve_id = self._curve_of = None
        self._set(Candidate(folder, chosen=kind))
        self.resume()

    def close(self) -> None:
        """Look at no folder."""
        self._request_id = self._curve_id = self._curve_of = None
        self._set(None)

    def choose(self, kind: PlanKind) -> None:
        """Choose among the plans; a kind that has no plan changes nothing."""
        if self.candidate and any(plan.kind is kind for plan in self.candidate.plans):
            self._set(dataclasses.replace(self.candidate, chosen=kind))
            self._ask_for_curve(self.candidate)

    def replan(self) -> None:
        """Plan again because the limits changed; the newest ones count in the end."""
        candidate = self.candidate
        if candidate is not None and candidate.report and candidate.report.is_runnable:
            self._set(dataclasses.replace(candidate, is_planning=True, error=None))
            self.resume()

    def resume(self) -> None:
        """Ask for what is wanted and was not asked yet."""
        candidate = self.candidate
        if candidate is None or self._request_id is not None:
            return
        folder = candidate.folder
        if candidate.is_inspecting:
            self._request_id = self._send(
                lambda request_id: InspectModel(request_id=request_id, folder=folder),
                self._on_reply,
            )
        elif candidate.is_planning:
            self._planned_limits = self._limits()
            limits = fitted(self._planned_limits, candidate.report)
            self._request_id = self._send(
                lambda request_id: PlanModel(
                    request_id=request_id,
                    folder=folder,
                    budgets=limits.budgets,
                    context_tokens=limits.context_tokens,
                    kind=candidate.chosen,
                ),
                self._on_reply,
            )

    def lose_runtime(self, error: ErrorReport | None) -> None:
        """Take note that nothing asked will be answered; an error ends what was wanted."""
        was_asked = self._request_id is not None
        self._request_id = self._curve_id = self._curve_of = None
        if error is not None and was_asked and self.candidate is not None:
            self._fail(self.candidate, error)

    def _on_reply(self, event: Reply) -> None:
        candidate = self.candidate
        if candidate is None or event.request_id != self._request_id:
            return
        self._request_id = None
        if isinstance(event, ModelInspected):
            self._set(
                dataclasses.replace(
                    candidate,
                    report=event.report,
                    is_inspecting=False,
                    is_planning=event.report.is_runnable,
                )
            )
        elif isinstance(event, ModelPlanned):
            self._ask_for_curve(self._take_plans(candidate, event))
        elif isinstance(event, CommandFailed):
            self._fail(candidate, event.error)
        self.resume()

    def _take_plans(self, candidate: Candidate, event: ModelPlanned) -> Candidate:
        kinds = [plan.kind for plan in event.plans]
        fallback = event.recommended or (kinds[0] if kinds else None)
        planned = dataclasses.replace(
            candidate,
            report=event.report,
            is_planning=self._limits() != self._planned_limits,
            plans=tuple(event.plans),
            recommended=event.recommended,
            stated=event.stated,
            chosen=candidate.chosen if candidate.chosen in kinds else fallback,
        )
        self._set(planned)
        return planned

    def _ask_for_curve(self, candidate: Candidate) -> None:
        """Ask what the chosen kind does under other budgets, unless that is known or asked."""
        kind, limits = candidate.chosen, fitted(self._limits(), candidate.report)
        wanted = (candidate.folder, kind, limits.context_tokens) if kind is not None else None
        if wanted is None or wanted == self._curve_of:
            return
        self._curve_of = wanted
        folder, kind, context_tokens = wanted
        self._curve_id = self._send(
            lambda request_id: PlanBudgets(
                request_id=request_id, folder=folder, kind=kind, context_tokens=context_tokens
            ),
            self._on_curve,
        )

    def _on_curve(self, event: Reply) -> None:
        candidate = self.candidate
        if candidate is None or event.request_id != self._curve_id:
            return
        if isinstance(event, BudgetsPlanned):
            self._set(dataclasses.replace(candidate, curve=event.curve))

    def _fail(self, candidate: Candidate, error: ErrorReport) -> None:
        self._set(
            dataclasses.replace(candidate, is_inspecting=False, is_planning=False, error=error)
        )

    def _set(self, candidate: Candidate | None) -> None:
        self.candidate = candidate
        self._changed()
