"""The parts of preparing: names, locks, whole writes, removal, progress, chunks."""

import errno
import os
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from runtime.errors import LarderError
from runtime.inspect.folder import inspect_folder
from runtime.inspect.manifest import JOURNAL_NAME, MANIFEST_NAME
from runtime.kernels.formats import pack
from runtime.prepare.disk import disk_error, free_bytes, replacing
from runtime.prepare.journal import kept_bytes
from runtime.prepare.lock import LOCK_NAME, FolderBusyError, FolderLock
from runtime.prepare.place import default_prepared_folder, prepared_root
from runtime.prepare.prepare import NeverStops, prepare_model
from runtime.prepare.progress import Progress
from runtime.prepare.quantise import chunks_of, convert_rows
from runtime.prepare.recipe import is_copied
from runtime.prepare.remove import remove_prepared
from runtime.prepare.weight_file import TensorPlan, verified_file, write_file
from runtime.protocol.errors import ErrorCode
from runtime.protocol.model import ModelReport
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import ExpertPart, expert_layout
from tests.support.checkpoint_folders import write_checkpoint

Q8 = WeightFormat.Q8_G32
REPORT = ModelReport(
    folder="/m",
    name="Qwen3-30B",
    model_type="",
    fingerprint="0123456789abcdef",
    licence="",
    problems=[],
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Qwen3-30B", "Qwen3-30B-q8-g32-0123456789ab"),
        ("Модель 🦙 x", "Модель-x-q8-g32-0123456789ab"),
        ("../..", "model-q8-g32-0123456789ab"),
        ("a:b/c\\d?", "a-b-c-d-q8-g32-0123456789ab"),
        ("д" * 300, "д" * 40 + "-q8-g32-0123456789ab"),
    ],
)
def test_default_folder_has_a_safe_name_of_its_own(name: str, expected: str) -> None:
    report = msgspec.structs.replace(REPORT, name=name)
    folder = Path(default_prepared_folder("/data", report, Q8))
    assert folder == Path(prepared_root("/data")) / expected
    assert default_prepared_folder("/data", report, WeightFormat.Q4_G32) != str(folder)


def test_lock_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    with FolderLock(tmp_path), pytest.raises(FolderBusyError), FolderLock(tmp_path):
        raise AssertionError("held twice")
    with FolderLock(tmp_path):
        assert (tmp_path / LOCK_NAME).exists()


def test_lock_stays_only_where_a_copy_was_begun(tmp_path: Path) -> None:
    with FolderLock(tmp_path):
        pass
    assert not (tmp_path / LOCK_NAME).exists()
    (tmp_path / JOURNAL_NAME).touch()
    with FolderLock(tmp_path):
        pass
    assert (tmp_path / LOCK_NAME).exists()


@pytest.mark.parametrize("is_made_anew", [True, False])
def test_lock_on_a_file_that_its_last_holder_removed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_made_anew: bool
) -> None:
    path = tmp_path / LOCK_NAME

    def lock_late(descriptor: int, operation: int) -> None:
        path.unlink()
        if is_made_anew:
            path.touch()

    monkeypatch.setattr("runtime.prepare.lock.fcntl.flock", lock_late)
    with pytest.raises(FolderBusyError), FolderLock(tmp_path):
        raise AssertionError("held by a file that nobody finds")


def test_replacing_shows_nothing_until_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with replacing(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert [item.name for item in tmp_path.iterdir() if item.is_file()] == ["a"]


def test_replacing_that_fails_leaves_the_old_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def fail(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"), replacing(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"old"
    assert [item.name for item in tmp_path.iterdir() if item.is_file()] == ["a"]


def test_replacing_syncs_before_it_renames_and_the_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    whole_sync, whole_replace = os.fsync, Path.replace

    def sync(descriptor: int) -> None:
        order.append("sync")
        whole_sync(descriptor)

    def replace(path: Path, target: Path) -> Path:
        order.append("rename")
        return whole_replace(path, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(Path, "replace", replace)
    with replacing(tmp_path / "a") as file:
        file.write(b"new")
    assert order == ["sync", "rename", "sync"]


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, ErrorCode.DISK_FULL),
        (errno.EDQUOT, ErrorCode.DISK_FULL),
        (errno.EROFS, ErrorCode.DISK_NOT_WRITABLE),
        (errno.EFBIG, ErrorCode.DISK_NOT_WRITABLE),
        (errno.EIO, ErrorCode.COPY_WRITE_FAILED),
        (errno.ENODEV, ErrorCode.COPY_WRITE_FAILED),
    ],
)
def test_disk_error_tells_the_kinds_apart(tmp_path: Path, number: int, code: ErrorCode) -> None:
    assert disk_error(tmp_path, OSError(number, "x"), 10, 5).code is code


def test_free_bytes_of_a_folder_to_come_is_that_of_its_place(tmp_path: Path) -> None:
    assert free_bytes(tmp_path / "not" / "yet") > 0


def test_progress_is_told_at_a_bounded_rate() -> None:
    now = [0.0]
    told: list[tuple[int, int]] = []
    progress = Progress(100, lambda *step: told.append(step), NeverStops(), lambda: now[0])
    for step_s in (0.0, 0.01, 0.02, 0.06, 0.07, 0.2):
        now[0] = step_s
        progress.add(10)
    assert told == [(10, 100), (40, 100), (60, 100)]
    assert progress.remaining_bytes == 40
    progress.add(1000)
    progress.finish()
    assert told[-1] == (100, 100)


PLANS = (TensorPlan("a", "U8", (5,)), TensorPlan("b", "F16", (2, 2)))
DATA = {"a": b"12345", "b": b"abcdefgh"}
IDENTITY = {"larder": "1"}


def write(path: Path) -> None:
    write_file(path, PLANS, IDENTITY, lambda tensor: iter([DATA[tensor.name]]))


def check_nothing() -> None:
    pass


def test_weight_file_is_verified_as_written(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    assert verified_file(path, PLANS, IDENTITY, check_nothing) is None
    write(path)
    found = verified_file(path, PLANS, IDENTITY, check_nothing)
    assert found is not None
    assert found.size_bytes == path.stat().st_size
    assert path.read_bytes().endswith(b"12345abcdefgh")


def test_weight_file_of_another_copy_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write(path)
    assert verified_file(path, PLANS, {"larder": "2"}, check_nothing) is None
    assert verified_file(path, PLANS[:1], IDENTITY, check_nothing) is None
    assert (
        verified_file(path, (*PLANS[:1], TensorPlan("c", "F16", (4,))), IDENTITY, check_nothing)
        is None
    )


@pytest.mark.parametrize("change", ["data", "header", "crc", "cut"])
def test_weight_file_with_any_change_is_not_taken(tmp_path: Path, change: str) -> None:
    path = tmp_path / "a.safetensors"
    write(path)
    data = bytearray(path.read_bytes())
    place = {"data": len(data) - 1, "header": data.index(b"F16"), "crc": data.index(b"crc32") + 9}
    if change == "cut":
        del data[-1]
    else:
        data[place[change]] ^= 0x55
    path.write_bytes(data)
    assert verified_file(path, PLANS, IDENTITY, check_nothing) is None


def test_weight_file_with_checksums_that_are_no_numbers_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write(path)
    data = path.read_bytes()
    begin = data.index(b"crc32") + 8
    path.write_bytes(data[:begin] + b"zz" + data[begin + 2 :])
    assert verified_file(path, PLANS, IDENTITY, check_nothing) is None


def test_weight_file_that_shrinks_while_verified_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write(path)

    def cut() -> None:
        os.truncate(path, path.stat().st_size - 10)

    assert verified_file(path, PLANS, IDENTITY, cut) is None


def test_remove_prepared_gives_back_everything(tmp_path: Path) -> None:
    source = inspect_folder(str(write_checkpoint(tmp_path / "m")))
    target = tmp_path / "copy"
    prepare_model(source, Q8, str(target))
    total = sum(file.stat().st_size for file in target.iterdir())
    assert remove_prepared(str(target)) == total
    assert not target.exists()


def test_remove_prepared_interrupted_can_be_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = inspect_folder(str(write_checkpoint(tmp_path / "m")))
    target = tmp_path / "copy"
    prepare_model(source, Q8, str(target))

    def fail(path: Path, **named: Any) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "unlink", fail)
        with pytest.raises(LarderError) as caught:
            remove_prepared(str(target))
    assert caught.value.code is ErrorCode.DISK_NOT_WRITABLE
    assert not (target / MANIFEST_NAME).exists()
    assert (target / JOURNAL_NAME).exists()
    assert kept_bytes(str(target)) > 0
    remove_prepared(str(target))
    assert not target.exists()


def test_remove_prepared_touches_no_other_folder(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m")
    with pytest.raises(LarderError) as caught:
        remove_prepared(str(folder))
    assert caught.value.code is ErrorCode.NOT_PREPARED
    assert (folder / "config.json").exists()
    assert kept_bytes(str(folder)) == 0


def test_remove_prepared_waits_for_nobody(tmp_path: Path) -> None:
    source = inspect_folder(str(write_checkpoint(tmp_path / "m")))
    target = tmp_path / "copy"
    prepare_model(source, Q8, str(target))
    (target / "mine").mkdir()
    with FolderLock(target):
        with pytest.raises(LarderError) as caught:
            remove_prepared(str(target))
        assert caught.value.code is ErrorCode.COPY_BUSY
    remove_prepared(str(target))
    assert [item.name for item in target.iterdir()] == ["mine"]


@pytest.mark.parametrize(("hidden_size", "expert_width"), [(64, 40), (37, 9), (1024, 300)])
@pytest.mark.parametrize("weight_format", [Q8, WeightFormat.Q4_G32, WeightFormat.F32])
def test_chunks_cover_a_matrix_as_one_packing_would(
    hidden_size: int, expert_width: int, weight_format: WeightFormat
) -> None:
    source = expert_layout(WeightFormat.F32, hidden_size, expert_width)
    target = expert_layout(weight_format, hidden_size, expert_width)
    weights = np.random.default_rng(1).standard_normal(source.record_bytes // 4, np.float32)
    record = np.zeros(target.record_bytes, np.uint8)
    for chunk in chunks_of(source, target):
        data = convert_rows(weights.view(np.uint8), chunk)
        assert len(data) == chunk.num_bytes
        record[chunk.begin_bytes : chunk.begin_bytes + len(data)] = data
    for part in ExpertPart:
        plain, packed = source[part], target[part]
        begin = plain.offset_bytes // 4
        matrix = weights[begin : begin + plain.rows * plain.columns]
        expected = pack(weight_format, matrix.reshape(plain.rows, plain.columns))
        place = record[packed.offset_bytes : packed.offset_bytes + packed.num_bytes]
        assert np.array_equal(place, expected)


def test_quantised_source_is_not_converted_again() -> None:
    source = expert_layout(WeightFormat.Q4_G32, 64, 32)
    target = expert_layout(Q8, 64, 32)
    chunk = next(chunks_of(source, target))
    with pytest.raises(ValueError, match="not a published format"):
        convert_rows(np.zeros(source.record_bytes, np.uint8), chunk)


@pytest.mark.parametrize(
    ("name", "is_kept"),
    [
        ("tokenizer.json", True),
        ("tokenizer.model", True),
        ("tiktoken.model", True),
        ("family.tiktoken", True),
        ("NOTICE.md", True),
        ("model.safetensors", False),
    ],
)
def test_copy_takes_the_vocabulary_of_any_library_along(
    tmp_path: Path, name: str, is_kept: bool
) -> None:
    (tmp_path / name).write_bytes(b"x")
    assert is_copied(tmp_path / name) == is_kept
