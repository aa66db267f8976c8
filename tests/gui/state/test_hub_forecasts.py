"""How fast listed models would answer, with both runtimes played by the test."""

import pytest

from app.state.hub_forecasts import MAX_MODELS, HubForecasts
from app.state.hub_link import HubLink
from app.state.session import Session
from runtime.protocol.hub import HubFit, HubModel, HubOutlook
from runtime.protocol.hub_messages import (
    ForecastModels,
    HubCancelled,
    HubConfigsRead,
    ModelsForecast,
    ReadHubConfigs,
)
from runtime.protocol.messages import (
    CancelRequest,
    CommandFailed,
)
from tests.support.fake_client import FakeClient
from tests.support.window_values import some_error, some_forecast


def model(model_id: str, fit: HubFit = HubFit.FITS) -> HubModel:
    return HubModel(model_id=model_id, fit=fit)


class Stage:
    """Forecasts between two fake clients."""

    def __init__(self, client: FakeClient, session: Session) -> None:
        self.client = client
        self.hub = FakeClient()
        self.forecasts = HubForecasts(HubLink(self.hub), client, session)

    def want(self, *models: HubModel, endpoint: str = "") -> None:
        self.forecasts.want(models, endpoint, "/models")
        self.hub.open()

    def read(self, *configs: str) -> None:
        request_id = self.hub.last(ReadHubConfigs).request_id
        self.hub.answer(HubConfigsRead(request_id=request_id, configs=list(configs)))

    def forecast(self, *rates: float | None) -> None:
        found = [
            HubOutlook(forecast=None if rate is None else some_forecast(rate, rate + 1))
            for rate in rates
        ]
        request_id = self.client.last(ForecastModels).request_id
        self.client.answer(ModelsForecast(request_id=request_id, forecasts=found))

    def high(self, model_id: str) -> float:
        found = self.forecasts.of(model_id)
        if found is None or found.forecast is None:
            return 0.0
        return found.forecast.decode_tokens_per_s_high


@pytest.fixture
def stage(client: FakeClient, open_session: Session) -> Stage:
    return Stage(client, open_session)


def test_configs_are_read_and_forecast_for_what_can_run(stage: Stage) -> None:
    models = [model("a/a"), model("a/no", HubFit.NOT_RUNNABLE), model("a/b", HubFit.NO_ROOM)]
    told: list[bool] = []
    stage.forecasts.changed.connect(lambda: told.append(True))
    stage.want(*models, model("a/c", HubFit.DENSE))
    assert stage.hub.last(ReadHubConfigs).model_ids == ["a/a", "a/b", "a/c"]
    stage.read("{1}", "", "{3}")
    command = stage.client.last(ForecastModels)
    assert [each.config for each in command.models] == ["{1}", "{3}"]
    assert command.folder == "/models"
    assert told == []
    stage.forecast(7.0, None)
    assert told == [True]
    assert (stage.high("a/a"), stage.high("a/b"), stage.high("a/c")) == (8.0, 0.0, 0.0)


def test_what_was_read_is_not_read_again_unless_from_another_hub(stage: Stage) -> None:
    stage.want(model("a/a"))
    stage.read("{1}")
    stage.forecast(7.0)
    stage.want(model("a/a"))
    assert stage.high("a/a") == 0.0
    assert stage.hub.count(ReadHubConfigs) == 1
    stage.forecast(9.0)
    assert stage.high("a/a") == 10.0
    stage.want(model("a/a"), endpoint="https://hub.example")
    assert stage.hub.last(ReadHubConfigs).endpoint == "https://hub.example"


def test_known_configs_are_forecast_without_asking_a_hub(stage: Stage) -> None:
    models = [
        model("a/a"),
        HubModel(model_id="a/g", fit=HubFit.FITS, base_model="a/a"),
        model("b/b"),
    ]
    stage.forecasts.want(models, "", "/models", {"a/a": "{1}"}, can_ask=False)
    assert stage.hub.num_starts == 0
    assert [each.config for each in stage.client.last(ForecastModels).models] == ["{1}", "{1}"]
    stage.forecast(7.0, 9.0)
    assert (stage.high("a/a"), stage.high("a/g"), stage.high("b/b")) == (8.0, 10.0, 0.0)


def test_long_list_is_forecast_from_its_beginning(stage: Stage) -> None:
    stage.want(*(model(f"a/{number}") for number in range(MAX_MODELS + 5)))
    assert len(stage.hub.last(ReadHubConfigs).model_ids) == MAX_MODELS


def test_another_question_goes_first_and_reading_goes_on_after_it(stage: Stage) -> None:
    stage.want(model("a/a"))
    first = stage.hub.last(ReadHubConfigs)
    stage.forecasts.go_on()
    assert stage.hub.count(ReadHubConfigs) == 1
    stage.forecasts.give_way()
    assert stage.hub.last(CancelRequest).target_request_id == first.request_id
    stage.hub.answer(HubCancelled(request_id=first.request_id))
    stage.forecasts.go_on()
    assert stage.hub.count(ReadHubConfigs) == 2
    stage.read("{1}")
    stage.forecast(7.0)
    assert stage.high("a/a") == 8.0


def test_hub_that_does_not_answer_leaves_the_list_as_it_is(stage: Stage) -> None:
    stage.want(model("a/a"))
    stage.hub.answer(
        CommandFailed(request_id=stage.hub.last(ReadHubConfigs).request_id, error=some_error())
    )
    assert stage.client.count(ForecastModels) == 0
    stage.forecasts.go_on()
    stage.read("")
    assert stage.client.count(ForecastModels) == 0


def test_lost_runtime_of_the_hub_is_asked_again(stage: Stage) -> None:
    stage.want(model("a/a"))
    stage.hub.crash()
    stage.forecasts.go_on()
    stage.hub.open()
    assert stage.hub.count(ReadHubConfigs) == 2


def test_next_runtime_forecasts_what_the_last_one_did_not(stage: Stage) -> None:
    stage.want(model("a/a"))
    stage.client.crash()
    stage.read("{1}")
    before = stage.client.count(ForecastModels)
    stage.client.open()
    assert stage.client.count(ForecastModels) == before + 1
    stage.client.answer(
        CommandFailed(request_id=stage.client.last(ForecastModels).request_id, error=some_error())
    )
    assert stage.high("a/a") == 0.0
