"""The short measurement of a drive."""

import itertools
import os
from pathlib import Path

import pytest

from runtime.store import drive_rate
from runtime.store.drive_rate import DEPTHS, NUM_READERS, measure_depths, measure_drive_rate
from runtime.store.files import WeightFiles

RECORD = 64 * 1024


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "small.json").write_bytes(b"{}")
    (tmp_path / "weights").write_bytes(os.urandom(40 * RECORD + 100))
    return tmp_path


def is_direct(path: Path) -> bool:
    files = WeightFiles([str(path)])
    try:
        return files.is_direct
    finally:
        files.close()


def test_drive_rate_reads_the_largest_file_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[tuple[str, int, int]] = []
    whole_read = WeightFiles.read

    def noted_read(
        files: WeightFiles, path: str, offset_bytes: int, targets: list[memoryview]
    ) -> None:
        reads.append((Path(path).name, offset_bytes, targets[0].nbytes))
        whole_read(files, path, offset_bytes, targets)

    monkeypatch.setattr(WeightFiles, "read", noted_read)
    rate = measure_drive_rate(folder, RECORD - 5, limit_s=600)
    if not is_direct(folder / "weights"):
        assert rate is None
        return
    assert sorted(reads) == [("weights", index * RECORD, RECORD) for index in range(40)]
    assert rate is not None
    assert rate.value > 0
    assert rate.method == f"uncached reads of 0.1 MB, {NUM_READERS} at once"


def test_drive_rate_begins_nothing_after_its_time(folder: Path) -> None:
    ticks = itertools.count()
    rate = measure_drive_rate(folder / "weights", RECORD, 10, clock=lambda: next(ticks))
    if rate is not None:
        # Every look at the clock is a second later, so about ten reads were begun.
        assert 0 < rate.value <= 10 * RECORD


def test_drive_rate_of_what_tells_nothing_is_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert measure_drive_rate(folder / "weights", 20 * RECORD) is None
    assert measure_drive_rate(folder / "gone", RECORD) is None
    assert measure_drive_rate(folder / "small.json", RECORD) is None
    (folder / "empty").mkdir()
    assert measure_drive_rate(folder / "empty", RECORD) is None
    monkeypatch.setattr("runtime.store.direct.lies_in_memory", lambda path: True)
    assert measure_drive_rate(folder, RECORD) is None


def test_drive_rate_large_experts_are_read_in_parts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drive_rate, "MAX_READ_BYTES", RECORD)
    rate = measure_drive_rate(folder, 30 * RECORD)
    assert (rate is not None) == is_direct(folder / "weights")


def test_offsets_are_all_places_far_apart() -> None:
    for number in (0, 1, 2, 3, 4, 40, 41, 1000):
        offsets = drive_rate._offsets(number * 8 + 7, 8)
        assert sorted(offsets) == [8 * index for index in range(number)]
    far = [abs(after - before) for before, after in itertools.pairwise(offsets)]
    assert min(far) > 8 * 300


def test_depths_of_a_folder_are_measured_on_parts_of_its_largest_file(folder: Path) -> None:
    found = measure_depths(folder, RECORD, limit_s=600)
    if not found:
        assert measure_drive_rate(folder, RECORD) is None, "this file system reads no way past"
        return
    assert [rate.num_at_once for rate in found] == list(DEPTHS)
    assert all(rate.bytes_per_s > 0 for rate in found)
    assert measure_depths(folder / "gone", RECORD) == []
