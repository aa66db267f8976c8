"""Kept rates: what counts, and files that are not what they should be."""

import errno
import json
import math
from pathlib import Path

import pytest

from runtime.hardware.rates import RAM, Failure, RateCache, drive_key, link_key
from runtime.protocol.machine import Measured
from tests.support.private_files import open_to_others


def test_rate_cache_keeps_what_was_measured(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "rates.json"
    assert RateCache(path).rate(RAM) is None
    RateCache(path).record(RAM, 2e10, "read 1 GB")
    kept = RateCache(path).rate(RAM)
    assert kept is not None
    assert (kept.value, kept.method) == (2e10, "read 1 GB")
    assert [item.name for item in path.parent.iterdir()] == ["rates.json"]


def test_rate_cache_of_a_drive_keeps_the_lower(tmp_path: Path) -> None:
    cache = RateCache(tmp_path / "rates.json")
    key = drive_key("/")
    cache.record(key, 3e9, "first")
    assert cache.record(key, 5e9, "burst").method == "first"
    assert cache.record(key, 2e9, "sustained").value == 2e9
    kept = cache.rate(key)
    assert kept is not None
    assert kept.value == cache.record(key, 2e9, "sustained").value


@pytest.mark.parametrize("newest", [5e9, 1e9])
def test_rate_cache_of_a_link_keeps_the_newest(tmp_path: Path, newest: float) -> None:
    cache = RateCache(tmp_path / "rates.json")
    key = link_key("cuda:0")
    cache.record(key, 3e9, "first")
    cache.record(key, newest, "second")
    kept = cache.rate(key)
    assert kept is not None
    assert kept.value == newest


def test_rate_cache_of_ram_keeps_the_higher(tmp_path: Path) -> None:
    cache = RateCache(tmp_path / "rates.json")
    cache.record(RAM, 2e9, "busy")
    assert cache.record(RAM, 3e10, "idle").method == "idle"
    assert cache.record(RAM, 2e9, "busy again").method == "idle"
    kept = cache.rate(RAM)
    assert kept is not None
    assert kept.value == cache.record(RAM, 1e9, "busy still").value


@pytest.mark.parametrize("rate", [0.0, -1.0, math.inf, math.nan])
def test_rate_cache_impossible_rate_is_our_mistake(tmp_path: Path, rate: float) -> None:
    with pytest.raises(ValueError, match="a rate of"):
        RateCache(tmp_path / "rates.json").record(RAM, rate, "wrong")


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"rates": []}',
        '{"rates": {"ram": 5}}',
        '{"rates": {"ram": {"bytes_per_s": true, "method": "x"}}}',
        '{"rates": {"ram": {"bytes_per_s": "5", "method": "x"}}}',
        '{"rates": {"ram": {"bytes_per_s": 5}}}',
        '{"rates": {"ram": {"bytes_per_s": -5, "method": "x"}}}',
        '{"rates": {"ram": {"bytes_per_s": NaN, "method": "x"}}}',
        "[" * 100_000,
        " " * (1024 * 1024 + 1),
    ],
)
def test_rate_cache_damaged_file_counts_as_empty(tmp_path: Path, content: str) -> None:
    path = tmp_path / "rates.json"
    path.write_text(content)
    assert RateCache(path).rate(RAM) is None
    RateCache(path).record(RAM, 1e9, "again")
    assert json.loads(path.read_text())["rates"][RAM]["bytes_per_s"] == 1e9


def test_rate_cache_that_cannot_be_written_still_answers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    caplog.set_level("INFO")
    cache = RateCache(tmp_path / "file" / "rates.json")
    assert cache.record(RAM, 1e9, "now").value == 1e9
    assert "not kept" in caplog.text
    kept = RateCache(cache.path).rate(RAM)
    assert kept is not None
    assert kept.value == 1e9


def test_rate_cache_is_for_its_person_alone(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "rates.json"
    RateCache(path).record(RAM, 2e10, "now")
    assert path.exists()
    assert open_to_others(tmp_path) == []


def test_rate_cache_on_a_full_drive_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_half(path: Path, _text: str, encoding: str) -> int:
        path.write_bytes(b"{")
        raise OSError(errno.ENOSPC, "No space left on device", encoding)

    monkeypatch.setattr(Path, "write_text", write_half)
    path = tmp_path / "cache" / "rates.json"
    assert RateCache(path).record(RAM, 2e10, "now").value == 2e10
    assert list(path.parent.iterdir()) == []


def test_rate_cache_tells_how_old_a_rate_is(tmp_path: Path) -> None:
    path = tmp_path / "rates.json"
    RateCache(path, lambda: 1000.0).record(RAM, 2e10, "then")
    later = RateCache(path, lambda: 8200.0)
    kept = later.rate(RAM)
    assert kept is not None
    assert kept.age_s == 7200.0
    assert RateCache(path, lambda: 10.0).rate(RAM) == Measured(
        value=2e10, method="then", age_s=0.0
    ), "a clock that was put back"
    again = later.record(RAM, 1e10, "busy")
    assert (again.method, again.age_s) == ("then", 0.0), "looked at again, and still the best"


@pytest.mark.parametrize("at", ["true", '"x"', "NaN"])
def test_rate_cache_of_a_damaged_moment_keeps_the_rate(tmp_path: Path, at: str) -> None:
    path = tmp_path / "rates.json"
    entry = f'{{"bytes_per_s": 5e9, "method": "x", "at": {at}}}'
    path.write_text(f'{{"rates": {{"link:cuda:0": {entry}}}}}')
    kept = RateCache(path, lambda: 60.0).rate(link_key("cuda:0"))
    assert kept == Measured(value=5e9, method="x", age_s=60.0)


def test_rate_cache_of_ram_takes_the_newest_of_equal_ones(tmp_path: Path) -> None:
    cache = RateCache(tmp_path / "rates.json")
    cache.record(RAM, 2e10, "busy")
    assert cache.record(RAM, 2e10, "idle").method == "idle"


def test_rate_cache_keeps_a_failure_until_the_rate_is_measured(tmp_path: Path) -> None:
    path, key = tmp_path / "rates.json", link_key("cuda:0")
    cache = RateCache(path, lambda: 1000.0)
    assert cache.failure(key) is None
    cache.fail(key, "no answer")
    cache.record(RAM, 2e10, "now")
    assert RateCache(path, lambda: 1060.0).failure(key) == Failure("no answer", 60.0)
    assert not cache.forget_other_machine("CPU, 2 cores")
    assert cache.failure(key) is not None
    cache.record(key, 1e10, "at a load")
    assert cache.failure(key) is None
    cache.fail(key, "no answer")
    cache.forget()
    assert cache.failure(key) is None, "measured again when asked"
    cache.fail(key, "no answer")
    assert cache.forget_other_machine("CPU, 8 cores")
    assert cache.failure(key) is None


@pytest.mark.parametrize("text", ["5", '{"link:cuda:0": 5}', '{"link:cuda:0": {"reason": 5}}'])
def test_rate_cache_of_a_damaged_failure_has_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "rates.json"
    path.write_text(f'{{"failures": {text}}}')
    assert RateCache(path).failure(link_key("cuda:0")) is None


def test_rate_cache_forgets_what_was_measured_on_other_hardware(tmp_path: Path) -> None:
    cache = RateCache(tmp_path / "rates.json")
    cache.record(RAM, 2e10, "now")
    assert not cache.forget_other_machine("CPU, 2 cores"), "kept before machines had names"
    assert not cache.forget_other_machine("CPU, 2 cores")
    cache.record(drive_key("/"), 1e9, "now")
    assert cache.rate(RAM) is not None
    assert cache.forget_other_machine("CPU, 8 cores")
    assert cache.rate(RAM) is None
    assert cache.rate(drive_key("/")) is None
    cache.record(RAM, 3e10, "now")
    assert not cache.forget_other_machine("CPU, 8 cores")
