import pytest

from runtime.generate.energy import ASSUMED_WATTS, REST_WATTS, estimate_energy
from runtime.protocol.values import EnergyPart


def measured(source: str, joules: float) -> EnergyPart:
    return EnergyPart(source=source, joules=joules, is_measured=True)


def test_energy_nothing_measured_charges_assumed_watts_and_reads() -> None:
    estimate = estimate_energy([], seconds=10.0, drive_bytes_read=3_000_000_000)

    assert {part.source: part.joules for part in estimate.parts} == {
        "assumed-watts": 10 * ASSUMED_WATTS,
        "drive-reads": 3.0,
    }
    assert estimate.total_j == 10 * ASSUMED_WATTS + 3.0
    assert not any(part.is_measured for part in estimate.parts)


def test_energy_processor_measured_assumes_the_rest_of_the_pc() -> None:
    parts = [measured("rapl:package-0", 50.0), measured("rapl:dram-0", 5.0)]

    estimate = estimate_energy(parts, seconds=2.0, drive_bytes_read=0)

    assert estimate.total_j == pytest.approx(55.0 + 2 * REST_WATTS)
    assert [part.source for part in estimate.parts if part.is_measured] == [
        "rapl:package-0",
        "rapl:dram-0",
    ]


def test_energy_battery_measured_assumes_nothing() -> None:
    estimate = estimate_energy([measured("battery", 80.0)], 2.0, 5_000_000_000)

    assert estimate.total_j == 80.0
    assert len(estimate.parts) == 1
