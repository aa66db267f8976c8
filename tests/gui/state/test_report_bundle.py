"""The report for whoever helps."""

import importlib.metadata
import io
import zipfile
from pathlib import Path

import msgspec
import pytest

from app.state import report_bundle as module
from app.state.report_bundle import components, report_bundle, version, versions
from app.state.settings_file import Preset, Settings
from tests.support.window_values import some_machine, some_plan

SECRET = "my secret diary"
NEEDS = (
    "Requires-Dist: made_up\nRequires-Dist: not_there>=1\n"
    'Requires-Dist: some_tool; extra == "test"\n'
)


def names_and_texts(data: bytes) -> dict[str, str]:
    with zipfile.ZipFile(io.BytesIO(data)) as bundle:
        return {name: bundle.read(name).decode() for name in bundle.namelist()}


def test_report_has_versions_settings_machine_plan_and_logs(tmp_path: Path) -> None:
    log = tmp_path / "runtime.log"
    log.write_text("x" * (module.MAX_LOG_BYTES + 10) + "the end", encoding="utf-8")
    missing = tmp_path / "window-crash.log"
    texts = names_and_texts(report_bundle(Settings(), [log, missing], some_machine(), some_plan()))
    assert list(texts) == [
        "versions.txt", "settings.json", "machine.json", "plan.json", "logs/runtime.log",
    ]  # fmt: skip
    assert len(texts["logs/runtime.log"]) == module.MAX_LOG_BYTES
    assert texts["logs/runtime.log"].endswith("the end")
    assert msgspec.json.decode(texts["machine.json"])["cpu_name"] == some_machine().cpu_name
    assert f"larder {version()}" in texts["versions.txt"]


def test_report_has_nothing_that_was_written_to_a_model() -> None:
    preset = Preset(name=SECRET, system_prompt=SECRET)
    settings = Settings(
        system_prompt=SECRET, presets=[preset], model_presets={"/m": SECRET}, currency="Fr."
    )
    texts = names_and_texts(report_bundle(settings, []))
    assert SECRET not in "".join(texts.values())
    assert "Fr." in texts["settings.json"]
    assert list(texts) == ["versions.txt", "settings.json"]


def test_components_have_versions_and_licences_and_none_of_the_tools() -> None:
    found = {component.name.lower(): component for component in components()}
    for name in ("msgspec", "pyside6_essentials", "numpy"):
        assert found[name].version == importlib.metadata.version(name)
        assert found[name].licence
    assert "pytest" not in found
    assert "ruff" not in found
    assert "torch" in found or len(found) > 5
    assert any(line.startswith("Python ") for line in versions())


def test_program_that_is_not_installed_names_no_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert components("no-such-program-anywhere") == []
    monkeypatch.setattr(module, "_PROGRAM", "no-such-program-anywhere")
    assert version() == ""


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("License-Expression: MIT\n", "MIT"),
        ("Classifier: License :: OSI Approved :: BSD License\n", "BSD License"),
        ("License: Some licence\n", "Some licence"),
        ("", ""),
    ],
)
def test_licence_is_found_where_a_package_says_it(
    head: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (
        ("larder_like", NEEDS),
        ("made_up", head),
    ):
        folder = tmp_path / f"{name}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{text}"
        )
    monkeypatch.syspath_prepend(str(tmp_path))
    (part,) = components("larder_like")
    assert (part.name, part.version, part.licence) == ("made_up", "1.0", expected)
