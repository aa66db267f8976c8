"""``larderctl`` where nothing can be written: the place of a copy, and the model itself."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.checkpoint_folders import TinyModel, write_checkpoint
from tests.support.read_only import make_unwritable, where_full, where_read_only, where_unwritable
from tests.support.runtime_process import ROOT, TIMEOUT_S

PREPARE = (sys.executable, "-m", "runtime.cli", "prepare")
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="folders are closed the POSIX way")


@pytest.fixture(name="closed")
def _closed(tmp_path: Path) -> Path:
    folder = tmp_path / "closed"
    make_unwritable(folder)
    return folder


@pytest.fixture(name="model")
def _model(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "model", TinyModel(model_type="qwen2_moe", expert_width=40))


def prepare(model: Path, closed: Path, out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Run the command where the closed folder is closed."""
    return subprocess.run(
        where_unwritable(closed, [*PREPARE, str(model), "--out", str(out), *more]),
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=TIMEOUT_S,
        check=False,
    )


@POSIX
def test_prepare_where_nothing_can_be_written_says_which_folder_and_what_to_do(
    model: Path, closed: Path
) -> None:
    ended = prepare(model, closed, closed / "copy")
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    said = " ".join(ended.stderr.split())
    assert f"Nothing can be written to {closed / 'copy'}: " in said
    assert "Choose another folder" in said
    assert list(closed.iterdir()) == []


@POSIX
def test_prepare_where_nothing_can_be_written_has_its_code_in_json(
    model: Path, closed: Path
) -> None:
    ended = prepare(model, closed, closed, "--json")
    assert ended.returncode == 2
    error = json.loads(ended.stdout)["error"]
    assert error["code"] == "disk_not_writable"
    assert error["parameters"]["folder"] == str(closed)
    assert error["parameters"]["reason"] in ("Read-only file system", "Permission denied")


@POSIX
@pytest.mark.parametrize(
    "command", [("inspect", "--json"), ("chat", "--json", "--prompt", "a", "--max-tokens", "4")]
)
def test_model_on_a_read_only_drive_is_used_where_it_lies(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("LARDER_HOME", str(tmp_path / "home"))
    before = sorted(path.name for path in model.iterdir())
    touched = subprocess.run(
        where_read_only(model, ["touch", str(model / "new"), str(model / "config.json")]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert touched.returncode != 0
    assert touched.stderr.count("Read-only") == 2 or touched.stderr.count("Permission denied") == 2
    name, *more = command
    ended = subprocess.run(
        where_read_only(model, [sys.executable, "-m", "runtime.cli", name, str(model), *more]),
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    document = json.loads(ended.stdout)
    if name == "inspect":
        assert document["problems"] == []
    else:
        assert document["generated_tokens"] > 0
    assert sorted(path.name for path in model.iterdir()) == before


@POSIX
def test_recording_onto_a_full_drive_is_told_with_the_folder_after_the_answer(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LARDER_HOME", str(tmp_path / "home"))
    place = tmp_path / "place"
    chat = [sys.executable, "-m", "runtime.cli", "chat", str(model), "--prompt", "a"]
    chat += ["--max-tokens", "8", "--record-routing", str(place / "trace")]
    ended = subprocess.run(
        where_full(place, chat),
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert ended.returncode == 2, ended.stderr
    said = " ".join(ended.stderr.split())
    assert "Traceback" not in said
    assert f"Nothing can be written to {place / 'trace'}: No space left on device" in said
