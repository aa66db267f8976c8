"""The queue of downloads, with a runtime for hubs that the test plays."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import QCoreApplication

from app.state.downloads import MAX_RETRIES, DownloadItem, Downloads, DownloadStage
from app.state.hub_link import HubLink
from app.state.settings import SettingsState
from runtime.protocol.errors import ErrorCode, ErrorReport, Severity
from runtime.protocol.hub import HubCard
from runtime.protocol.hub_messages import (
    DiscardDownload,
    DownloadDiscarded,
    DownloadModel,
    DownloadPaused,
    DownloadProgressed,
    ModelDownloaded,
)
from runtime.protocol.messages import CancelRequest, CommandFailed
from tests.support.fake_client import FakeClient

ROOT = "/models"


def some_card(model_id: str = "a/b", kept_bytes: int = 0) -> HubCard:
    return HubCard(
        model_id=model_id, revision="0" * 40, size_bytes=100, kept_bytes=kept_bytes, folder="/x"
    )


class Queue:
    """Downloads on a fake client."""

    def __init__(self, path: Path, settings: SettingsState) -> None:
        self.client = FakeClient()
        self.settings = settings
        self.link = HubLink(self.client)
        self.downloads = Downloads(path, self.link, settings)
        self.done: list[DownloadItem] = []
        self.downloads.finished.connect(self.done.append)

    def open(self) -> None:
        self.settings.change(is_hub_allowed=True)
        self.client.open()

    def stage(self, model_id: str = "a/b") -> DownloadStage:
        item = self.downloads.of(model_id)
        assert item is not None
        return item.stage

    @property
    def running(self) -> int:
        """The id of the newest command to download."""
        return self.client.last(DownloadModel).request_id

    def progress(self, done: int, rate: float = 10.0) -> None:
        self.client.answer(
            DownloadProgressed(
                request_id=self.running, done_bytes=done, total_bytes=100, bytes_per_s=rate
            )
        )

    def fail(self, code: ErrorCode = ErrorCode.DISK_FULL) -> None:
        error = ErrorReport(code=code, severity=Severity.REQUEST)
        self.client.answer(CommandFailed(request_id=self.running, error=error))


@pytest.fixture
def queue(qapp: QCoreApplication, tmp_path: Path, settings: SettingsState) -> Iterator[Queue]:
    queue = Queue(tmp_path / "downloads.json", settings)
    yield queue
    queue.link.deleteLater()


def test_download_starts_the_runtime_and_ends_in_its_folder(queue: Queue) -> None:
    queue.settings.change(is_hub_allowed=True, hub_address="https://hub.example")
    queue.downloads.add(some_card(kept_bytes=5), ROOT)
    assert queue.client.num_starts == 1
    queue.client.open()
    command = queue.client.last(DownloadModel)
    assert (command.model_id, command.folder) == ("a/b", ROOT)
    assert command.endpoint == "https://hub.example"
    queue.progress(50)
    item = queue.downloads.items[0]
    assert (item.stage, item.done_bytes, item.seconds_left) == (DownloadStage.RUNNING, 50, 5.0)
    queue.client.answer(
        ModelDownloaded(request_id=queue.running, folder="/models/a/b", size_bytes=100)
    )
    assert queue.stage() is DownloadStage.DONE
    assert queue.done[0].folder == "/models/a/b"
    assert queue.done[0].seconds_left is None


def test_download_waits_until_hubs_may_be_asked(queue: Queue) -> None:
    queue.downloads.add(some_card(), ROOT)
    assert queue.stage() is DownloadStage.WAITING
    assert queue.client.num_starts == 0
    queue.open()
    assert queue.stage() is DownloadStage.RUNNING
    queue.settings.change(is_hub_allowed=False)
    assert queue.stage() is DownloadStage.PAUSING
    queue.settings.change(currency="$")
    assert queue.client.count(CancelRequest) == 1


def test_downloads_run_one_after_the_other(queue: Queue) -> None:
    queue.open()
    queue.downloads.add(some_card(), ROOT)
    queue.downloads.add(some_card("c/d"), ROOT)
    assert queue.stage("c/d") is DownloadStage.WAITING
    queue.fail()
    assert queue.stage() is DownloadStage.FAILED
    assert queue.client.last(DownloadModel).model_id == "c/d"
    queue.settings.change(currency="$")
    assert queue.client.count(DownloadModel) == 2


def test_download_paused_and_resumed(queue: Queue) -> None:
    queue.open()
    queue.downloads.add(some_card(), ROOT)
    queue.progress(40)
    queue.downloads.pause("a/b")
    assert queue.client.last(CancelRequest).target_request_id == queue.running
    queue.progress(41)
    assert queue.stage() is DownloadStage.PAUSING
    queue.client.answer(DownloadPaused(request_id=queue.running, kept_bytes=42))
    assert queue.stage() is DownloadStage.PAUSED
    assert queue.downloads.items[0].done_bytes == 42
    queue.downloads.resume("a/b")
    assert queue.stage() is DownloadStage.RUNNING
    assert queue.client.count(DownloadModel) == 2


def test_download_resumed_while_it_is_pausing_goes_on(queue: Queue) -> None:
    queue.open()
    queue.downloads.add(some_card(), ROOT)
    queue.downloads.pause("a/b")
    queue.downloads.resume("a/b")
    assert queue.client.count(DownloadModel) == 1
    queue.client.answer(DownloadPaused(request_id=queue.running, kept_bytes=1))
    assert queue.stage() is DownloadStage.RUNNING
    assert queue.client.count(DownloadModel) == 2


def test_download_paused_before_it_was_sent_or_its_turn_came(queue: Queue) -> None:
    queue.settings.change(is_hub_allowed=True)
    queue.downloads.add(some_card(), ROOT)
    queue.downloads.add(some_card("c/d"), ROOT)
    queue.downloads.pause("c/d")
    assert queue.stage("c/d") is DownloadStage.PAUSED
    queue.downloads.pause("a/b")
    assert queue.stage() is DownloadStage.PAUSED
    queue.client.open()
    assert queue.client.sent == []


def test_download_removed_deletes_what_came(queue: Queue) -> None:
    queue.open()
    queue.downloads.add(some_card(), ROOT)
    queue.downloads.remove("a/b")
    assert queue.downloads.items == []
    assert queue.client.count(CancelRequest) == 1
    discard = queue.client.last(DiscardDownload)
    queue.client.answer(DownloadPaused(request_id=queue.running, kept_bytes=9))
    queue.client.answer(DownloadDiscarded(request_id=discard.request_id, freed_bytes=9))
    assert queue.downloads.items == []
    queue.downloads.add(some_card(), ROOT)
    queue.client.answer(ModelDownloaded(request_id=queue.running, folder="/f", size_bytes=1))
    queue.downloads.remove("a/b")
    assert queue.client.count(DiscardDownload) == 1


def test_download_removed_while_paused_deletes_what_came(queue: Queue) -> None:
    queue.open()
    queue.downloads.add(some_card(), ROOT)
    queue.fail()
    queue.downloads.remove("a/b")
    assert queue.client.last(DiscardDownload).folder == ROOT


def test_download_whose_hub_was_away_is_tried_again_by_itself(queue: Queue) -> None:
    queue.open()
    queue.downloads.add(some_card(), ROOT)
    queue.downloads.add(some_card("c/d"), ROOT)
    queue.fail(ErrorCode.HUB_UNREACHABLE)
    assert queue.downloads.items[0].is_passing
    queue.fail(ErrorCode.DISK_FULL)
    queue.downloads._on_retry_due()
    assert queue.stage() is DownloadStage.RUNNING
    assert queue.stage("c/d") is DownloadStage.FAILED


def test_download_is_not_tried_for_ever(queue: Queue) -> None:
    queue.open()
    queue.downloads.add(some_card(), ROOT)
    for _ in range(MAX_RETRIES):
        queue.fail(ErrorCode.HUB_UNREACHABLE)
        assert queue.downloads._again.isActive()
        queue.downloads._again.stop()
        queue.downloads._on_retry_due()
    queue.fail(ErrorCode.HUB_UNREACHABLE)
    assert not queue.downloads._again.isActive()
    queue.downloads.resume("a/b")
    queue.progress(0)
    queue.progress(50)
    queue.fail(ErrorCode.HUB_UNREACHABLE)
    assert queue.downloads._again.isActive()


def test_download_that_stalls_shows_no_rate(queue: Queue) -> None:
    queue.downloads._on_stalled()
    queue.open()
    queue.downloads.add(some_card(), ROOT)
    queue.progress(50)
    queue.downloads._on_stalled()
    assert queue.downloads.items[0].bytes_per_s == 0
    assert queue.downloads.items[0].seconds_left is None


def test_runtime_that_crashes_is_started_again(queue: Queue) -> None:
    queue.open()
    queue.client.crash()
    queue.client.open()
    queue.downloads.add(some_card(), ROOT)
    queue.client.crash()
    assert queue.stage() is DownloadStage.FAILED
    queue.downloads._on_retry_due()
    assert queue.client.num_starts == 1
    queue.client.open()
    assert queue.stage() is DownloadStage.RUNNING


def test_runtime_that_ends_while_pausing_leaves_it_paused(queue: Queue) -> None:
    queue.open()
    queue.downloads.add(some_card(), ROOT)
    queue.downloads.pause("a/b")
    queue.client.crash()
    assert queue.stage() is DownloadStage.PAUSED


def test_sizes_of_one_page_are_downloads_of_their_own_and_outlast_the_program(
    queue: Queue, tmp_path: Path, settings: SettingsState
) -> None:
    queue.open()
    for name in ("Q4_K_M", "Q8_0"):
        queue.downloads.add(msgspec.structs.replace(some_card(), variant=name), ROOT)
    assert queue.client.last(DownloadModel).variant == "Q4_K_M"
    assert [item.key for item in queue.downloads.items] == ["a/b@Q4_K_M", "a/b@Q8_0"]
    assert queue.downloads.of("a/b") is None
    queue.downloads.pause("a/b@Q8_0")
    queue.downloads.close()
    again = Queue(tmp_path / "downloads.json", settings)
    first, second = again.downloads.items
    assert (first.variant, first.stage) == ("Q4_K_M", DownloadStage.WAITING)
    assert again.downloads.of("a/b", "Q8_0") == second
    assert second.stage is DownloadStage.PAUSED
    again.link.deleteLater()


def test_downloads_outlast_the_program(
    queue: Queue, tmp_path: Path, settings: SettingsState
) -> None:
    queue.open()
    for number in range(5):
        queue.downloads.add(some_card(f"a/{number}"), ROOT)
    queue.progress(30)
    queue.downloads.pause("a/1")
    queue.client.answer(ModelDownloaded(request_id=queue.running, folder="/f", size_bytes=1))
    queue.fail(ErrorCode.HUB_UNREACHABLE)
    queue.downloads.close()
    queue.link.close()
    again = Queue(tmp_path / "downloads.json", settings)
    assert [(item.model_id, item.stage) for item in again.downloads.items] == [
        ("a/1", DownloadStage.PAUSED),
        ("a/2", DownloadStage.WAITING),
        ("a/3", DownloadStage.WAITING),
        ("a/4", DownloadStage.WAITING),
    ]
    again.downloads.start()
    assert again.stage("a/2") is DownloadStage.RUNNING
    again.link.deleteLater()


def test_h09_download_on_a_full_drive_is_listed_with_its_reason_and_goes_on_when_told(
    queue: Queue, tmp_path: Path, settings: SettingsState
) -> None:
    queue.open()
    queue.downloads.add(some_card(), ROOT)
    queue.progress(40)
    queue.fail(ErrorCode.DISK_FULL)
    (item,) = queue.downloads.items
    assert item.stage is DownloadStage.FAILED
    assert item.error is not None
    assert item.error.code is ErrorCode.DISK_FULL
    assert not queue.downloads._again.isActive(), "a full drive is not tried again by itself"
    queue.downloads.close()
    again = Queue(tmp_path / "downloads.json", settings)
    (kept,) = again.downloads.items
    assert (kept.stage, kept.done_bytes) == (DownloadStage.PAUSED, 40)
    again.open()
    again.downloads.resume("a/b")
    assert again.stage() is DownloadStage.RUNNING
    again.link.deleteLater()


@pytest.mark.parametrize("text", ["[{", '[{"a":' * 50_000], ids=["cut", "deep"])
def test_list_that_cannot_be_read_or_written_stops_nothing(
    qapp: QCoreApplication, tmp_path: Path, settings: SettingsState, text: str
) -> None:
    path = tmp_path / "downloads.json"
    path.write_text(text)
    queue = Queue(path, settings)
    assert queue.downloads.items == []
    path.unlink()
    path.mkdir()
    queue.downloads.add(some_card(), ROOT)
    assert len(queue.downloads.items) == 1
    queue.link.deleteLater()


def test_answer_to_another_question_changes_nothing(queue: Queue) -> None:
    queue.open()
    queue.downloads.add(some_card(), ROOT)
    queue.client.answer(DownloadDiscarded(request_id=queue.running, freed_bytes=0))
    assert queue.stage() is DownloadStage.RUNNING
