"""Newer versions through the service: one closing event each, and a folder that is whole."""

import io
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.protocol.engine_messages import EngineFetched, FetchEngine
from runtime.protocol.errors import ErrorCode
from runtime.protocol.hub_messages import DownloadPaused, DownloadProgressed, HubCancelled
from runtime.protocol.messages import CancelRequest, CommandFailed
from runtime.protocol.update_messages import (
    CheckForUpdate,
    FetchUpdate,
    ProgramUpdate,
    UpdateChecked,
    UpdateFetched,
)
from tests.support.card_engine import engine_parts, write_engine
from tests.support.fake_hub import FakeHub, Fault, fake_hub
from tests.support.scripted import TIMEOUT_S, ScriptedService
from tests.support.signed_versions import public_key, publish

NAME = "larder-0.10.0-linux-x86_64.tar.xz"


def archive() -> bytes:
    """The packed program: one file, as large as several reads."""
    packed, text = io.BytesIO(), bytes(range(256)) * 1000
    with tarfile.open(fileobj=packed, mode="w:xz") as made:
        info = tarfile.TarInfo("larder-0.10.0/larder")
        info.size = len(text)
        made.addfile(info, io.BytesIO(text))
    return packed.getvalue()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with fake_hub(monkeypatch) as served:
        served.files = tmp_path / "site"
        publish(served.files, NAME, archive(), "linux-folder")
        yield served


@pytest.fixture
def scripted() -> Iterator[ScriptedService]:
    service = ScriptedService()
    yield service
    assert service.service.close()


def check(scripted: ScriptedService, site: FakeHub, key: str, request_id: int = 1) -> None:
    scripted.service.handle(
        CheckForUpdate(
            request_id=request_id, address=f"{site.address}/updates", key=key, version="0.1.0",
            package="linux-folder",
        )
    )  # fmt: skip


def find(scripted: ScriptedService, site: FakeHub) -> ProgramUpdate:
    check(scripted, site, public_key())
    update = scripted.wait_for(UpdateChecked).update
    assert update is not None
    return update


def fetch(scripted: ScriptedService, site: FakeHub, folder: Path, unpack_beside: str = "") -> None:
    update = find(scripted, site)
    scripted.service.handle(
        FetchUpdate(
            request_id=2, address=f"{site.address}/updates", update=update, folder=str(folder),
            unpack_beside=unpack_beside,
        )
    )  # fmt: skip


def wait_until_asked(site: FakeHub, name: str) -> None:
    until_s = time.monotonic() + TIMEOUT_S
    while not site.asked(name):
        assert time.monotonic() < until_s
        time.sleep(0.01)


def test_version_is_found_fetched_and_unpacked_beside_the_old_one(
    scripted: ScriptedService, site: FakeHub, tmp_path: Path
) -> None:
    fetch(scripted, site, tmp_path / "got", str(tmp_path / "larder"))
    assert scripted.wait_for(UpdateFetched).path == str(tmp_path / "larder.new")
    assert any(isinstance(event, DownloadProgressed) for event in scripted.events)
    assert (tmp_path / "larder.new" / ".ready").exists()


def test_file_alone_is_fetched_where_nothing_is_to_be_unpacked(
    scripted: ScriptedService, site: FakeHub, tmp_path: Path
) -> None:
    fetch(scripted, site, tmp_path / "got")
    assert scripted.wait_for(UpdateFetched).path == str(tmp_path / "got" / NAME)


def test_unsigned_list_fails_by_its_code(scripted: ScriptedService, site: FakeHub) -> None:
    check(scripted, site, public_key(bytes(32)))
    assert scripted.wait_for(CommandFailed).error.code is ErrorCode.UPDATE_UNSIGNED


def test_download_is_stopped_by_the_wish_alone(
    scripted: ScriptedService, site: FakeHub, tmp_path: Path
) -> None:
    site.faults[NAME] = [Fault.STALL]
    fetch(scripted, site, tmp_path)
    wait_until_asked(site, NAME)
    check(scripted, site, public_key(), request_id=3)
    for number, target in ((4, 3), (5, 2)):
        scripted.service.handle(CancelRequest(request_id=number, target_request_id=target))
    scripted.wait_for(DownloadPaused)
    assert isinstance(scripted.wait_until_closed(3), HubCancelled)


def fetch_engine(scripted: ScriptedService, site: FakeHub, folder: Path) -> None:
    assert site.files is not None
    write_engine(site.files, "A card")
    parts = engine_parts(site.files, f"{site.address}/updates")
    scripted.service.handle(FetchEngine(request_id=6, parts=parts, folder=str(folder)))


def test_engine_for_cards_is_there_once_it_has_computed(
    scripted: ScriptedService, site: FakeHub, tmp_path: Path
) -> None:
    fetch_engine(scripted, site, tmp_path / "engine")
    done = scripted.wait_for(EngineFetched)
    assert (done.folder, done.card) == (str(tmp_path / "engine"), "A card")
    assert (tmp_path / "engine" / "torch" / "__init__.py").exists()


def test_engine_for_cards_is_stopped_by_the_wish_alone(
    scripted: ScriptedService, site: FakeHub, tmp_path: Path
) -> None:
    site.faults["helper.whl"] = [Fault.STALL]
    fetch_engine(scripted, site, tmp_path / "engine")
    wait_until_asked(site, "helper.whl")
    scripted.service.handle(CancelRequest(request_id=7, target_request_id=6))
    scripted.wait_for(DownloadPaused)
    assert not (tmp_path / "engine").exists()
