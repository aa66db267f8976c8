"""Inspections are kept while no file has changed, and made anew after any change."""

from pathlib import Path

import pytest

from runtime.inspect.folder import inspect_folder
from runtime.inspect.inspection import Inspection
from runtime.prepare.prepare import prepare_model
from runtime.protocol.values import WeightFormat
from runtime.service import inspections
from runtime.service.inspections import MAX_KEPT, Inspections, signature_of
from tests.support.checkpoint_folders import write_checkpoint


class Counted:
    """Inspects and counts how often."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self, folder: str, prepared_folder: str) -> Inspection:
        self.number += 1
        return inspect_folder(folder, prepared_folder)


@pytest.fixture
def counted() -> Counted:
    return Counted()


@pytest.fixture
def kept(counted: Counted) -> Inspections:
    return Inspections(counted)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "model")


def test_what_has_not_changed_is_read_once(
    kept: Inspections, counted: Counted, model: Path, tmp_path: Path
) -> None:
    first = kept(str(model), str(tmp_path / "prepared"))
    assert kept(str(model), str(tmp_path / "prepared")) is first
    assert counted.number == 1
    kept(str(model), "")
    assert counted.number == 2, "other places for copies are another question"


def test_any_change_of_a_file_is_seen(kept: Inspections, counted: Counted, model: Path) -> None:
    kept(str(model), "")
    for number, name in enumerate(("config.json", "a new file"), 2):
        with (model / name).open("a") as file:
            file.write(" ")
        assert not kept(str(model), "").report.problems
        assert counted.number == number
    shard = next(model.glob("*.safetensors"))
    shard.write_bytes(shard.read_bytes()[:-1])
    assert kept(str(model), "").report.problems
    assert kept(str(model), "").report.problems
    assert counted.number == 5, "what has problems is read each time"


def test_copy_that_is_written_is_seen(kept: Inspections, model: Path, tmp_path: Path) -> None:
    usual = tmp_path / "prepared"
    inspection = kept(str(model), str(usual))
    assert inspection.report.prepared == []
    prepare_model(inspection, WeightFormat.Q8_G32, str(usual / "copy"))
    (copy,) = kept(str(model), str(usual)).report.prepared
    assert copy.expert_format is WeightFormat.Q8_G32
    Path(copy.folder, "larder-manifest.json").unlink()
    assert kept(str(model), str(usual)).report.prepared == []


def test_few_are_kept_and_what_is_not_there_is_not(
    kept: Inspections, counted: Counted, tmp_path: Path
) -> None:
    models = [write_checkpoint(tmp_path / f"model {number}") for number in range(MAX_KEPT + 1)]
    for model in models:
        kept(str(model), "")
    kept(str(models[-1]), "")
    assert counted.number == MAX_KEPT + 1
    kept(str(models[0]), "")
    assert counted.number == MAX_KEPT + 2
    for _ in range(2):
        assert kept(str(tmp_path / "none"), "").report.problems
    assert counted.number == MAX_KEPT + 4


def test_folder_of_very_many_files_is_not_kept(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert signature_of(str(model), "") is not None
    monkeypatch.setattr(inspections, "MAX_FILES", 1)
    assert signature_of(str(model), "") is None
