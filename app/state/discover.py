"""Models of a hub: what a search finds, and the one that is looked at, with plans for this PC."""

import dataclasses
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.link.client import RuntimeClient
from app.state.candidate_flow import fitted
from app.state.curated import CURATED, CURATED_CONFIGS
from app.state.hub_choice import Choice
from app.state.hub_forecasts import HubForecasts, asking_forecasts
from app.state.hub_link import Asked, HubLink
from app.state.library import LibraryState
from app.state.session import Session
from app.state.settings import SettingsState
from runtime.protocol.errors import ErrorReport
from runtime.protocol.hub import HubFit, HubModel, HubSketch
from runtime.protocol.hub_messages import (
    DescribeHubModel,
    HubModelDescribed,
    HubSearched,
    ModelsForecast,
    SearchHub,
)
from runtime.protocol.messages import CommandFailed, ModelPlanned, PlanModel, Reply


class Discover(QObject):
    """Searches a hub, if the person allows that. Threads: window thread."""

    changed = Signal()

    def __init__(
        self,
        link: HubLink,
        client: RuntimeClient,
        session: Session,
        settings: SettingsState,
        library: LibraryState,
        usual_folder: Path,
    ) -> None:
        super().__init__(link)
        self._link = link
        self._client = client
        self._session = session
        self._settings = settings
        self._library = library
        self._usual_folder = usual_folder
        self._models: tuple[HubModel, ...] = CURATED
        self._searching: Asked | None = None
        self._asking: Asked | None = None
        self._planning_id: int | None = None
        self._comparing_id: int | None = None
        self.query = ""
        self.error: ErrorReport | None = None
        """Why the last search failed."""
        self.choice: Choice | None = None
        self.forecasts = HubForecasts(link, client, session)
        self.forecasts.changed.connect(self.changed)
        self._settings.changed.connect(self.changed)
        client.opened.connect(self._plan)
        link.lost.connect(self._on_lost)

    @property
    def is_allowed(self) -> bool:
        """Whether the person allows this program to ask a hub."""
        return self._settings.values.is_hub_allowed

    @property
    def is_searching(self) -> bool:
        """Whether an answer of the hub is waited for."""
        return self._searching is not None

    @property
    def is_curated(self) -> bool:
        """Whether the models are the list that came with the program."""
        return self._models is CURATED

    @property
    def models(self) -> tuple[HubModel, ...]:
        """What the last search found, or the list that came with the program."""
        return self._models

    @property
    def folder(self) -> str:
        """The place below which downloads lie."""
        return self._settings.values.download_folder or str(self._usual_folder)

    def allow(self) -> None:
        """Ask hubs from now on."""
        self._settings.change(is_hub_allowed=True)
        self.forecast()

    def search(self, query: str) -> None:
        """Look for models; without words, show the list that came with the program."""
        self.query = query.strip()
        self.error = None
        if self._searching is not None:
            self._link.cancel(self._searching)
            self._searching = None
        if self.query and self.is_allowed:
            words, endpoint, folder = self.query, self._endpoint, self.folder
            self._searching = self._link.ask(
                lambda request_id: SearchHub(
                    request_id=request_id, query=words, endpoint=endpoint, folder=folder
                ),
                self._on_found,
            )
        else:
            self._models = CURATED
            self.forecast()
        self.changed.emit()

    def forecast(self) -> None:
        """Forecast the models of the list; hubs are asked for what is not known if they may be."""
        self.forecasts.want(
            self._models,
            self._endpoint,
            self.folder,
            CURATED_CONFIGS if self.is_curated else None,
            can_ask=self.is_allowed,
        )

    def choose(self, model_id: str) -> None:
        """Look at a model; does nothing unless hubs may be asked."""
        if self.is_allowed:
            self._ask(Choice(model_id))

    def choose_variant(self, name: str) -> None:
        """Look at another one of the models in GGUF of the same page."""
        before = self.choice
        if self.is_allowed and before is not None and name != self.shown_variant:
            kept = {field: getattr(before, field) for field in ("variants", "outlooks", "advised")}
            self._ask(Choice(before.model_id, variant=name, **kept))

    @property
    def shown_variant(self) -> str:
        """Which of the models in GGUF of its page is looked at."""
        choice = self.choice
        if choice is None:
            return ""
        return choice.card.variant if choice.card is not None else choice.variant

    def _ask(self, choice: Choice) -> None:
        if self._asking is not None:
            self._link.cancel(self._asking)
        self._planning_id = self._comparing_id = None
        self.forecasts.give_way()
        endpoint, folder = self._endpoint, self.folder
        self._asking = self._link.ask(
            lambda request_id: DescribeHubModel(
                request_id=request_id,
                model_id=choice.model_id,
                endpoint=endpoint,
                folder=folder,
                variant=choice.variant,
            ),
            self._on_described,
        )
        self._set(choice)

    @property
    def _endpoint(self) -> str:
        return self._settings.values.hub_address

    def _on_found(self, event: Reply) -> None:
        if self._searching is None or event.request_id != self._searching.request_id:
            return
        self._searching = None
        if isinstance(event, HubSearched):
            self._models = tuple(event.models)
            self.forecast()
        elif isinstance(event, CommandFailed):
            self.error = event.error
        self.changed.emit()

    def _on_described(self, event: Reply) -> None:
        choice = self.choice
        is_awaited = self._asking is not None and event.request_id == self._asking.request_id
        if not is_awaited or choice is None:
            return
        self._asking = None
        self.forecasts.go_on()
        if isinstance(event, HubModelDescribed):
            card = event.card
            can_plan = bool(card.outline_folder)
            self._set(
                dataclasses.replace(
                    choice,
                    card=card,
                    is_asking=can_plan,
                    error=card.problem,
                    variants=tuple(card.variants),
                )
            )
            self._plan()
        elif isinstance(event, CommandFailed):
            self._set(dataclasses.replace(choice, is_asking=False, error=event.error))

    def _plan(self) -> None:
        """Plan the outline in the runtime that knows what the loaded model holds."""
        choice = self.choice
        if choice is None or choice.card is None or not choice.is_asking:
            return
        folder = choice.card.outline_folder
        limits = fitted(self._session.budgets.limits(), None)
        self._library.pass_over(folder)
        self._planning_id = self._client.send(
            lambda request_id: PlanModel(
                request_id=request_id,
                folder=folder,
                budgets=limits.budgets,
                context_tokens=limits.context_tokens,
            ),
            self._on_planned,
        )

    def _on_planned(self, event: Reply) -> None:
        choice = self.choice
        if choice is None or event.request_id != self._planning_id:
            return
        if isinstance(event, ModelPlanned):
            problems = event.report.problems
            self._set(
                dataclasses.replace(
                    choice,
                    is_asking=False,
                    report=event.report,
                    plans=tuple(event.plans),
                    recommended=event.recommended,
                    error=problems[0] if problems else None,
                )
            )
            self._compare()
        elif isinstance(event, CommandFailed):
            self._set(dataclasses.replace(choice, is_asking=False, error=event.error))

    def _compare(self) -> None:
        """Forecast all models in GGUF of the page by the headers of the one that is looked at."""
        choice = self.choice
        if choice is None or choice.card is None or choice.outlooks or not choice.variants:
            return
        there = [each for each in choice.variants if each.fit is not HubFit.NOT_RUNNABLE]
        sketches = [
            HubSketch(
                outline=choice.card.outline_folder,
                gguf_label=each.label,
                size_bytes=each.size_bytes,
            )
            for each in there
        ]
        names = [each.name for each in there]

        def on_forecast(event: Reply) -> None:
            if event.request_id == self._comparing_id and isinstance(event, ModelsForecast):
                self._on_compared(names, event)

        self._comparing_id = self._client.send(
            asking_forecasts(sketches, self.folder, self._session),
            on_forecast,
        )

    def _on_compared(self, names: list[str], event: ModelsForecast) -> None:
        choice = self.choice
        if choice is None:
            return
        advised = names[event.advised] if event.advised is not None else ""
        outlooks = dict(zip(names, event.forecasts, strict=True))
        self._set(dataclasses.replace(choice, outlooks=outlooks, advised=advised))
        if self.shown_variant and advised and not choice.variant:
            # What is looked at first is the one that suits this PC, unless a person named one.
            self.choose_variant(advised)

    def _on_lost(self, error: ErrorReport | None) -> None:
        if self._searching is not None:
            self._searching = None
            self.error = error
        if self._asking is not None and self.choice is not None:
            self._asking = None
            self.choice = dataclasses.replace(self.choice, is_asking=False, error=error)
        self.changed.emit()

    def _set(self, choice: Choice) -> None:
        self.choice = choice
        self.changed.emit()
