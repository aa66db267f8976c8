"""The engine for graphics cards: there only once it was verified and has computed something."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.engine.base import CancelToken
from runtime.errors import CancelledError, LarderError, report_of
from runtime.hub.download import Fetched
from runtime.hub.engine_parts import fetch_engine
from runtime.protocol.engine_messages import EnginePart
from runtime.protocol.errors import ErrorCode
from runtime.protocol.sentences import sentence
from tests.support.card_engine import engine_parts, wheel, write_engine
from tests.support.fake_hub import FakeHub, Fault, fake_hub


class Site:
    """Where the packages lie."""

    def __init__(self, hub: FakeHub, folder: Path) -> None:
        self.hub = hub
        self.folder = folder
        hub.files = folder
        folder.mkdir()
        write_engine(folder, "A card")

    def card(self, name: str) -> None:
        """Have the engine find this card."""
        write_engine(self.folder, name)

    def parts(self) -> list[EnginePart]:
        return engine_parts(self.folder, f"{self.hub.address}/updates")

    def fetch(self, folder: Path, cancel: CancelToken | None = None) -> tuple[str, str]:
        tell = lambda _fetched: None  # noqa: E731 - told elsewhere
        return fetch_engine(
            self.parts(), folder, cancel or CancelToken(), tell, stall_s=2.0, first_pause_s=0.0
        )

    def failure(self, folder: Path) -> tuple[ErrorCode, str]:
        with pytest.raises(LarderError) as caught:
            self.fetch(folder)
        assert not folder.exists()
        assert not folder.with_name("engine.new").exists()
        return caught.value.code, sentence(report_of(caught.value))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with fake_hub(monkeypatch) as hub:
        yield Site(hub, tmp_path / "site")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "мои данные" / "engine"


def test_engine_is_fetched_tried_and_there(site: Site, folder: Path) -> None:
    told: list[Fetched] = []
    parts = site.parts()
    found = fetch_engine(parts, folder, CancelToken(), told.append, stall_s=2.0)
    assert found == ("2.13.0+cu130", "A card")
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert names == {"torch/__init__.py", "helper.py", ".ready"}
    assert [path.name for path in folder.parent.iterdir()] == ["engine"]
    total = sum(part.size_bytes for part in parts)
    assert (told[-1].done_bytes, told[-1].total_bytes) == (total, total)


def test_engine_that_finds_no_card_is_not_kept_but_what_was_fetched_is(
    site: Site, folder: Path
) -> None:
    site.card("")
    code, text = site.failure(folder)
    assert code is ErrorCode.ENGINE_PARTS_UNUSABLE
    assert "finds no card" in text
    assert "computes on the processor as before" in text
    assert len(list(folder.with_name("engine.parts").iterdir())) == 2


def test_engine_that_does_not_start_is_told_with_its_own_words(site: Site, folder: Path) -> None:
    wheel(site.folder / "torch.whl", {"torch/__init__.py": "raise ImportError('libcuda is old')"})
    code, text = site.failure(folder)
    assert code is ErrorCode.ENGINE_PARTS_UNUSABLE
    assert "libcuda is old" in text


def test_engine_that_hangs_is_ended(
    site: Site, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel(site.folder / "torch.whl", {"torch/__init__.py": "import time; time.sleep(600)"})
    monkeypatch.setattr("runtime.hub.engine_parts.MAX_TRIAL_S", 0.2)
    assert "did not answer" in site.failure(folder)[1]


def test_package_with_other_bytes_is_never_unpacked(site: Site, folder: Path) -> None:
    site.hub.faults["torch.whl"] = [Fault.OTHER_BYTES, Fault.OTHER_BYTES]
    assert site.failure(folder)[0] is ErrorCode.DOWNLOAD_MISMATCHED


def test_broken_line_is_taken_up_again(site: Site, folder: Path) -> None:
    site.hub.faults["torch.whl"] = [Fault.CUT]
    site.fetch(folder)
    assert any(asked.startswith("bytes=") for _, asked, _ in site.hub.asked("torch.whl"))


def test_place_without_the_package_is_named(site: Site, folder: Path) -> None:
    parts = site.parts()
    (site.folder / "torch.whl").unlink()
    with pytest.raises(LarderError) as caught:
        fetch_engine(parts, folder, CancelToken(), lambda _: None, stall_s=2.0)
    assert caught.value.code is ErrorCode.ENGINE_PARTS_UNREACHABLE
    assert caught.value.parameters["host"] == site.hub.address.removeprefix("http://")


@pytest.mark.parametrize(
    ("file", "url"), [("../x", "http://127.0.0.1/x"), ("x", "file:///etc/passwd")]
)
def test_part_without_a_good_name_or_address_is_refused(folder: Path, file: str, url: str) -> None:
    part = EnginePart(file=file, url=url, size_bytes=1, sha256="0" * 64)
    with pytest.raises(LarderError, match="has no good address"):
        fetch_engine([part], folder, CancelToken(), lambda _: None)


@pytest.mark.parametrize("name", ["../out.py", "/out.py", "C:/out.py"])
def test_package_that_writes_outside_is_refused(site: Site, folder: Path, name: str) -> None:
    wheel(site.folder / "torch.whl", {name: "x"})
    assert "leads out of its folder" in site.failure(folder)[1]


def test_file_that_is_no_package_is_told(site: Site, folder: Path) -> None:
    (site.folder / "torch.whl").write_text("no zip file")
    assert "is no package" in site.failure(folder)[1]


def test_full_drive_is_told_first(
    site: Site, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtime.hub.engine_parts.free_bytes", lambda _folder: 5)
    assert site.failure(folder)[0] is ErrorCode.DISK_FULL
    assert site.hub.requests == []


def test_place_that_cannot_be_made_is_told(site: Site, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(LarderError) as caught:
        site.fetch(tmp_path / "taken" / "engine")
    assert caught.value.code is ErrorCode.DOWNLOAD_WRITE_FAILED


def test_wish_to_stop_leaves_no_engine(site: Site, folder: Path) -> None:
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(CancelledError):
        site.fetch(folder, cancel)
    assert not folder.exists()


def test_trial_does_not_touch_this_process(site: Site, folder: Path) -> None:
    site.fetch(folder)
    assert "helper" not in sys.modules
