"""Asking a hub through the service: one closing event each, and pausing at any moment."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.protocol.errors import ErrorCode
from runtime.protocol.hub import HubSketch
from runtime.protocol.hub_messages import (
    DescribeHubModel,
    DiscardDownload,
    DownloadDiscarded,
    DownloadModel,
    DownloadPaused,
    DownloadProgressed,
    ForecastModels,
    HubCancelled,
    HubConfigsRead,
    HubModelDescribed,
    HubSearched,
    ModelDownloaded,
    ModelsForecast,
    ReadHubConfigs,
    SearchHub,
)
from runtime.protocol.messages import (
    CancelRequest,
    CommandFailed,
)
from tests.support.checkpoint_folders import TinyModel, write_checkpoint
from tests.support.fake_hub import COMMIT, FakeHub, Fault, fake_hub, moe_facts
from tests.support.scripted import ScriptedService

MODEL = "maker/tiny"
SHARD = "model.safetensors"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with fake_hub(monkeypatch) as served:
        published = write_checkpoint(tmp_path / "published", TinyModel(num_shards=0))
        served.add(MODEL, published, **moe_facts())
        yield served


@pytest.fixture
def scripted() -> Iterator[ScriptedService]:
    service = ScriptedService()
    yield service
    assert service.service.close()


def download(request_id: int, hub: FakeHub, root: Path) -> DownloadModel:
    return DownloadModel(
        request_id=request_id,
        model_id=MODEL,
        revision=COMMIT,
        endpoint=hub.address,
        folder=str(root),
    )


def test_hub_questions_are_closed_by_their_answers(
    scripted: ScriptedService, hub: FakeHub, tmp_path: Path
) -> None:
    where = {"endpoint": hub.address, "folder": str(tmp_path)}
    scripted.service.handle(SearchHub(request_id=1, query="tiny", **where))
    assert scripted.wait_for(HubSearched).models[0].model_id == MODEL
    scripted.service.handle(DescribeHubModel(request_id=2, model_id=MODEL, **where))
    assert scripted.wait_for(HubModelDescribed).card.revision == COMMIT
    scripted.service.handle(download(3, hub, tmp_path))
    done = scripted.wait_for(ModelDownloaded)
    assert (Path(done.folder) / SHARD).stat().st_size < done.size_bytes
    assert any(isinstance(event, DownloadProgressed) for event in scripted.events)


def test_configs_of_a_hub_are_forecast_by_the_desk(
    scripted: ScriptedService, hub: FakeHub, tmp_path: Path
) -> None:
    asked = ReadHubConfigs(request_id=1, model_ids=[MODEL, "a/gone"], endpoint=hub.address)
    scripted.service.handle(asked)
    read = scripted.wait_for(HubConfigsRead)
    assert (bool(read.configs[0]), read.configs[1]) == (True, "")
    folder, sketches = str(tmp_path), [HubSketch(config=each) for each in read.configs]
    scripted.service.handle(ForecastModels(request_id=2, models=sketches, folder=folder))
    found, missing = scripted.wait_for(ModelsForecast).forecasts
    assert found.forecast is not None
    assert missing.forecast is None


def test_hub_question_that_waits_is_cancelled_unasked(
    scripted: ScriptedService, hub: FakeHub, tmp_path: Path
) -> None:
    hub.faults["config.json"] = [Fault.STALL]
    where = {"endpoint": hub.address, "folder": str(tmp_path)}
    scripted.service.handle(DescribeHubModel(request_id=1, model_id=MODEL, **where))
    scripted.service.handle(SearchHub(request_id=2, query="never", **where))
    for number, target in ((3, 2), (4, 1)):
        scripted.service.handle(CancelRequest(request_id=number, target_request_id=target))
    assert isinstance(scripted.wait_until_closed(1), HubCancelled)
    assert isinstance(scripted.wait_until_closed(2), HubCancelled)
    assert not hub.asked("never")


def test_download_is_paused_at_once_while_the_hub_sends_nothing(
    scripted: ScriptedService, hub: FakeHub, tmp_path: Path
) -> None:
    hub.pause_after[SHARD] = threading.Event()
    root = tmp_path / "models"
    scripted.service.handle(download(1, hub, root))
    while scripted.wait_for(DownloadProgressed).file != SHARD:
        pass
    scripted.service.handle(CancelRequest(request_id=2, target_request_id=1))
    kept = scripted.wait_until_closed(1)
    assert isinstance(kept, DownloadPaused)
    assert kept.kept_bytes > 0
    hub.pause_after.pop(SHARD).set()
    scripted.service.handle(download(3, hub, root))
    assert isinstance(scripted.wait_until_closed(3), ModelDownloaded)


def test_discard_after_a_pause_gives_the_room_back(
    scripted: ScriptedService, hub: FakeHub, tmp_path: Path
) -> None:
    root = tmp_path / "models"
    hub.faults[SHARD] = [Fault.BUSY, *[Fault.OTHER_BYTES] * 3]
    scripted.service.handle(download(1, hub, root))
    failed = scripted.wait_until_closed(1)
    assert isinstance(failed, CommandFailed)
    assert failed.error.code is ErrorCode.DOWNLOAD_MISMATCHED
    scripted.service.handle(DiscardDownload(request_id=2, model_id=MODEL, folder=str(root)))
    assert scripted.wait_for(DownloadDiscarded).freed_bytes > 0
    assert list(root.iterdir()) == []


def test_hub_that_is_not_there_is_told(scripted: ScriptedService, tmp_path: Path) -> None:
    command = SearchHub(request_id=1, query="", endpoint="http://127.0.0.1:9", folder=str(tmp_path))
    scripted.service.handle(command)
    assert scripted.wait_for(CommandFailed).error.code is ErrorCode.HUB_OFFLINE


def test_import_of_a_service_brings_no_hub() -> None:
    script = (
        "import sys; import runtime.service.workshop;"
        "sys.exit(bool({'httpx2', 'huggingface_hub', 'runtime.hub'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
