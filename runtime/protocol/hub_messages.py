"""The messages about hubs and downloads; see ``messages``."""

from runtime.protocol.base import Command, Reply
from runtime.protocol.hub import HubCard, HubModel, HubOutlook, HubSketch
from runtime.protocol.values import Budgets


class SearchHub(Command):
    """Look for models on a hub. Closed by ``HubSearched`` or ``HubCancelled``.

    In all commands about a hub, ``endpoint`` is its address, empty for the usual one, and
    ``folder`` the place below which downloads lie.
    """

    query: str
    folder: str
    endpoint: str = ""


class DescribeHubModel(Command):
    """Tell what a model of a hub is. Closed by ``HubModelDescribed`` or ``HubCancelled``."""

    model_id: str
    folder: str
    endpoint: str = ""
    variant: str = ""
    """Which of its models in GGUF; empty for the one in safetensors or else the usual one."""


class ReadHubConfigs(Command):
    """Read the configs of some models. Closed by ``HubConfigsRead`` or ``HubCancelled``."""

    model_ids: list[str]
    endpoint: str = ""


class ForecastModels(Command):
    """Forecast models none of whose files is here. Closed by ``ModelsForecast``."""

    models: list[HubSketch]
    folder: str
    """Where the models would lie."""
    budgets: Budgets = Budgets()
    context_tokens: int = 0


class DownloadModel(Command):
    """Download one revision of a model. Closed by ``ModelDownloaded`` or ``DownloadPaused``."""

    model_id: str
    revision: str
    folder: str
    endpoint: str = ""
    variant: str = ""
    """Which of its models in GGUF; empty for the one in safetensors."""


class DiscardDownload(Command):
    """Delete what an unfinished download left. Closed by ``DownloadDiscarded``."""

    model_id: str
    folder: str
    variant: str = ""


class HubSearched(Reply):
    """What a search found, best suited first."""

    models: list[HubModel]


class HubModelDescribed(Reply):
    """What a model of a hub is."""

    card: HubCard


class HubConfigsRead(Reply):
    """The ``config.json`` of each model that was asked for, empty where it cannot be had."""

    configs: list[str]


class ModelsForecast(Reply):
    """For each sketch how its model would do by the plan that would be recommended."""

    forecasts: list[HubOutlook]
    advised: int | None = None
    """Which of them to take, if they are one model in other bits each; None: no one can run."""


class HubCancelled(Reply):
    """A question to a hub was stopped."""


class DownloadProgressed(Reply):
    """How far a download is; a rate of 0 while nothing comes."""

    done_bytes: int
    total_bytes: int
    bytes_per_s: float
    file: str = ""
    """What is being fetched or checked."""
    num_retries: int = 0
    """How often in a row the connection failed without anything new."""


class ModelDownloaded(Reply):
    """All files are there, each with the bytes that the hub names."""

    folder: str
    size_bytes: int


class DownloadPaused(Reply):
    """Stopped; what is there is kept and a next start goes on with it."""

    kept_bytes: int


class DownloadDiscarded(Reply):
    """Nothing is left of an unfinished download."""

    freed_bytes: int


HubCommand = SearchHub | DescribeHubModel | ReadHubConfigs | DownloadModel | DiscardDownload
HubClosing = (
    HubSearched
    | HubModelDescribed
    | HubConfigsRead
    | HubCancelled
    | ModelDownloaded
    | DownloadPaused
    | DownloadDiscarded
)
