"""The desk: the thread that answers what needs no engine thread, also while the engine works."""

from runtime.inspect.gguf.labels import bits_of
from runtime.inspect.weigh import weigh_model
from runtime.plan.recommendation import advise
from runtime.protocol.figure_messages import DescribeFigures, FiguresDescribed, StateFigure
from runtime.protocol.hub_messages import (
    ForecastModels,
    ModelsForecast,
)
from runtime.protocol.messages import (
    BudgetsPlanned,
    CountTokens,
    DescribeMachine,
    InspectModel,
    MachineDescribed,
    ModelInspected,
    ModelPlanned,
    ModelWeighed,
    PlanBudgets,
    PlanModel,
    SetBudgets,
    TokensCounted,
    WeighModel,
)
from runtime.service.budget_changes import BudgetChanges
from runtime.service.engine_room import EngineRoom
from runtime.service.guard import run_guarded
from runtime.service.log import ErrorLog
from runtime.service.planning import Planning
from runtime.service.requests import Request
from runtime.service.worker import Job, Worker

Question = (
    InspectModel
    | WeighModel
    | PlanModel
    | PlanBudgets
    | ForecastModels
    | DescribeMachine
    | CountTokens
    | SetBudgets
    | DescribeFigures
    | StateFigure
)


class Desk:
    """Answers questions about folders, plans, the machine and prompts, one after the other.

    A folder on a drive that hangs can hold up other questions, but neither the engine nor a
    cancelling command.

    Threads: the command thread asks; the desk's own thread answers.
    """

    def __init__(self, planning: Planning, room: EngineRoom, error_log: ErrorLog) -> None:
        self._planning = planning
        self._room = room
        self._error_log = error_log
        self._budget_changes = BudgetChanges(planning, room)
        self._worker = Worker("desk")

    def ask(self, request: Request, question: Question) -> None:
        """Close the request with the answer, soon."""
        if isinstance(question, SetBudgets):
            self._budget_changes.add(request, question.budgets)

        def answer() -> None:
            self._answer(request, question)

        self._worker.submit(lambda: run_guarded(answer, request.fail, self._error_log))

    def submit(self, job: Job) -> None:
        """Do something that asks the planner, after the questions before."""
        self._worker.submit(job)

    def finish(self, timeout_s: float) -> bool:
        """Answer what was asked and end; return whether that could be done in time."""
        self._worker.finish()
        return self._worker.join(timeout_s)

    def _answer(self, request: Request, question: Question) -> None:
        request_id = request.request_id
        match question:
            case InspectModel():
                report = self._planning.inspect(question.folder)
                request.close(ModelInspected(request_id=request_id, report=report))
            case WeighModel():
                weight = weigh_model(question.folder)
                request.close(ModelWeighed(request_id=request_id, weight=weight))
            case PlanModel():
                planned = self._planning.plan(
                    question.folder,
                    question.budgets,
                    question.context_tokens,
                    self._room.held_vram(),
                    question.kind,
                )
                request.close(
                    ModelPlanned(
                        request_id=request_id,
                        report=planned.report,
                        plans=planned.plans,
                        recommended=planned.recommended,
                        stated=planned.stated,
                    )
                )
            case PlanBudgets():
                curve = self._planning.curve(
                    question.folder,
                    question.kind,
                    question.context_tokens,
                    self._room.held_vram(),
                )
                request.close(BudgetsPlanned(request_id=request_id, curve=curve))
            case ForecastModels():
                forecasts = self._planning.forecast(
                    question.models,
                    question.folder,
                    question.budgets,
                    question.context_tokens,
                    self._room.held_vram(),
                )
                bits = [bits_of(each.gguf_label) for each in question.models]
                advised = advise(forecasts, bits)
                request.close(
                    ModelsForecast(request_id=request_id, forecasts=forecasts, advised=advised)
                )
            case DescribeMachine():
                machine = self._planning.describe(
                    question.folders, self._held(), is_thorough=question.is_thorough
                )
                request.close(MachineDescribed(request_id=request_id, machine=machine))
            case SetBudgets():
                self._budget_changes.work_off()
            case DescribeFigures():
                self._tell_figures(request, question.folder, is_fresh=question.is_fresh)
            case StateFigure():
                value = question.text or question.number
                self._planning.state_figure(question.name, value)
                self._tell_figures(request, question.folder)
            case CountTokens():
                num_tokens, context_tokens = self._room.count_tokens(question.conversation)
                request.close(
                    TokensCounted(
                        request_id=request_id,
                        prompt_tokens=num_tokens,
                        context_tokens=context_tokens,
                    )
                )

    def _held(self) -> dict[str, int] | None:
        """Return what the loaded model takes of each device, None if none is loaded."""
        return None if self._room.loaded() is None else self._room.held_vram()

    def _tell_figures(self, request: Request, folder: str, *, is_fresh: bool = False) -> None:
        told = self._planning.figures(folder, self._held(), is_fresh=is_fresh)
        request.close(
            FiguresDescribed(
                request_id=request.request_id,
                figures=told.figures,
                file=told.file,
                is_fixed=told.is_fixed,
            )
        )
