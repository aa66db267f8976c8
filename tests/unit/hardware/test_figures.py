"""Figures of a PC beside those that are stated, and the file in which they are."""

import json
from pathlib import Path
from typing import Any

import pytest

from runtime.errors import LarderError
from runtime.hardware.energy_terms import CARD_WORK_WATTS
from runtime.hardware.figures import (
    figures_of,
    require_reachable,
    state_figure,
    with_figure,
)
from runtime.hardware.machine import apply_profile
from runtime.hardware.power import stated_terms
from runtime.hardware.profile import MACHINE_VARIABLE, checked_profile, load_profile
from runtime.plan.cost import rates_of
from runtime.protocol.errors import ErrorCode
from runtime.protocol.figure_messages import Figure, FigureUnit
from runtime.protocol.machine import DeviceReport, DriveReport, MachineReport, Measured

GIB = 1 << 30
_TEXTS = {"instruction_set": "avx2", "energy_sources": "none"}


def own(**changes: Any) -> MachineReport:
    values: dict[str, Any] = {
        "operating_system": "some",
        "cpu_name": "some",
        "num_physical_cores": 6,
        "num_logical_cores": 12,
        "instruction_set": "avx2",
        "ram_total": Measured(value=32 * GIB, method="psutil"),
        "ram_available": Measured(value=20 * GIB, method="psutil"),
        "ram_limit": None,
        "ram_read_bytes_per_s": Measured(value=29.5e9, method="measured", age_s=60.0),
        "devices": [DeviceReport(device="cuda:0", name="A card", total_bytes=GIB, free_bytes=1)],
        "drives": [
            DriveReport(
                folder="/m",
                file_system="ext4",
                free_bytes=GIB,
                total_bytes=2 * GIB,
                read_bytes_per_s=Measured(value=3e9, method="uncached reads", age_s=5.0),
            )
        ],
        "kernels": "some",
    }
    return MachineReport(**values | changes)


def by_name(report: MachineReport, document: dict[str, Any]) -> dict[str, Figure]:
    return {figure.name: figure for figure in figures_of(report, document)}


def test_figures_are_found_with_method_and_age_beside_what_is_stated() -> None:
    document = {"ram": {"read_gb_per_s": 40}, "cards": [{"device": "cuda:0", "free_gib": 0.5}]}
    figures = by_name(own(), document)
    read = figures["ram.read_gb_per_s"]
    assert read.found == Measured(value=29.5, method="measured", age_s=60.0)
    assert (read.unit, read.stated) == (FigureUnit.GB_PER_S, 40.0)
    assert figures["drive.read_gb_per_s"].found == Measured(
        value=3.0, method="uncached reads", age_s=5.0
    )
    assert figures["ram.limit_gib"].found is None
    assert figures["cards[cuda:0].free_gib"].stated == 0.5
    assert figures["cards[cuda:0].total_gib"].found == Measured(value=1.0, method="A card")
    assert figures["instruction_set"].found_text == "avx2"
    assert figures["num_threads"].unit is FigureUnit.COUNT
    assert figures["pc_watts"].found == Measured(value=65.0, method="assumed")
    assert figures["rest_watts"].found == Measured(value=25.0, method="assumed")
    joules = figures["drive.joules_per_gb"]
    assert (joules.unit, joules.found) == (
        FigureUnit.J_PER_GB,
        Measured(value=1.0, method="assumed"),
    )
    assert (figures["drive.num_readers"].unit, figures["drive.num_readers"].found) == (
        FigureUnit.COUNT,
        None,
    )
    (sources,) = [
        each
        for each in figures_of(own(), {}, ["rapl:package-0", "battery"])
        if each.name == "energy_sources"
    ]
    assert (sources.unit, sources.found_text) == (FigureUnit.TEXT, "rapl:package-0, battery")


def test_link_that_could_not_be_measured_tells_why() -> None:
    hung = DeviceReport(
        device="cuda:0", name="A card", total_bytes=GIB, free_bytes=1, link_problem="no answer"
    )
    figures = by_name(own(devices=[hung]), {})
    told = {name: figure.problem for name, figure in figures.items() if figure.problem}
    assert told == {
        "cards[cuda:0].link_gb_per_s": "no answer",
        "cards[cuda:0].link_back_gb_per_s": "no answer",
    }


def test_figures_of_a_pc_without_card_and_drive_are_fewer() -> None:
    names = set(by_name(own(devices=[], drives=[]), {}))
    assert "ram.total_gib" in names
    assert not any(name.startswith("cards") for name in names)


def test_every_figure_that_is_stated_is_told_again_and_can_be_a_profile() -> None:
    document: dict[str, Any] = {}
    for name, figure in by_name(own(), {}).items():
        value = _TEXTS[name] if figure.unit is FigureUnit.TEXT else 1
        document = with_figure(document, name, value)
    checked_profile(document, "file")
    for figure in figures_of(own(), document):
        assert figure.stated == 1.0 or figure.stated_text == _TEXTS[figure.name], figure.name
    for name in by_name(own(), {}):
        document = with_figure(document, name, None)
    assert document == {}


def test_stating_keeps_what_else_the_file_says() -> None:
    before = {"devices": [{"total_gib": 4}], "ram": {"total_gib": 8, "read_gb_per_s": 2}}
    after = with_figure(before, "ram.read_gb_per_s", None)
    assert after == {"devices": [{"total_gib": 4}], "ram": {"total_gib": 8}}
    assert before["ram"] == {"total_gib": 8, "read_gb_per_s": 2}


def test_a_name_that_no_figure_has_is_refused() -> None:
    for name in ("ram.colour", "cards.total_gib", "nonsense"):
        with pytest.raises(LarderError) as refused:
            with_figure({}, name, 1)
        assert refused.value.code is ErrorCode.SETTING_INVALID


def test_threads_bound_the_cores_that_plans_count_with() -> None:
    def cores(document: dict[str, Any]) -> int:
        return apply_profile(own(), checked_profile(document, "file")).num_physical_cores

    assert cores({"num_threads": 2}) == 2
    assert cores({"num_threads": 40}) == 6
    assert cores({"num_threads": 3, "num_physical_cores": 2}) == 2
    with pytest.raises(LarderError) as refused:
        checked_profile({"num_threads": 5000}, "file")
    assert refused.value.parameters["expected"] == "at most 1024"


def test_instructions_that_the_processor_lacks_are_refused() -> None:
    require_reachable(own(), "ram.total_gib", 1.0)
    require_reachable(own(), "instruction_set", None)
    require_reachable(own(), "instruction_set", "portable")
    require_reachable(own(instruction_set="avx512-vnni"), "instruction_set", "avx512")
    require_reachable(own(instruction_set="neon"), "instruction_set", "portable")
    with pytest.raises(LarderError) as refused:
        require_reachable(own(), "instruction_set", "avx512")
    assert refused.value.parameters["expected"] == "avx2 or portable"


def test_counters_that_this_pc_lacks_are_refused() -> None:
    sources = ["rapl:package-0"]
    for text in ("rapl:package-0", "none", "battery", "battery , rapl:package-0"):
        require_reachable(own(), "energy_sources", text, sources)
    with pytest.raises(LarderError) as refused:
        require_reachable(own(), "energy_sources", "rapl:package-0, rapl:dram-0", sources)
    assert refused.value.parameters == {
        "name": "energy_sources",
        "found": "rapl:dram-0",
        "expected": "rapl:package-0, battery or none",
    }


def test_commas_too_many_are_no_counters() -> None:
    require_reachable(own(), "energy_sources", "battery,")
    with pytest.raises(LarderError) as refused:
        require_reachable(own(), "energy_sources", " ,")
    assert refused.value.parameters["found"] == " ,"


def test_one_instruction_set_alone_is_expected_by_its_name() -> None:
    with pytest.raises(LarderError) as refused:
        require_reachable(own(instruction_set="neon"), "instruction_set", "avx2")
    assert refused.value.parameters["expected"] == "portable"


def test_what_is_stated_of_drive_card_and_energy_is_told_as_stated() -> None:
    document = {
        "drive": {"num_readers": 2, "joules_per_gb": 0.7},
        "rest_watts": 30,
        "energy_sources": "none",
        "cards": [{"device": "cuda:0", "link_back_gb_per_s": 6, "work_watts": 70}],
    }
    before = own()
    assert before.devices[0].link_back_bytes_per_s is None
    report = apply_profile(before, checked_profile(document, "file"))
    (drive,), (card,) = report.drives, report.devices
    assert drive.num_readers == Measured(value=2, method="profile")
    assert drive.joules_per_gb == Measured(value=0.7, method="profile")
    assert report.rest_watts == Measured(value=30, method="profile")
    assert report.energy_method == "profile"
    assert card.link_back_bytes_per_s == Measured(value=6e9, method="profile")
    assert rates_of(report, "/m").energy.drive_j_per_gb == 0.7
    assert rates_of(report, "/elsewhere").energy.drive_j_per_gb == 1.0
    rates = rates_of(report, "/m", card).device
    assert rates is not None
    assert (rates.link_back_bytes_per_s, rates.work_watts) == (6e9, 70)
    assumed = rates_of(before, "/m", before.devices[0]).device
    assert assumed is not None
    assert assumed.work_watts == CARD_WORK_WATTS


def test_stated_watts_are_assumed_of_the_pc_in_answers_and_in_plans(
    tmp_path: Path,
) -> None:
    path = tmp_path / "machine.json"
    path.write_text('{"pc_watts": 130}')
    assert stated_terms({MACHINE_VARIABLE: str(path)}).pc_watts == 130.0
    assert stated_terms({}).pc_watts == 65.0
    stated = apply_profile(own(), load_profile(str(path)))
    rates = rates_of(stated, "/m")
    assert (rates.energy.pc_watts, rates_of(own(), "/m").energy.pc_watts) == (130.0, 65.0)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(MACHINE_VARIABLE, "")
    return tmp_path / "settings" / "machine.json"


def test_stated_figures_are_a_file_that_counts_until_the_last_is_taken_back(place: Path) -> None:
    import os

    state_figure(place, "ram.read_gb_per_s", 40.0)
    state_figure(place, "num_threads", 2)
    assert os.environ[MACHINE_VARIABLE] == str(place)
    profile = load_profile(str(place))
    assert (profile.ram_read_bytes_per_s, profile.num_threads) == (40e9, 2)
    state_figure(place, "ram.read_gb_per_s", None)
    state_figure(place, "num_threads", None)
    assert not place.exists()
    assert MACHINE_VARIABLE not in os.environ
    assert list(place.parent.iterdir()) == []


def test_what_cannot_be_leaves_the_file_as_it_was(place: Path) -> None:
    state_figure(place, "ram.total_gib", 16)
    for name, value in (("ram.total_gib", -1), ("ram.available_gib", 17), ("num_threads", 1.5)):
        with pytest.raises(LarderError) as refused:
            state_figure(place, name, value)
        assert refused.value.code is ErrorCode.SETTING_INVALID
        assert name in str(refused.value.parameters["name"])
    assert json.loads(place.read_text()) == {"ram": {"total_gib": 16}}


def test_a_place_that_cannot_be_written_is_told(place: Path) -> None:
    place.parent.parent.joinpath("settings").write_text("a file")
    with pytest.raises(LarderError) as refused:
        state_figure(place, "ram.total_gib", 16)
    assert refused.value.code is ErrorCode.DISK_NOT_WRITABLE
