"""Searching a hub and looking at a model, with both runtimes played by the test."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from app.state.curated import CURATED
from app.state.discover import Discover
from app.state.hub_choice import Choice
from app.state.hub_link import HubLink
from app.state.library import LibraryState
from app.state.session import Session
from app.state.settings import SettingsState
from runtime.protocol.hub import HubCard, HubFit, HubModel, HubOutlook, HubVariant
from runtime.protocol.hub_messages import (
    DescribeHubModel,
    ForecastModels,
    HubCancelled,
    HubModelDescribed,
    HubSearched,
    ModelsForecast,
    SearchHub,
)
from runtime.protocol.messages import CancelRequest, CommandFailed, ModelPlanned, PlanModel
from runtime.protocol.plan import PlanKind
from tests.support.fake_client import FakeClient
from tests.support.window_values import some_error, some_plan, some_report

OUTLINE = "/cache/hub/a--b/b"


class Stage:
    """Discover between two fake clients."""

    def __init__(
        self, client: FakeClient, session: Session, settings: SettingsState, library: LibraryState
    ) -> None:
        self.client = client
        self.hub = FakeClient()
        self.settings = settings
        self.library = library
        self.link = HubLink(self.hub)
        self.discover = Discover(
            self.link, client, session, settings, library, Path("/data/models")
        )

    def allow(self) -> None:
        self.discover.allow()
        self.hub.open()

    @property
    def choice(self) -> Choice:
        assert self.discover.choice is not None
        return self.discover.choice

    def describe(
        self, outline: str = OUTLINE, *, is_closed: bool = False, variants: Sequence[str] = ()
    ) -> None:
        """Answer the newest question about a model."""
        command = self.hub.last(DescribeHubModel)
        card = HubCard(
            model_id=command.model_id,
            revision="0" * 40,
            outline_folder=outline,
            problem=some_error() if is_closed else None,
            variant=variants[0] if variants else "",
            variants=[HubVariant(name=name, label=name) for name in variants],
        )
        self.hub.answer(HubModelDescribed(request_id=command.request_id, card=card))

    def plan(self, *, is_broken: bool = False) -> None:
        """Answer the newest question for plans."""
        report = some_report(OUTLINE, problems=(some_error(),) if is_broken else ())
        self.client.answer(
            ModelPlanned(
                request_id=self.client.last(PlanModel).request_id,
                report=report,
                plans=[] if is_broken else [some_plan()],
                recommended=PlanKind.EXACT,
            )
        )


@pytest.fixture
def stage(
    client: FakeClient, open_session: Session, settings: SettingsState, library: LibraryState
) -> Stage:
    return Stage(client, open_session, settings, library)


def test_nothing_is_asked_until_it_is_allowed(stage: Stage) -> None:
    stage.discover.search("moe")
    stage.discover.choose("a/b")
    assert stage.hub.num_starts == 0
    assert stage.discover.models == CURATED
    assert stage.discover.is_curated
    assert stage.discover.choice is None
    stage.discover.allow()
    assert stage.settings.values.is_hub_allowed


def test_search_asks_the_hub_of_the_settings(stage: Stage) -> None:
    stage.settings.change(hub_address="https://hub.example", download_folder="/big")
    stage.allow()
    stage.discover.search(" moe ")
    command = stage.hub.last(SearchHub)
    assert (command.query, command.endpoint, command.folder) == (
        "moe",
        "https://hub.example",
        "/big",
    )
    assert stage.discover.is_searching
    models = [HubModel(model_id="a/b", fit=HubFit.FITS)]
    stage.hub.answer(HubSearched(request_id=command.request_id, models=models))
    assert stage.discover.models == tuple(models)
    assert not stage.discover.is_searching
    assert not stage.discover.is_curated
    stage.discover.search("")
    assert stage.discover.is_curated


def test_search_anew_ends_the_one_before(stage: Stage) -> None:
    stage.allow()
    stage.discover.search("first")
    first = stage.hub.last(SearchHub)
    stage.discover.search("second")
    second = stage.hub.last(SearchHub)
    assert stage.hub.last(CancelRequest).target_request_id == first.request_id
    stage.hub.answer(HubCancelled(request_id=first.request_id))
    assert stage.discover.is_searching
    stage.hub.answer(HubCancelled(request_id=second.request_id))
    assert not stage.discover.is_searching
    stage.discover.search("third")
    stage.discover.search("")
    stage.hub.answer(HubSearched(request_id=stage.hub.last(SearchHub).request_id, models=[]))
    assert stage.discover.is_curated


def test_search_that_fails_is_told(stage: Stage) -> None:
    stage.allow()
    stage.discover.search("moe")
    stage.hub.answer(
        CommandFailed(request_id=stage.hub.last(SearchHub).request_id, error=some_error())
    )
    assert stage.discover.error == some_error()
    stage.discover.search("moe")
    assert stage.discover.error is None


def test_model_that_is_looked_at_is_planned_and_never_listed(stage: Stage) -> None:
    stage.allow()
    stage.discover.choose("a/b")
    assert stage.choice.is_asking
    stage.describe()
    assert stage.client.last(PlanModel).folder == OUTLINE
    assert stage.choice.is_asking
    stage.plan()
    assert not stage.choice.is_asking
    assert stage.choice.recommended is PlanKind.EXACT
    assert len(stage.choice.plans) == 1
    assert stage.choice.error is None
    assert stage.library.models == []


def test_comparison_that_comes_late_or_fails_changes_nothing(stage: Stage) -> None:
    stage.discover.choose_variant("Q8_0")
    stage.allow()
    stage.discover.choose_variant("Q8_0")
    assert stage.hub.count(DescribeHubModel) == 0
    assert stage.discover.shown_variant == ""
    stage.discover.choose("a/b")
    assert stage.discover.shown_variant == ""
    stage.describe(variants=["Q8_0", "Q4_K_M"])
    stage.plan()
    asked = stage.client.last(ForecastModels)
    assert len(asked.models) == 2
    stage.client.answer(CommandFailed(request_id=asked.request_id, error=some_error()))
    assert stage.choice.outlooks == {}
    stage.discover.choose("c/d")
    late = ModelsForecast(request_id=asked.request_id, forecasts=[HubOutlook(), HubOutlook()])
    stage.client.answer(late)
    assert stage.choice.outlooks == {}
    stage.discover._on_compared(["a", "b"], late)
    stage.discover.choice = None
    stage.discover._on_compared(["a", "b"], late)
    stage.discover._compare()
    sent = [each for each in stage.client.sent if isinstance(each, ForecastModels)]
    assert sum(bool(each.models[0].outline) for each in sent) == 1


def test_model_that_cannot_run_says_why(stage: Stage) -> None:
    stage.allow()
    stage.discover.choose("a/b")
    stage.describe()
    stage.plan(is_broken=True)
    assert stage.choice.error == some_error()
    assert stage.choice.plans == ()


def test_plan_that_fails_is_told(stage: Stage) -> None:
    stage.allow()
    stage.discover.choose("a/b")
    stage.describe()
    request_id = stage.client.last(PlanModel).request_id
    stage.client.answer(CommandFailed(request_id=request_id, error=some_error()))
    assert stage.choice.error == some_error()
    assert not stage.choice.is_asking
    stage.discover.choose("a/b")
    stage.describe()
    stage.client.answer(HubCancelled(request_id=stage.client.last(PlanModel).request_id))
    assert stage.choice.is_asking


@pytest.mark.parametrize("is_closed", [False, True])
def test_model_without_an_outline_is_not_planned(stage: Stage, is_closed: bool) -> None:
    stage.allow()
    stage.discover.choose("a/b")
    stage.describe("", is_closed=is_closed)
    assert stage.client.count(PlanModel) == 0
    assert not stage.choice.is_asking
    assert (stage.choice.error is not None) is is_closed


def test_another_model_is_chosen_before_the_first_was_told(stage: Stage) -> None:
    stage.allow()
    stage.discover.choose("a/b")
    first = stage.hub.last(DescribeHubModel)
    stage.discover.choose("c/d")
    assert stage.hub.last(CancelRequest).target_request_id == first.request_id
    stage.hub.answer(HubCancelled(request_id=first.request_id))
    assert stage.choice.model_id == "c/d"
    assert stage.choice.is_asking
    stage.describe()
    planned = stage.client.last(PlanModel)
    stage.discover.choose("e/f")
    stage.client.answer(CommandFailed(request_id=planned.request_id, error=some_error()))
    assert stage.choice.error is None


def test_description_that_fails_or_is_cancelled(stage: Stage) -> None:
    stage.allow()
    stage.discover.choose("a/b")
    request_id = stage.hub.last(DescribeHubModel).request_id
    stage.hub.answer(CommandFailed(request_id=request_id, error=some_error()))
    assert stage.choice.error == some_error()
    stage.discover.choose("a/b")
    request_id = stage.hub.last(DescribeHubModel).request_id
    stage.hub.answer(HubCancelled(request_id=request_id))
    assert stage.choice.is_asking


def test_runtime_that_ends_is_told_and_started_again(stage: Stage) -> None:
    stage.allow()
    stage.discover.search("moe")
    stage.discover.choose("a/b")
    error = stage.hub.crash()
    assert stage.discover.error == error
    assert stage.choice.error == error
    assert not stage.discover.is_searching
    num_starts = stage.hub.num_starts
    stage.discover.search("moe")
    assert stage.hub.num_starts == num_starts + 1
    stage.hub.open()
    assert stage.hub.count(SearchHub) == 2
    stage.hub.answer(HubSearched(request_id=stage.hub.last(SearchHub).request_id, models=[]))
    stage.hub.crash()
    assert stage.discover.error is None


def test_plans_come_once_the_runtime_of_models_is_there(
    client: FakeClient, session: Session, settings: SettingsState, library: LibraryState
) -> None:
    stage = Stage(client, session, settings, library)
    session.start()
    stage.allow()
    client_had = client.count(PlanModel)
    stage.discover.choose("a/b")
    stage.describe()
    assert client.count(PlanModel) == client_had
    client.open()
    assert client.count(PlanModel) == client_had + 1
    stage.plan()
    assert stage.choice.plans


def test_question_before_the_runtime_listens_is_forgotten_when_cancelled(stage: Stage) -> None:
    stage.discover.allow()
    stage.discover.search("first")
    stage.discover.search("second")
    assert stage.hub.sent == []
    stage.hub.open()
    assert [command.query for command in stage.hub.sent if isinstance(command, SearchHub)] == [
        "second"
    ]
