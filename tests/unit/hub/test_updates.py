"""Newer versions of the program: only signed ones are named, and files come whole or not at all."""

import base64
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.engine.base import CancelToken
from runtime.errors import CancelledError, LarderError, report_of
from runtime.hub.download import Fetched
from runtime.hub.updates import LIST, SIGNATURE, UpdateDesk
from runtime.protocol.errors import ErrorCode
from runtime.protocol.sentences import sentence
from runtime.protocol.update_messages import ProgramUpdate
from tests.support.fake_hub import FakeHub, Fault, fake_hub
from tests.support.signed_versions import public_key, publish

DATA = bytes(range(256)) * 4000
NAME = "larder-0.2.0-linux-x86_64.AppImage"
KEY = public_key()
PACKAGE = "linux-appimage"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with fake_hub(monkeypatch) as served:
        served.files = tmp_path / "site"
        publish(served.files, NAME, DATA, PACKAGE)
        yield served


@pytest.fixture
def desk() -> UpdateDesk:
    return UpdateDesk(stall_s=0.5, first_pause_s=0.0)


def check(
    desk: UpdateDesk, site: FakeHub, version: str = "0.9.9", *, package: str = "linux-appimage",
    key: str = KEY,
) -> ProgramUpdate | None:  # fmt: skip
    return desk.check(f"{site.address}/updates/", key, version, package, CancelToken())


def code_of(desk: UpdateDesk, site: FakeHub, **options: str) -> tuple[ErrorCode, str]:
    """The error of a check, and what a person reads."""
    with pytest.raises(LarderError) as caught:
        check(desk, site, **options)
    return caught.value.code, sentence(report_of(caught.value))


def test_newer_version_is_named_with_its_notes_and_its_file(
    desk: UpdateDesk, site: FakeHub
) -> None:
    found = check(desk, site)
    assert found is not None
    assert (found.version, found.notes, found.file) == ("0.10.0", "More models.", NAME)
    assert (found.size_bytes, found.sha256) == (len(DATA), hashlib.sha256(DATA).hexdigest())
    # Nobody is told who asks.
    assert {authorization for _, _, authorization in site.requests} == {""}


@pytest.mark.parametrize("version", ["0.10.0", "0.10.1", "1.0"])
def test_same_or_older_version_is_never_offered(
    desk: UpdateDesk, site: FakeHub, version: str
) -> None:
    assert check(desk, site, version) is None


def test_version_without_a_file_of_this_kind_is_not_offered(
    desk: UpdateDesk, site: FakeHub
) -> None:
    assert check(desk, site, package="windows-setup") is None


def test_list_that_was_changed_after_signing_is_refused(desk: UpdateDesk, site: FakeHub) -> None:
    assert site.files is not None
    path = site.files / LIST
    path.write_bytes(path.read_bytes().replace(b"0.10.0", b"0.99.0"))
    code, text = code_of(desk, site)
    assert code is ErrorCode.UPDATE_UNSIGNED
    assert "not signed" in text


@pytest.mark.parametrize("signature", [b"", b"?", b"AAAA", base64.b64encode(bytes(64))])
def test_signature_that_is_none_is_refused(
    desk: UpdateDesk, site: FakeHub, signature: bytes
) -> None:
    assert site.files is not None
    (site.files / SIGNATURE).write_bytes(signature)
    assert code_of(desk, site)[0] is ErrorCode.UPDATE_UNSIGNED


def test_list_of_another_signer_is_refused(desk: UpdateDesk, site: FakeHub) -> None:
    assert code_of(desk, site, key=public_key(bytes(32)))[0] is ErrorCode.UPDATE_UNSIGNED
    assert code_of(desk, site, key="no key")[0] is ErrorCode.UPDATE_UNSIGNED


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"version": "newest"}, "'newest' is no version"),
        ({"version": 3}, "no list of versions"),
        ({"files": {"linux-appimage": {"name": "../x", "size_bytes": 1, "sha256": "0" * 64}}},
         "'../x' is no file of a version"),
        ({"files": {"linux-appimage": {"name": "x", "size_bytes": 1, "sha256": "0"}}},
         "'x' is no file of a version"),
        ({"files": {"linux-appimage": {"name": "x", "size_bytes": 0, "sha256": "0" * 64}}},
         "x has 0 bytes"),
    ],
)  # fmt: skip
def test_signed_list_with_impossible_values_is_refused_with_the_reason(
    desk: UpdateDesk, site: FakeHub, changes: dict[str, Any], reason: str
) -> None:
    assert site.files is not None
    publish(site.files, NAME, DATA, PACKAGE, **changes)
    code, text = code_of(desk, site)
    assert code is ErrorCode.UPDATE_INVALID
    assert reason in text


def test_place_without_a_list_is_told(desk: UpdateDesk, site: FakeHub) -> None:
    assert site.files is not None
    (site.files / LIST).unlink()
    code, text = code_of(desk, site)
    assert code is ErrorCode.UPDATE_INVALID
    assert "the file is not there" in text


def test_web_page_in_place_of_the_list_is_not_believed(desk: UpdateDesk, site: FakeHub) -> None:
    site.faults[LIST] = [Fault.WEB_PAGE]
    assert code_of(desk, site)[0] is ErrorCode.UPDATE_UNSIGNED


def test_without_a_network_the_person_reads_that_all_works_on(desk: UpdateDesk) -> None:
    with pytest.raises(LarderError) as caught:
        desk.check("http://127.0.0.1:9/updates", KEY, "0.1.0", "linux-deb", CancelToken())
    assert caught.value.code is ErrorCode.UPDATE_UNREACHABLE
    assert "Larder works as before" in sentence(report_of(caught.value))


def test_connection_that_breaks_is_told_as_such(desk: UpdateDesk, site: FakeHub) -> None:
    site.faults[LIST] = [Fault.BUSY]
    code, text = code_of(desk, site)
    assert code is ErrorCode.UPDATE_UNREACHABLE
    assert "busy" in text


def update_of(desk: UpdateDesk, site: FakeHub) -> ProgramUpdate:
    found = check(desk, site)
    assert found is not None
    return found


def fetch(desk: UpdateDesk, site: FakeHub, folder: Path, told: list[Fetched] | None = None) -> Path:
    tell = (told if told is not None else []).append
    update = update_of(desk, site)
    return desk.fetch(f"{site.address}/updates", update, str(folder), CancelToken(), tell)


def test_file_arrives_whole_and_progress_is_told(
    desk: UpdateDesk, site: FakeHub, tmp_path: Path
) -> None:
    told: list[Fetched] = []
    path = fetch(desk, site, tmp_path / "new folder", told)
    assert path == tmp_path / "new folder" / NAME
    assert path.read_bytes() == DATA
    assert told[-1].done_bytes == told[-1].total_bytes == len(DATA)


def test_broken_connection_is_taken_up_where_it_broke(
    desk: UpdateDesk, site: FakeHub, tmp_path: Path
) -> None:
    site.faults[NAME] = [Fault.CUT]
    told: list[Fetched] = []
    assert fetch(desk, site, tmp_path, told).read_bytes() == DATA
    ranges = [asked for path, asked, _ in site.requests if path.endswith(NAME)]
    assert ranges[0] == ""
    assert ranges[1].startswith("bytes=")
    assert any(one.num_retries for one in told)


def test_other_bytes_than_signed_are_never_left_behind(
    desk: UpdateDesk, site: FakeHub, tmp_path: Path
) -> None:
    # More than are asked for: on a busy machine an answer that stalls is asked for again.
    site.faults[NAME] = [Fault.OTHER_BYTES] * 20
    with pytest.raises(LarderError) as caught:
        fetch(desk, site, tmp_path / "there")
    assert caught.value.code is ErrorCode.DOWNLOAD_MISMATCHED
    assert list((tmp_path / "there").iterdir()) == []


def test_file_that_is_there_is_believed_by_its_bytes_alone(
    desk: UpdateDesk, site: FakeHub, tmp_path: Path
) -> None:
    (tmp_path / NAME).write_bytes(bytes(len(DATA)))
    assert fetch(desk, site, tmp_path).read_bytes() == DATA
    num_asked = len(site.asked(NAME))
    assert fetch(desk, site, tmp_path).read_bytes() == DATA
    assert len(site.asked(NAME)) == num_asked


def test_full_drive_is_told_before_anything_is_fetched(
    desk: UpdateDesk, site: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtime.hub.updates.free_bytes", lambda _folder: 5)
    with pytest.raises(LarderError) as caught:
        fetch(desk, site, tmp_path)
    assert caught.value.code is ErrorCode.DISK_FULL
    assert site.asked(NAME) == []


def test_folder_that_cannot_be_made_is_told(
    desk: UpdateDesk, site: FakeHub, tmp_path: Path
) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(LarderError) as caught:
        fetch(desk, site, tmp_path / "taken")
    assert caught.value.code is ErrorCode.DOWNLOAD_WRITE_FAILED


def test_stopped_download_keeps_what_is_there(
    desk: UpdateDesk, site: FakeHub, tmp_path: Path
) -> None:
    update, cancel = update_of(desk, site), CancelToken()

    def stop(_told: Fetched) -> None:
        cancel.cancel()

    with pytest.raises(CancelledError):
        desk.fetch(f"{site.address}/updates", update, str(tmp_path), cancel, stop)
    (part,) = tmp_path.glob(f"{NAME}*")
    assert 0 < part.stat().st_size <= len(DATA)
