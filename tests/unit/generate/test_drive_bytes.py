"""What came from the drive where reads go past the cache, and where the cache may have answered."""

from pathlib import Path

import pytest

from runtime.generate import drive_bytes
from runtime.generate.drive_bytes import DriveBytes
from tests.support.fake_systems import system

IO = "/proc/self/io"


class Store:
    """A store as far as it is asked."""

    def __init__(self, *, is_direct: bool) -> None:
        self.is_direct = is_direct
        self.num_bytes_read = 0


def io(read: int, written: int = 0, cancelled: int = 0) -> str:
    return f"read_bytes: {read}\nwrite_bytes: {written}\ncancelled_write_bytes: {cancelled}"


@pytest.fixture(autouse=True)
def on_a_drive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drive_bytes, "lies_in_memory", lambda _: False)


def opened(tmp_path: Path, store: Store, text: str = "") -> DriveBytes:
    files = system(tmp_path, {IO: text} if text else {})
    return DriveBytes(store, str(tmp_path), files)  # type: ignore[arg-type]


def test_reads_past_the_cache_are_what_was_asked_for(tmp_path: Path) -> None:
    store = Store(is_direct=True)
    counts = opened(tmp_path, store, io(1000))
    store.num_bytes_read = 4096
    assert counts.read() == 4096


def test_reads_that_the_cache_answered_did_not_come_from_the_drive(tmp_path: Path) -> None:
    store = Store(is_direct=False)
    counts = opened(tmp_path, store, io(1000))
    store.num_bytes_read = 8192
    assert counts.read() == 0
    system(tmp_path, {IO: io(1000 + 4096)})
    assert counts.read() == 4096
    system(tmp_path, {IO: io(1000 + 50_000)})
    assert counts.read() == 8192, "others of the process read too"


def test_without_a_counter_what_was_asked_for_counts(tmp_path: Path) -> None:
    store = Store(is_direct=False)
    counts = opened(tmp_path, store)
    store.num_bytes_read = 8192
    assert (counts.read(), counts.written()) == (8192, None)


def test_files_in_memory_stand_for_a_drive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drive_bytes, "lies_in_memory", lambda _: True)
    store = Store(is_direct=False)
    counts = opened(tmp_path, store, io(0))
    store.num_bytes_read = 8192
    assert counts.read() == 8192


def test_written_is_what_was_written_since(tmp_path: Path) -> None:
    counts = opened(tmp_path, Store(is_direct=True), io(0, 500))
    system(tmp_path, {IO: io(0, 9000, 100)})
    assert counts.written() == 8400
