"""Positioned reads that come back short, fail, or have no system call of their own."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode
from runtime.store import files
from runtime.store.files import WeightFiles

DATA = bytes(range(256)) * 4


@pytest.fixture
def path(tmp_path: Path) -> str:
    (tmp_path / "w").write_bytes(DATA)
    return str(tmp_path / "w")


def read(opened: WeightFiles, path: str, offset: int, sizes: Sequence[int]) -> bytes:
    targets = [bytearray(size) for size in sizes]
    opened.read(path, offset, [memoryview(target) for target in targets])
    return b"".join(targets)


@pytest.mark.parametrize("has_positioned_reads", [True, False])
def test_files_scatter_one_range_over_targets(
    path: str, monkeypatch: pytest.MonkeyPatch, has_positioned_reads: bool
) -> None:
    monkeypatch.setattr(files, "_HAS_POSITIONED_READS", has_positioned_reads)
    opened = WeightFiles([path], prefers_direct=False)
    assert read(opened, path, 10, [5, 0, 300, 1]) == DATA[10:316]
    assert opened.num_bytes_read == 306
    assert opened.size_bytes(path) == len(DATA)
    opened.close()


def test_files_go_on_where_a_short_read_stopped(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole_read = os.preadv

    def short_read(descriptor: int, targets: list[memoryview], offset: int) -> int:
        return whole_read(descriptor, [targets[0][:7]], offset)

    monkeypatch.setattr(os, "preadv", short_read)
    opened = WeightFiles([path], prefers_direct=False)
    assert read(opened, path, 3, [20, 7, 1]) == DATA[3:31]
    opened.close()


def test_files_at_the_end_of_a_file_name_the_offset(path: str) -> None:
    opened = WeightFiles([path])
    with pytest.raises(LarderError) as caught:
        read(opened, path, len(DATA) - 4, [10])
    assert caught.value.code is ErrorCode.DRIVE_READ_FAILED
    assert caught.value.parameters == {
        "file": path,
        "offset_bytes": len(DATA),
        "reason": "the file ends before the data",
    }
    opened.close()


def test_files_translate_an_error_of_the_drive(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int, targets: list[memoryview], offset: int) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "preadv", fail)
    opened = WeightFiles([path], prefers_direct=False)
    with pytest.raises(LarderError) as caught:
        read(opened, path, 8, [10])
    assert caught.value.parameters == {
        "file": path,
        "offset_bytes": 8,
        "reason": "Input/output error",
    }
    assert isinstance(caught.value.__cause__, OSError)
    opened.close()


def test_files_that_cannot_all_be_opened_leave_none_open(
    tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[int] = []
    close = files._WeightFile.close

    def noted_close(file: files._WeightFile) -> None:
        closed.append(file.descriptor)
        close(file)

    monkeypatch.setattr(files._WeightFile, "close", noted_close)
    with pytest.raises(LarderError) as caught:
        WeightFiles([path, str(tmp_path / "gone")])
    assert caught.value.code is ErrorCode.DRIVE_READ_FAILED
    with pytest.raises(LarderError) as caught:
        WeightFiles([path, str(tmp_path)])
    assert caught.value.code is ErrorCode.FILE_INVALID
    assert len(closed) == 2


def replace_and_empty(path: str, *, new_data: bytes = DATA, is_touched: bool = False) -> None:
    """Put another file at the place of one that is open, and take all away from the open one."""
    place = Path(path)
    times = place.stat()
    old = place.rename(place.with_suffix(".old"))
    place.write_bytes(new_data)
    os.utime(place, ns=(times.st_atime_ns, times.st_mtime_ns + is_touched))
    os.truncate(old, 0)


@pytest.mark.parametrize("prefers_direct", [True, False])
def test_read_that_fails_is_tried_again_with_the_same_file_opened_anew(
    path: str, prefers_direct: bool
) -> None:
    opened = WeightFiles([path], prefers_direct=prefers_direct)
    was_direct = opened.is_direct
    descriptors = Path("/proc/self/fd")
    num_open = len(list(descriptors.iterdir())) if descriptors.exists() else 0
    for _ in range(3):
        replace_and_empty(path)
        assert read(opened, path, 5, [10]) == DATA[5:15]
    assert opened.is_direct == was_direct
    if num_open:
        assert len(list(descriptors.iterdir())) == num_open
    opened.close()


@pytest.mark.parametrize("change", ["absent", "longer", "younger", "a folder"])
def test_file_that_failed_is_not_exchanged_for_another_one(path: str, change: str) -> None:
    opened = WeightFiles([path])
    longer = DATA * 2 if change == "longer" else DATA
    replace_and_empty(path, new_data=longer, is_touched=change == "younger")
    if change in {"absent", "a folder"}:
        Path(path).unlink()
    if change == "a folder":
        Path(path).mkdir()
    for _ in range(2):
        with pytest.raises(LarderError, match="ends before"):
            read(opened, path, 5, [10])
    opened.close()


def test_file_without_positioned_reads_stays_as_it_was_opened(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_HAS_POSITIONED_READS", False)
    opened = WeightFiles([path], prefers_direct=False)
    replace_and_empty(path)
    for _ in range(2):
        with pytest.raises(LarderError, match="ends before"):
            read(opened, path, 5, [10])
    opened.close()
