"""``larderctl doctor`` of this PC, with a made-up card in it: no figure without its method."""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.cli.__main__ import main
from runtime.cli.machine import device_rows
from runtime.cli.screen import age_text
from runtime.hardware.cards import SeenCard, cards_path, keep_cards
from runtime.hardware.profile import MACHINE_VARIABLE
from runtime.hardware.rates import RateCache, link_back_key, link_key
from runtime.protocol.machine import DeviceReport, MemoryHolder
from runtime.service import measuring
from runtime.service.folders import find_folders
from tests.support.fake_nvml import fake_nvml
from tests.support.fake_systems import GIB

Capture = pytest.CaptureFixture[str]
LABELS = {
    "ram_total": "RAM",
    "ram_available": "RAM free",
    "ram_limit": "RAM limit",
    "ram_reclaimable": "RAM in cache",
    "ram_read_bytes_per_s": "RAM reads",
    "devices.0.link_bytes_per_s": "cuda:0 link",
    "devices.0.link_back_bytes_per_s": "cuda:0 link back",
    "devices.0.read_bytes_per_s": "cuda:0 reads",
    "drives.0.read_bytes_per_s": "drive reads",
}
"""Where the text shows each figure of the report."""
NAMES_ALONE = {"larder", "system", "kernels", "prepared models", "logs"}
"""Rows that tell no figure."""


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A folder with a file that is large enough to measure its drive with."""
    folder = tmp_path / "model"
    folder.mkdir()
    with (folder / "weights.safetensors").open("wb") as file:
        file.write(bytes(64 << 20))
    return str(folder)


@pytest.fixture
def card(tmp_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A card of 8 GiB by NVML in which torch found 6, with a link that was measured."""
    monkeypatch.delenv(MACHINE_VARIABLE, raising=False)
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml(nvmlDeviceGetCount=lambda: 1))
    # Two starts tell the same only where RAM is not measured again.
    monkeypatch.setattr(measuring.Others, "cores", lambda _: 0.0)
    rates_path = find_folders().cache / "rates.json"
    assert tmp_home in rates_path.parents
    RateCache(rates_path).record(link_key("cuda:0"), 12e9, "measured, 128 MiB copied")
    RateCache(rates_path).record(link_back_key("cuda:0"), 6e9, "measured, 64 MiB copied")
    keep_cards(cards_path(rates_path), [SeenCard("cuda:0", "New Card", 6 * GIB, None)])


def figures_of(value: object, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every measured figure of a report with the way to it."""
    if isinstance(value, dict) and {"value", "method"} <= value.keys():
        yield path, value
        return
    below: Iterable[tuple[object, object]] = ()
    if isinstance(value, dict):
        below = value.items()
    elif isinstance(value, list):
        below = enumerate(value)
    for name, part in below:
        yield from figures_of(part, f"{path}.{name}".lstrip("."))


def rows_of(text: str) -> dict[str, list[str]]:
    """Return the columns of each row by its first, of equal ones the first row."""
    rows: dict[str, list[str]] = {}
    for line in text.splitlines():
        label, *columns = re.split(r" {2,}", line)
        rows.setdefault(label, columns)
    return rows


@pytest.mark.usefixtures("card")
def test_doctor_tells_the_method_of_every_figure_of_this_pc(model: str, capsys: Capture) -> None:
    assert main(["doctor", model, "--json"]) == 0
    machine = json.loads(capsys.readouterr().out)["machine"]
    assert main(["doctor", model]) == 0
    rows = rows_of(capsys.readouterr().out)

    figures = dict(figures_of(machine))
    assert {"ram_total", "ram_available", "devices.0.link_bytes_per_s"} <= figures.keys()
    assert ("drives.0.read_bytes_per_s" in figures) is machine["drives"][0]["is_direct"]
    for path, figure in figures.items():
        assert figure["method"]
        if path.startswith("ram_limits."):
            continue
        method = rows[LABELS[path]][-1]
        is_kept = figure.get("age_s") is not None
        assert method == figure["method"] + (", just now" if is_kept else "")
    if machine["drives"][0]["is_direct"]:
        assert re.match(r"1: .*/s, 4: .*/s, 16: ", rows["drive at once"][0])
    without = {label for label, columns in rows.items() if len(columns) < 2}
    assert without <= NAMES_ALONE


@pytest.mark.usefixtures("card")
def test_doctor_shows_a_measured_link_and_where_torch_and_nvml_disagree(
    model: str, capsys: Capture
) -> None:
    assert main(["doctor", model]) == 0
    rows = rows_of(capsys.readouterr().out)
    assert rows["cuda:0 link"] == ["11.18 GiB/s", "measured, 128 MiB copied, just now"]
    assert rows["cuda:0 link back"] == ["5.59 GiB/s", "measured, 64 MiB copied, just now"]
    told, method = rows["cuda:0"]
    assert told.startswith("New Card, 6.00 GiB of 6.00 GiB free")
    assert method.startswith("NVML; torch found 6.0 GiB where NVML tells 8.0 GiB")


def test_doctor_takes_figures_of_a_file_among_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv(MACHINE_VARIABLE, "")
    place = find_folders().settings / "machine.json"
    assert main(["doctor", str(tmp_path)]) == 0
    assert str(place) in capsys.readouterr().out
    place.parent.mkdir(parents=True)
    place.write_text('{"ram": {"read_gb_per_s": 21.474836480}}')
    assert main(["doctor", str(tmp_path)]) == 0
    rows = rows_of(capsys.readouterr().out)
    assert rows["RAM reads"] == ["20.00 GiB/s", "profile"]
    assert rows["profile"][0] == str(place)


@pytest.mark.usefixtures("card")
def test_doctor_tells_energy_and_readers_that_a_person_states(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    path = tmp_path / "machine.json"
    path.write_text(
        '{"energy_sources": "none", "pc_watts": 90, "rest_watts": 30.5,'
        ' "drive": {"num_readers": 2, "joules_per_gb": 0.7},'
        ' "cards": [{"device": "cuda:0", "work_watts": 70, "link_back_gb_per_s": 1.073741824}]}'
    )
    monkeypatch.setenv(MACHINE_VARIABLE, str(path))
    assert main(["doctor", model]) == 0
    rows = rows_of(capsys.readouterr().out)
    assert rows["energy"][-1] == "profile"
    assert not any(source in rows["energy"][0] for source in ("rapl", "battery"))
    assert rows["power, PC"] == ["90 W", "profile"]
    assert rows["power, beside processor"] == ["30.5 W", "profile"]
    assert rows["drive readers"] == ["2", "profile"]
    assert rows["cuda:0 power"] == ["70 W at work", "profile"]
    assert rows["cuda:0 link back"] == ["1.00 GiB/s", "profile"]
    assert rows["drive energy"] == ["0.7 J for 1 GB read", "profile"]


@pytest.mark.parametrize(
    ("stated", "told", "method"),
    [
        ({"num_threads": 1}, "1 core, 1 thread", "profile"),
        ({"instruction_set": "portable"}, "", "portable, profile"),
        ({"num_physical_cores": 3}, "3 cores, 3 threads", "profile"),
    ],
)
def test_doctor_tells_that_a_person_states_cores_and_instructions(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
    stated: dict[str, object],
    told: str,
    method: str,
) -> None:
    path = tmp_path / "machine.json"
    path.write_text(json.dumps(stated))
    monkeypatch.setenv(MACHINE_VARIABLE, str(path))
    assert main(["doctor", str(tmp_path)]) == 0
    rows = rows_of(capsys.readouterr().out)
    assert rows["processor"][0].endswith(told)
    assert rows["processor"][-1].endswith(method)


@pytest.mark.parametrize(
    ("age_s", "text"),
    [
        (0.0, "just now"),
        (59.0, "just now"),
        (61.0, "1 minute ago"),
        (7300.0, "2 hours ago"),
        (86_400.0 * 40, "40 days ago"),
    ],
)
def test_age_of_a_figure_is_told_in_words(age_s: float, text: str) -> None:
    assert age_text(age_s) == text


def test_doctor_tells_why_a_link_is_not_measured_and_when_it_is_tried_again() -> None:
    device = DeviceReport(
        device="cuda:0",
        name="New Card",
        total_bytes=GIB,
        free_bytes=GIB,
        link_problem="no answer in 6 s",
    )
    (row,) = (row for row in device_rows(device) if row[0] == "cuda:0 link")
    assert row[1:] == (
        "not measured",
        "no answer in 6 s; tried again after a day, and when a model is loaded there",
    )


def test_doctor_tells_who_holds_a_card_and_what_it_shares() -> None:
    device = DeviceReport(
        device="amd:0",
        name="APU",
        total_bytes=GIB,
        free_bytes=GIB,
        held_by=[
            MemoryHolder(name="game", process_id=7, held_bytes=GIB // 2),
            MemoryHolder(name="desktop", process_id=8, held_bytes=None),
        ],
        shared_bytes=14 * GIB,
    )
    rows = list(device_rows(device))
    held = [row[1] for row in rows if row[0] == "amd:0 held by"]
    assert held == ["game (7), 512.0 MiB", "desktop (8), size not told"]
    assert ("amd:0 may use", "14.00 GiB of the RAM, counted as RAM alone", "amdgpu") in rows
