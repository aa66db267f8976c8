"""What is assumed beside what is measured."""

import pytest

from runtime.hardware.energy_terms import PC_WATTS, REST_WATTS, EnergyTerms, Work, assumed_parts
from runtime.protocol.values import EnergyPart

WORK = Work(
    seconds=10, drive_bytes=3_000_000_000, ram_bytes=50_000_000_000, link_bytes=10_000_000_000
)


def measured(*sources: str) -> list[EnergyPart]:
    return [EnergyPart(source=source, joules=100, is_measured=True) for source in sources]


def joules(parts: list[EnergyPart]) -> dict[str, float]:
    assert not any(part.is_measured for part in parts)
    return {part.source: part.joules for part in parts}


def test_assumed_parts_without_a_counter_are_all_terms() -> None:
    assert joules(assumed_parts([], WORK)) == pytest.approx(
        {
            "assumed-watts": 10 * PC_WATTS,
            "drive-reads": 3.0,
            "ram-reads": 60 * 0.074,
            "link-copies": 10 * 0.066,
        }
    )


def test_assumed_parts_beside_a_processor_counter_are_the_rest() -> None:
    parts = joules(assumed_parts(measured("rapl:package-0"), WORK))
    assert parts["assumed-watts"] == 10 * REST_WATTS
    assert "ram-reads" in parts


def test_assumed_parts_beside_a_memory_counter_leave_ram_out() -> None:
    parts = joules(assumed_parts(measured("rapl:package-0", "rapl:dram-0"), WORK))
    assert parts.keys() == {"assumed-watts", "drive-reads", "link-copies"}


def test_assumed_parts_beside_a_card_still_assume_the_pc() -> None:
    assert joules(assumed_parts(measured("nvml:0"), WORK))["assumed-watts"] == 10 * PC_WATTS


def test_assumed_parts_beside_the_battery_are_none() -> None:
    assert assumed_parts(measured("battery"), WORK) == []


def test_assumed_parts_use_what_a_person_knows() -> None:
    assert joules(assumed_parts([], Work(seconds=2), EnergyTerms(pc_watts=150))) == {
        "assumed-watts": 300
    }
    beside = joules(
        assumed_parts(measured("rapl:package-0"), Work(seconds=2), EnergyTerms(pc_watts=10))
    )
    assert beside == {"assumed-watts": 20}
    stated = EnergyTerms(pc_watts=150, rest_watts=40, drive_j_per_gb=2.0)
    read = Work(seconds=2, drive_bytes=3_000_000_000)
    assert joules(assumed_parts(measured("rapl:package-0"), read, stated)) == {
        "assumed-watts": 80,
        "drive-reads": 6.0,
    }
    assert joules(assumed_parts([], read, stated))["assumed-watts"] == 300
    assert assumed_parts([], Work(seconds=0)) == []
