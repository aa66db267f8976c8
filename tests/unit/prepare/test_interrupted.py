"""Preparations that are killed, run out of disk or are refused by the kernel, and then go on."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.inspect.folder import inspect_folder
from runtime.inspect.inspection import Inspection
from runtime.inspect.manifest import MANIFEST_NAME
from runtime.prepare.journal import is_unfinished, kept_bytes
from runtime.prepare.lock import LOCK_NAME
from runtime.prepare.prepare import prepare_model
from runtime.protocol.errors import ErrorCode
from runtime.protocol.values import WeightFormat
from runtime.store.prepared import PreparedStore
from tests.support.checkpoint_folders import TinyModel, write_checkpoint
from tests.support.prepare_process import REFUSED_STATUS

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Inspection:
    folder = tmp_path_factory.mktemp("source") / "m"
    return inspect_folder(str(write_checkpoint(folder, TinyModel(num_layers=3, num_experts=4))))


@pytest.fixture(scope="module")
def whole(source: Inspection, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("whole") / "copy"
    prepare_model(source, WeightFormat.Q8_G32, str(folder))
    return contents(folder)


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name != LOCK_NAME}


def run(
    source: Inspection, target: Path, point: str, number: int
) -> subprocess.CompletedProcess[str]:
    module = ["-m", "tests.support.prepare_process"]
    arguments = [source.report.folder, str(target), "q8_g32", point, str(number)]
    return subprocess.run(
        [sys.executable, *module, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("point", "number"),
    [
        *(("write", number) for number in (1, 9, 26, 45)),
        *(("sync", number) for number in (1, 2, 4, 7)),
        *(("rename", number) for number in (1, 2, 4, 6, 10)),
    ],
)
def test_prepare_killed_at_any_point_goes_on_to_the_same_bytes(
    source: Inspection, whole: dict[str, bytes], tmp_path: Path, point: str, number: int
) -> None:
    target = tmp_path / "copy"
    assert run(source, target, point, number).returncode == -signal.SIGKILL
    assert not (target / MANIFEST_NAME).exists()
    finished = {name: data for name, data in contents(target).items() if name in whole}
    assert finished.items() <= whole.items()
    made = prepare_model(source, WeightFormat.Q8_G32, str(target))
    assert contents(target) == whole
    assert not is_unfinished(target)
    PreparedStore(Path(made.folder), source.report.fingerprint).close()


def test_prepare_killed_again_and_again_makes_headway(
    source: Inspection, whole: dict[str, bytes], tmp_path: Path
) -> None:
    target = tmp_path / "copy"
    kept = -1
    status = -signal.SIGKILL
    while status:
        # Each life ends at its third finished file.
        status = run(source, target, "rename", 3).returncode
        assert status in (0, -signal.SIGKILL)
        now = len(whole.keys() & contents(target).keys())
        assert now > kept
        kept = now
    assert contents(target) == whole


def test_prepare_refused_by_the_kernel_in_the_middle_keeps_what_is_finished(
    source: Inspection, whole: dict[str, bytes], tmp_path: Path
) -> None:
    target = tmp_path / "copy"
    largest = max(map(len, whole.values()))
    ended = run(source, target, "limit", largest - 1)
    assert ended.returncode == REFUSED_STATUS, ended.stderr
    assert ended.stdout.strip() == ErrorCode.DISK_NOT_WRITABLE
    assert kept_bytes(str(target)) == sum(
        len(data) for name, data in contents(target).items() if name.endswith(".safetensors")
    )
    prepare_model(source, WeightFormat.Q8_G32, str(target))
    assert contents(target) == whole


def test_lock_ends_with_the_process_that_held_it(source: Inspection, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    assert run(source, target, "write", 5).returncode == -signal.SIGKILL
    assert (target / LOCK_NAME).exists()
    assert prepare_model(source, WeightFormat.Q8_G32, str(target)).size_bytes > 0
