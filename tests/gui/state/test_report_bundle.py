"""The report for whoever helps."""

import io
import zipfile
from pathlib import Path

import msgspec
import pytest

from app.state import report_bundle as module
from app.state.forecast_book import MAX_RECORDS, ForecastBook
from app.state.licences import version
from app.state.report_bundle import report_bundle
from app.state.settings_file import Preset, Settings
from runtime.protocol.chat import GenerationStats
from tests.support.window_values import some_forecast, some_machine, some_plan, some_stats

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


def test_report_tells_answers_beside_what_was_expected_of_them(tmp_path: Path) -> None:
    book = ForecastBook(tmp_path / "forecasts.json")
    book.take_answer(slow_answer(), some_plan(), "tiny")
    texts = names_and_texts(report_bundle(Settings(), [], answers=book.records))
    (record,) = msgspec.json.decode(texts["answers.json"])
    assert (record["model"], record["measured"], record["predicted"]) == ("tiny", 21.4, 30.0)
    assert record["notes"] == ["slower_than_forecast", "slower_than_usual"]


def slow_answer() -> GenerationStats:
    forecast = msgspec.structs.replace(some_forecast(25, 35), decode_tokens_per_s=30.0)
    stats: GenerationStats = msgspec.structs.replace(
        some_stats(predicted=forecast), usual_tokens_per_s=29.0
    )
    return stats


def test_book_keeps_the_newest_answers_over_restarts(tmp_path: Path) -> None:
    path = tmp_path / "data" / "forecasts.json"
    book = ForecastBook(path)
    assert not book.take_answer(None, some_plan(), "tiny")
    assert not book.take_answer(some_stats(), None, "tiny")
    assert not path.exists()
    for number in range(MAX_RECORDS + 2):
        assert book.take_answer(some_stats(), some_plan(), f"model {number}")
    kept = ForecastBook(path).records
    assert len(kept) == MAX_RECORDS
    assert (kept[0].model, kept[0].predicted, kept[0].notes) == ("model 2", 0.0, [])


@pytest.mark.parametrize("damage", [b"", b"{", b'[{"at": 3}]', b"[" * 100_000])
def test_book_damaged_or_without_a_place_lasts_as_long_as_the_window(
    tmp_path: Path, damage: bytes
) -> None:
    path = tmp_path / "forecasts.json"
    path.write_bytes(damage)
    assert ForecastBook(path).records == []
    (tmp_path / "file").write_bytes(b"")
    book = ForecastBook(tmp_path / "file" / "forecasts.json")
    assert not book.take_answer(some_stats(), some_plan(), "tiny")
    assert len(book.records) == 1


def test_report_has_nothing_that_was_written_to_a_model() -> None:
    preset = Preset(name=SECRET, system_prompt=SECRET)
    settings = Settings(
        system_prompt=SECRET, presets=[preset], model_presets={"/m": SECRET}, currency="Fr."
    )
    texts = names_and_texts(report_bundle(settings, []))
    assert SECRET not in "".join(texts.values())
    assert "Fr." in texts["settings.json"]
    assert list(texts) == ["versions.txt", "settings.json"]
