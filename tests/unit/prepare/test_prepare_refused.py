"""What is refused before or while writing a prepared copy."""

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from runtime.errors import CancelledError, LarderError
from runtime.inspect.folder import inspect_folder
from runtime.inspect.inspection import Inspection
from runtime.inspect.manifest import JOURNAL_NAME, MANIFEST_NAME
from runtime.prepare import prepare, weight_file
from runtime.prepare.journal import kept_bytes
from runtime.prepare.lock import LOCK_NAME, FolderLock
from runtime.prepare.prepare import prepare_model
from runtime.protocol.errors import ErrorCode
from runtime.protocol.values import WeightFormat
from tests.support.checkpoint_folders import (
    TinyModel,
    shard_name,
    tiny_tensors,
    write_checkpoint,
    write_safetensors,
)
from tests.support.family_folders import tensor_values, write_family
from tests.support.gguf_models import write_model

Q8 = WeightFormat.Q8_G32


@pytest.fixture
def source(tmp_path: Path) -> Inspection:
    model = TinyModel(num_layers=3, num_experts=4, model_type="qwen2_moe", expert_width=40)
    return inspect_folder(str(write_checkpoint(tmp_path / "m", model)))


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "copy"


class StopAfter:
    """A wish to stop that comes with the n-th look."""

    def __init__(self, num_checks: int) -> None:
        self.left = num_checks

    def check(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise CancelledError


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name != LOCK_NAME}


def refusal(act: Callable[[], object]) -> LarderError:
    with pytest.raises(LarderError) as caught:
        act()
    return caught.value


@pytest.mark.parametrize("name", [MANIFEST_NAME, "experts-00001.safetensors"])
def test_prepare_over_a_copy_with_a_folder_for_a_file_says_so(
    source: Inspection, target: Path, name: str
) -> None:
    prepare_model(source, Q8, str(target))
    (target / name).unlink()
    (target / name).mkdir()
    error = refusal(lambda: prepare_model(source, Q8, str(target)))
    assert error.code is ErrorCode.COPY_PLACE_REFUSED
    assert f"{name} in it is not a file" in str(error.parameters["reason"])


def test_prepare_over_a_copy_that_cannot_be_read_says_so(
    source: Inspection, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare_model(source, Q8, str(target))

    def refuse(path: Path, flags: int) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("runtime.inspect.files.os.open", refuse)
    error = refusal(lambda: prepare_model(source, Q8, str(target)))
    assert error.code is ErrorCode.FILE_UNREADABLE


def test_prepare_without_room_is_refused_with_both_numbers(
    source: Inspection, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepare, "free_bytes", lambda folder: 1000)
    error = refusal(lambda: prepare_model(source, Q8, str(target)))
    assert error.code is ErrorCode.DISK_FULL
    assert error.parameters["folder"] == str(target)
    assert error.parameters["free_bytes"] == 1000
    assert int(error.parameters["needed_bytes"]) > 100_000
    assert not target.parent.exists(), "nothing was begun, so nothing lies about"


def test_prepare_without_room_leaves_an_empty_folder_empty(
    source: Inspection, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target.mkdir(parents=True)
    monkeypatch.setattr(prepare, "free_bytes", lambda folder: 1000)
    assert refusal(lambda: prepare_model(source, Q8, str(target))).code is ErrorCode.DISK_FULL
    assert list(target.iterdir()) == []


@pytest.mark.parametrize("place", ["copy", "m/copy"])
def test_prepare_whose_source_goes_away_names_the_source(
    source: Inspection, tmp_path: Path, place: str
) -> None:
    model, gone = tmp_path / "m", tmp_path / "gone"

    def take_away(done_bytes: int, total_bytes: int) -> None:
        if done_bytes and not gone.exists():
            gone.mkdir()
            for file in model.iterdir():
                if file.is_file():
                    file.rename(gone / file.name)

    copy = tmp_path / place
    error = refusal(lambda: prepare_model(source, Q8, str(copy), take_away))
    assert error.code is ErrorCode.FILE_UNREADABLE
    assert Path(str(error.parameters["file"])).parent == model
    assert not (copy / MANIFEST_NAME).exists()


def test_prepare_on_a_disk_that_fills_up_keeps_finished_files(
    source: Inspection, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def full_disk(path: Path, *rest: object) -> object:
        calls.append(path.name)
        if len(calls) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        return weight_file.write_file(path, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(prepare, "write_file", full_disk)
    error = refusal(lambda: prepare_model(source, Q8, str(target)))
    assert error.code is ErrorCode.DISK_FULL
    assert isinstance(error.__cause__, OSError)
    kept = kept_bytes(str(target))
    assert kept > 0
    assert str(kept) in error.detail
    prepare_model(source, Q8, str(target))
    assert calls[3:] == [calls[2], "experts-00002.safetensors"]


def test_prepare_on_a_disk_that_is_full_at_once_leaves_the_folder_as_it_was(
    source: Inspection, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target.mkdir(parents=True)

    def full_disk(folder: Path, identity: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("runtime.prepare.journal.begin", full_disk)
    assert refusal(lambda: prepare_model(source, Q8, str(target))).code is ErrorCode.DISK_FULL
    assert list(target.iterdir()) == []


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.EPERM])
def test_prepare_on_a_read_only_disk_says_so(
    source: Inspection, target: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(path: Path, *rest: object, **named: object) -> None:
        raise OSError(number, "refused")

    monkeypatch.setattr(Path, "mkdir", refuse)
    error = refusal(lambda: prepare_model(source, Q8, str(target)))
    assert error.code is ErrorCode.DISK_NOT_WRITABLE
    assert error.parameters == {"folder": str(target), "reason": "refused"}


def test_prepare_with_an_error_of_the_drive_fails_by_name(
    source: Inspection, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path, *rest: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(prepare, "write_file", fail)
    error = refusal(lambda: prepare_model(source, Q8, str(target)))
    assert error.code is ErrorCode.COPY_WRITE_FAILED
    assert error.parameters == {"folder": str(target), "reason": "Input/output error"}


def test_prepare_that_reads_back_wrong_bytes_keeps_nothing_of_them(
    source: Inspection, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepare, "verified_file", lambda *rest: None)
    error = refusal(lambda: prepare_model(source, Q8, str(target)))
    assert error.code is ErrorCode.COPY_MISWRITTEN
    assert str(error.parameters["file"]).startswith(str(target))
    assert not list(target.glob("*.safetensors"))


def test_prepare_twice_at_once_refuses_the_second(source: Inspection, target: Path) -> None:
    target.mkdir(parents=True)
    with FolderLock(target):
        error = refusal(lambda: prepare_model(source, Q8, str(target)))
    assert error.code is ErrorCode.COPY_BUSY
    assert error.parameters == {"folder": str(target)}
    prepare_model(source, Q8, str(target))


def test_prepare_into_the_model_or_a_full_folder_is_refused(
    source: Inspection, tmp_path: Path
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("dear")
    for folder in (source.report.folder, str(tmp_path / "full")):
        before = {path.name for path in Path(folder).iterdir()}
        error = refusal(lambda folder=folder: prepare_model(source, Q8, folder))  # type: ignore[misc]
        assert error.code is ErrorCode.COPY_PLACE_REFUSED
        after = {path.name for path in Path(folder).iterdir()}
        assert after == before


def test_prepare_over_the_copy_of_another_model_is_refused(
    source: Inspection, target: Path
) -> None:
    prepare_model(source, Q8, str(target))
    before = contents(target)
    error = refusal(lambda: prepare_model(source, WeightFormat.Q4_G32, str(target)))
    assert error.code is ErrorCode.COPY_PLACE_REFUSED
    assert contents(target) == before


def test_prepare_over_an_unfinished_other_copy_is_refused(source: Inspection, target: Path) -> None:
    with pytest.raises(CancelledError):
        prepare_model(source, Q8, str(target), cancel=StopAfter(50))
    error = refusal(lambda: prepare_model(source, WeightFormat.Q4_G32, str(target)))
    assert "something else" in str(error.parameters["reason"])
    (target / JOURNAL_NAME).write_text("{")
    error = refusal(lambda: prepare_model(source, Q8, str(target)))
    assert "damaged" in str(error.parameters["reason"])


def test_prepare_of_a_broken_model_tells_its_first_problem(
    source: Inspection, target: Path
) -> None:
    (Path(source.report.folder) / shard_name(2, 4)).unlink()
    broken = inspect_folder(source.report.folder)
    error = refusal(lambda: prepare_model(broken, Q8, str(target)))
    assert error.code is ErrorCode.SHARD_MISSING
    assert not target.exists()


def test_prepare_into_another_published_format_is_refused(source: Inspection, target: Path) -> None:
    error = refusal(lambda: prepare_model(source, WeightFormat.F32, str(target)))
    assert error.code is ErrorCode.SETTING_INVALID
    assert (error.parameters["found"], error.parameters["expected"]) == ("f32", "bf16")


def test_prepare_of_weights_that_are_no_numbers_names_the_expert(
    tmp_path: Path, target: Path
) -> None:
    folder = write_checkpoint(tmp_path / "m", TinyModel(num_shards=0))
    tensors = tiny_tensors(TinyModel())
    name = "model.layers.1.mlp.experts.6.up_proj.weight"
    dtype, shape, data = tensors[name]
    tensors[name] = (dtype, shape, b"\xc0\x7f" + data[2:])
    write_safetensors(folder / "model.safetensors", tensors)
    error = refusal(lambda: prepare_model(inspect_folder(str(folder)), Q8, str(target)))
    assert error.code is ErrorCode.WEIGHTS_NOT_FINITE
    assert error.parameters == {
        "place": f"The matrix {name} in {folder / 'model.safetensors'}",
    }
    assert "layer 1, expert 6" in error.detail


@pytest.mark.parametrize("name", ["a file", "a file/below", "half a \udcff name"])
def test_prepare_into_what_can_be_no_folder_is_refused(
    source: Inspection, tmp_path: Path, name: str
) -> None:
    (tmp_path / "a file").write_text("dear")
    error = refusal(lambda: prepare_model(source, Q8, str(tmp_path / name)))
    assert error.code is ErrorCode.COPY_PLACE_REFUSED
    assert (tmp_path / "a file").read_text() == "dear"


def test_gguf_model_is_told_that_it_is_used_in_place(tmp_path: Path, target: Path) -> None:
    path = write_model(tmp_path / "m.gguf", "qwen3_moe", "Q8_0")
    error = refusal(lambda: prepare_model(inspect_folder(str(path)), Q8, str(target)))
    assert (error.code, error.parameters) == (ErrorCode.USED_IN_PLACE, {"folder": str(path)})
    assert not target.exists()


def test_model_without_experts_is_told_that_there_is_nothing_to_prepare(
    tmp_path: Path, target: Path
) -> None:
    folder = write_family(tmp_path / "dense", "llama", tensor_values("llama"))
    error = refusal(lambda: prepare_model(inspect_folder(str(folder)), Q8, str(target)))
    assert (error.code, error.parameters) == (
        ErrorCode.NOTHING_TO_PREPARE,
        {"folder": str(folder)},
    )
    assert not target.exists()
