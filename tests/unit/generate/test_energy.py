from pathlib import Path

from runtime.generate.energy import ASSUMED_WATTS, REST_WATTS, EnergyMeter, RaplCounter


def test_energy_without_counter_charges_assumed_watts_and_reads() -> None:
    meter = EnergyMeter(lambda: None)

    estimate = meter.estimate(meter.start(), seconds=10.0, drive_bytes_read=3_000_000_000)

    assert {part.source: part.joules for part in estimate.parts} == {
        "assumed-watts": 10 * ASSUMED_WATTS,
        "drive-reads": 3.0,
    }
    assert estimate.total_j == 10 * ASSUMED_WATTS + 3.0
    assert not any(part.is_measured for part in estimate.parts)


def test_energy_with_counter_measures_the_processor_and_assumes_the_rest() -> None:
    values = iter([100.0, 150.0])
    meter = EnergyMeter(lambda: next(values))

    estimate = meter.estimate(meter.start(), seconds=2.0, drive_bytes_read=0)

    measured = [part for part in estimate.parts if part.is_measured]
    assert [(part.source, part.joules) for part in measured] == [("rapl:package", 50.0)]
    assert estimate.total_j == 50.0 + 2 * REST_WATTS


def test_rapl_counter_that_starts_again_keeps_growing(tmp_path: Path) -> None:
    (tmp_path / "max_energy_range_uj").write_text("1000000\n")
    energy = tmp_path / "energy_uj"
    energy.write_text("900000\n")
    counter = RaplCounter(tmp_path)
    before = counter()
    energy.write_text("100000\n")
    after = counter()

    assert (before, after) == (0.9, 1.1)


def test_rapl_counter_that_is_missing_or_broken_gives_none(tmp_path: Path) -> None:
    assert RaplCounter(tmp_path)() is None
    (tmp_path / "max_energy_range_uj").write_text("1000000\n")
    (tmp_path / "energy_uj").write_text("many\n")
    assert RaplCounter(tmp_path)() is None
