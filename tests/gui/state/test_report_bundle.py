"""The report for whoever helps."""

import io
import zipfile
from pathlib import Path

import msgspec

from app.state import report_bundle as module
from app.state.licences import version
from app.state.report_bundle import report_bundle
from app.state.settings_file import Preset, Settings
from tests.support.window_values import some_machine, some_plan

SECRET = "my secret diary"


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
