"""How fast the models of a list would answer here, told before any of them is looked at."""

from collections.abc import Callable, Mapping, Sequence

from PySide6.QtCore import QObject, Signal

from app.link.client import RuntimeClient
from app.state.candidate_flow import fitted
from app.state.hub_link import Asked, HubLink
from app.state.session import Session
from runtime.protocol.hub import HubFit, HubModel, HubOutlook, HubSketch
from runtime.protocol.hub_messages import (
    ForecastModels,
    HubConfigsRead,
    ModelsForecast,
    ReadHubConfigs,
)
from runtime.protocol.messages import Reply

MAX_MODELS = 24
"""Of a list; a person who wants to know of others looks at them or searches for them."""
_RUNNABLE = frozenset({HubFit.FITS, HubFit.NO_ROOM, HubFit.DENSE})


def asking_forecasts(
    models: list[HubSketch], folder: str, session: Session
) -> Callable[[int], ForecastModels]:
    """Return what asks, under a request's number, for forecasts within the budgets of a session."""
    limits = fitted(session.budgets.limits(), None)
    return lambda request_id: ForecastModels(
        request_id=request_id,
        models=models,
        folder=folder,
        budgets=limits.budgets,
        context_tokens=limits.context_tokens,
    )


class HubForecasts(QObject):
    """Reads the configs of listed models, a kilobyte each, and has them planned for this PC.

    A list for which the hub does not answer simply has none. Threads: window thread.
    """

    changed = Signal()

    def __init__(
        self,
        link: HubLink,
        client: RuntimeClient,
        session: Session,
    ) -> None:
        super().__init__(link)
        self._link = link
        self._client = client
        self._session = session
        self._configs: dict[str, str] = {}
        """What was read in the life of this window; empty where there was none to be had."""
        self._wanted: list[HubModel] = []
        self._can_ask = False
        self._is_due = False
        """Something is known that was not forecast yet."""
        self._endpoint = self._folder = ""
        self._reading: Asked | None = None
        self._request_id: int | None = None
        self._forecasts: dict[str, HubOutlook] = {}
        client.opened.connect(self._forecast)
        link.lost.connect(self._on_lost)

    def of(self, model_id: str) -> HubOutlook | None:
        """Return what is forecast of a model; None while, or where, that is not known."""
        return self._forecasts.get(model_id)

    def want(
        self,
        models: Sequence[HubModel],
        endpoint: str,
        folder: str,
        configs: Mapping[str, str] | None = None,
        *,
        can_ask: bool = True,
    ) -> None:
        """Forecast the first models of a list that could run, as if they lay below a folder.

        ``configs`` are known without a hub, which is asked for the others only if it may be.
        """
        self.give_way()
        if endpoint != self._endpoint:
            self._configs.clear()
        self._configs |= configs or {}
        runnable = [model for model in models if model.fit in _RUNNABLE]
        self._wanted, self._endpoint, self._folder = runnable[:MAX_MODELS], endpoint, folder
        self._can_ask = can_ask
        self._forecasts = {}
        self._is_due = True
        self.go_on()

    def give_way(self) -> None:
        """Let another question to the hub go first."""
        if self._reading is not None:
            self._link.cancel(self._reading)
            self._reading = None

    def go_on(self) -> None:
        """Read what is not known yet, then forecast."""
        wanted = dict.fromkeys(map(_config_id, self._wanted))
        missing = [each for each in wanted if each not in self._configs]
        if self._reading is not None:
            return
        if not missing or not self._can_ask:
            if self._is_due:
                self._forecast()
            return
        endpoint = self._endpoint

        def on_read(event: Reply) -> None:
            if self._reading is None or event.request_id != self._reading.request_id:
                return
            self._reading = None
            if isinstance(event, HubConfigsRead):
                self._configs.update(zip(missing, event.configs, strict=True))
                self._forecast()

        self._reading = self._link.ask(
            lambda request_id: ReadHubConfigs(
                request_id=request_id, model_ids=missing, endpoint=endpoint
            ),
            on_read,
        )

    def _forecast(self) -> None:
        """Ask the runtime that knows what the loaded model holds."""
        self._is_due = False
        known = [each for each in self._wanted if self._configs.get(_config_id(each))]
        if not known:
            return
        sketches = [
            HubSketch(config=self._configs[_config_id(each)], gguf_label=each.gguf_label)
            for each in known
        ]

        def on_forecast(event: Reply) -> None:
            if event.request_id != self._request_id or not isinstance(event, ModelsForecast):
                return
            ids = [each.model_id for each in known]
            self._forecasts = dict(zip(ids, event.forecasts, strict=True))
            self.changed.emit()

        self._request_id = self._client.send(
            asking_forecasts(sketches, self._folder, self._session),
            on_forecast,
        )

    def _on_lost(self, _: object) -> None:
        self._reading = None


def _config_id(model: HubModel) -> str:
    """Return the model whose config says what a model is: files in GGUF have that of another."""
    return model.base_model or model.model_id
