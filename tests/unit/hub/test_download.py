"""Downloads: what arrives is what was published, whatever the hub, the line and the drive do."""

import errno
import os
from pathlib import Path

import pytest

from runtime.engine.base import CancelToken
from runtime.errors import CancelledError, LarderError
from runtime.hub import download as download_module
from runtime.hub.connection import HubConnection
from runtime.hub.desk import HubDesk
from runtime.hub.download import Fetched
from runtime.hub.places import RECORD_NAME, discard, part_folder, read_record
from runtime.prepare.lock import FolderLock
from runtime.protocol.errors import ErrorCode
from tests.support.fake_hub import COMMIT, FakeHub, Fault
from tests.unit.hub.conftest import MODEL

SHARD = "model-00001-of-00002.safetensors"
OTHER_COMMIT = COMMIT[::-1]
DEEP = b'{"a":' * 50_000


class Run:
    """One download with what it told."""

    def __init__(self, desk: HubDesk, hub: FakeHub, root: Path) -> None:
        self.desk, self.hub, self.root = desk, hub, root
        self.told: list[Fetched] = []
        self.cancel = CancelToken()

    def start(self, revision: str = COMMIT) -> Path:
        return self.desk.download(
            MODEL, revision, self.hub.address, str(self.root), self.cancel, self.told.append
        )[0]

    def fail(self) -> LarderError:
        with pytest.raises(LarderError) as caught:
            self.start()
        return caught.value

    @property
    def part(self) -> Path:
        return part_folder(self.root, MODEL)


@pytest.fixture
def run(desk: HubDesk, hub: FakeHub, tmp_path: Path) -> Run:
    return Run(desk, hub, tmp_path / "models")


def assert_whole(folder: Path, published: Path) -> None:
    """Check that exactly the needed files arrived, each as it was published."""
    names = {path.name for path in folder.iterdir()} - {"larder-download.json"}
    wanted = {path.name for path in published.iterdir() if path.is_file()}
    assert names == wanted - {"pytorch_model.bin", "consolidated.safetensors"}
    assert all((folder / name).read_bytes() == (published / name).read_bytes() for name in names)


def test_download_brings_needed_files_alone_and_whole(run: Run, published: Path) -> None:
    folder = run.start()
    assert folder == run.root / "maker" / "tiny-moe"
    assert_whole(folder, published)
    assert not run.part.exists()
    last = run.told[-1]
    assert last.done_bytes == last.total_bytes > 0
    assert not run.hub.asked("pytorch_model.bin")
    assert not run.hub.asked("consolidated")


def test_download_of_what_is_here_fetches_nothing(run: Run) -> None:
    run.start()
    run.hub.requests.clear()
    run.start()
    assert not run.hub.asked("/resolve/")


@pytest.mark.parametrize("fault", [Fault.CUT, Fault.STALL, Fault.BUSY])
def test_download_broken_line_goes_on_where_it_stopped(
    run: Run, published: Path, fault: Fault
) -> None:
    run.desk.describe(MODEL, run.hub.address, str(run.root), run.cancel)
    run.hub.requests.clear()
    run.hub.faults[SHARD] = [fault, fault, fault]
    assert_whole(run.start(), published)
    ranges = [each[1] for each in run.hub.asked(f"/cdn/{MODEL}/resolve/{COMMIT}/{SHARD}")]
    assert len(ranges) == 4
    starts = [int(each.removeprefix("bytes=").rstrip("-")) for each in ranges if each]
    assert starts == sorted(starts)
    if fault is not Fault.BUSY:
        assert starts[0] > 0
        assert len(set(starts)) == 3
    assert max(told.num_retries for told in run.told) >= 1


def test_download_position_ignored_or_refused_still_arrives_whole(
    run: Run, published: Path
) -> None:
    run.desk.describe(MODEL, run.hub.address, str(run.root), run.cancel)
    run.hub.faults[SHARD] = [Fault.CUT, Fault.NO_RANGE]
    run.hub.faults["model-00002-of-00002.safetensors"] = [Fault.CUT, Fault.NOT_THIS_PART]
    assert_whole(run.start(), published)


def test_download_other_bytes_are_fetched_again_once(run: Run, published: Path) -> None:
    run.desk.describe(MODEL, run.hub.address, str(run.root), run.cancel)
    run.hub.requests.clear()
    run.hub.faults[SHARD] = [Fault.OTHER_BYTES]
    assert_whole(run.start(), published)
    assert len(run.hub.asked(f"/cdn/{MODEL}/resolve/{COMMIT}/{SHARD}")) == 2
    assert len(run.hub.asked("/cdn/")) == 3  # the other file was fetched once


def test_download_other_bytes_twice_are_thrown_away_and_told(run: Run) -> None:
    run.desk.describe(MODEL, run.hub.address, str(run.root), run.cancel)
    run.hub.faults[SHARD] = [Fault.OTHER_BYTES, Fault.OTHER_BYTES]
    error = run.fail()
    assert error.code is ErrorCode.DOWNLOAD_MISMATCHED
    assert error.parameters["file"] == SHARD
    assert not (run.part / SHARD).exists()
    assert not (run.part / f"{SHARD}.part").exists()
    assert (run.part / "config.json").exists()
    assert not (run.root / "maker" / "tiny-moe").exists()


def test_download_small_file_is_verified_too(run: Run) -> None:
    run.hub.faults["tokenizer_config.json"] = [Fault.OTHER_BYTES] * 2
    assert run.fail().code is ErrorCode.DOWNLOAD_MISMATCHED


@pytest.mark.parametrize("fault", [Fault.LONGER, Fault.WEB_PAGE])
def test_download_nonsense_never_becomes_a_file(run: Run, fault: Fault) -> None:
    run.desk.describe(MODEL, run.hub.address, str(run.root), run.cancel)
    run.hub.faults[SHARD] = [fault] * 20
    assert run.fail().code is ErrorCode.HUB_ANSWER_INVALID
    assert (run.part / f"{SHARD}.part").stat().st_size == 0


def test_download_hub_that_stays_away_is_told_and_keeps_what_came(
    run: Run, published: Path
) -> None:
    run.desk.describe(MODEL, run.hub.address, str(run.root), run.cancel)
    run.hub.faults[SHARD] = [Fault.CUT, *[Fault.BUSY] * 6]
    error = run.fail()
    assert error.code is ErrorCode.HUB_UNREACHABLE
    kept = (run.part / f"{SHARD}.part").stat().st_size
    assert 0 < kept < (published / SHARD).stat().st_size
    run.hub.requests.clear()
    assert_whole(run.start(), published)
    assert [each[1] for each in run.hub.asked(f"cdn/{MODEL}/resolve/{COMMIT}/{SHARD}")] == [
        f"bytes={kept}-"
    ]
    assert not run.hub.asked("/api/")


def test_download_paused_keeps_what_came_and_goes_on(run: Run, published: Path) -> None:
    run.desk.describe(MODEL, run.hub.address, str(run.root), run.cancel)
    run.hub.faults[SHARD] = [Fault.CUT]
    told = run.told.append

    def stop(fetched: Fetched) -> None:
        told(fetched)
        if fetched.num_retries:
            run.cancel.cancel()

    with pytest.raises(CancelledError):
        run.desk.download(MODEL, COMMIT, run.hub.address, str(run.root), run.cancel, stop)
    kept = run.desk.kept(MODEL, str(run.root))
    assert kept > 0
    card = run.desk.describe(MODEL, run.hub.address, str(run.root), CancelToken())
    assert card.kept_bytes == kept
    run.cancel = CancelToken()
    assert_whole(run.start(), published)


def test_download_kept_bytes_that_changed_are_found_out(run: Run, published: Path) -> None:
    run.desk.describe(MODEL, run.hub.address, str(run.root), run.cancel)
    run.hub.faults[SHARD] = [Fault.CUT, *[Fault.BUSY] * 6]
    run.fail()
    part = run.part / f"{SHARD}.part"
    part.write_bytes(bytes(part.stat().st_size))
    assert_whole(run.start(), published)


def test_download_full_drive_is_told_before_anything_is_fetched(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.desk.describe(MODEL, run.hub.address, str(run.root), run.cancel)
    run.hub.requests.clear()
    monkeypatch.setattr(download_module, "free_bytes", lambda _: 1000)
    error = run.fail()
    assert error.code is ErrorCode.DISK_FULL
    assert error.parameters["free_bytes"] == 1000
    assert int(error.parameters["needed_bytes"]) > download_module.SPARE_BYTES
    assert not run.hub.asked("/resolve/")


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, ErrorCode.DISK_FULL),
        (errno.EROFS, ErrorCode.DISK_NOT_WRITABLE),
        (errno.EIO, ErrorCode.DOWNLOAD_WRITE_FAILED),
    ],
)
def test_download_drive_that_fails_on_the_way_keeps_what_came(
    run: Run, published: Path, monkeypatch: pytest.MonkeyPatch, number: int, code: ErrorCode
) -> None:
    run.desk.describe(MODEL, run.hub.address, str(run.root), run.cancel)
    sync, num_synced = os.fsync, 0

    def fsync(descriptor: int) -> None:
        nonlocal num_synced
        num_synced += 1
        if num_synced == 6:
            raise OSError(number, os.strerror(number))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    error = run.fail()
    assert error.code is code
    assert read_record(run.part) is not None
    assert run.desk.kept(MODEL, str(run.root)) > 0
    assert_whole(run.start(), published)


def test_answer_of_a_hub_that_nests_without_end_is_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HubConnection, "read_all", lambda *_: DEEP)
    error = run.fail()
    assert error.code is ErrorCode.HUB_ANSWER_INVALID
    assert "it is not JSON" in str(error.parameters["reason"])


def test_record_of_a_download_that_nests_without_end_is_none(tmp_path: Path) -> None:
    (tmp_path / RECORD_NAME).write_bytes(DEEP)
    assert read_record(tmp_path) is None


def test_download_another_revision_keeps_files_that_are_the_same(run: Run, published: Path) -> None:
    run.desk.describe(MODEL, run.hub.address, str(run.root), run.cancel)
    run.hub.faults["model-00002-of-00002.safetensors"] = [Fault.CUT, *[Fault.BUSY] * 6]
    run.fail()
    run.hub.models[MODEL].commit = OTHER_COMMIT
    (published / "README.md").write_text("another text")
    run.desk.describe(MODEL, run.hub.address, str(run.root), run.cancel)
    run.hub.requests.clear()
    assert_whole(run.start(OTHER_COMMIT), published)
    assert not run.hub.asked(f"resolve/{OTHER_COMMIT}/{SHARD}")


def test_download_place_with_something_else_is_left_alone(run: Run) -> None:
    other = run.root / "maker" / "tiny-moe"
    other.mkdir(parents=True)
    (other / "mine.txt").write_text("mine")
    assert run.fail().code is ErrorCode.DOWNLOAD_PLACE_TAKEN
    assert (other / "mine.txt").read_text() == "mine"


def test_download_while_another_has_it_is_refused(run: Run) -> None:
    run.part.mkdir(parents=True)
    with FolderLock(run.part):
        assert run.fail().code is ErrorCode.DOWNLOAD_BUSY


def test_discard_leaves_nothing_of_an_unfinished_download(run: Run) -> None:
    run.desk.describe(MODEL, run.hub.address, str(run.root), run.cancel)
    run.hub.faults[SHARD] = [Fault.CUT, *[Fault.BUSY] * 6]
    run.fail()
    assert discard(run.root, MODEL) > 0
    assert list(run.root.iterdir()) == []
    assert discard(run.root, MODEL) == 0


@pytest.mark.parametrize(
    "model_id", ["../up", "a/../b", "/etc", "a/b/c", "a\\b", "con/x", "a/b.", "", "a/ b", ".a/b"]
)
def test_download_name_that_leads_elsewhere_is_refused(run: Run, model_id: str) -> None:
    with pytest.raises(LarderError) as caught:
        run.desk.download(
            model_id, COMMIT, run.hub.address, str(run.root), run.cancel, run.told.append
        )
    assert caught.value.code is ErrorCode.SETTING_INVALID
    assert run.hub.requests == []


def test_download_token_goes_to_the_hub(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    run.start()
    assert {each[2] for each in run.hub.asked("/api/")} == {"Bearer hf_secret"}
