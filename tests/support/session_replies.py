"""What a played runtime answers to the session, in one call each."""

from app.state.session import Session
from runtime.protocol.errors import ErrorReport
from runtime.protocol.messages import (
    InspectModel,
    LoadModel,
    ModelInspected,
    ModelLoaded,
    ModelPlanned,
    PlanModel,
)
from runtime.protocol.plan import PlacementPlan, PlanKind
from tests.support.fake_client import FakeClient
from tests.support.window_values import (
    FOLDER,
    some_loaded,
    some_plan,
    some_report,
)


def answer_inspect(client: FakeClient, *problems: ErrorReport) -> None:
    command = client.last(InspectModel)
    client.answer(
        ModelInspected(
            request_id=command.request_id, report=some_report(command.folder, problems=problems)
        )
    )


def answer_plan(
    client: FakeClient,
    *plans: PlacementPlan,
    recommended: PlanKind | None = PlanKind.EXACT,
    problems: tuple[ErrorReport, ...] = (),
    command: PlanModel | None = None,
) -> None:
    """Answer a command to plan, the last one if none is named."""
    command = command or client.last(PlanModel)
    client.answer(
        ModelPlanned(
            request_id=command.request_id,
            report=some_report(command.folder, problems=problems),
            plans=list(plans),
            recommended=recommended,
        )
    )


def answer_load(client: FakeClient) -> None:
    command = client.last(LoadModel)
    client.answer(ModelLoaded(request_id=command.request_id, model=some_loaded()))


def plan_candidate(session: Session, client: FakeClient, *plans: PlacementPlan) -> None:
    """Drop a folder and let it be inspected and planned."""
    session.drop_folder(FOLDER)
    answer_inspect(client)
    made = plans or (some_plan(),)
    answer_plan(client, *made, recommended=made[0].kind)
