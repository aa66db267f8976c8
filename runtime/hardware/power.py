"""Energy that the system itself measures: counters of processor and cards, else the battery.

A processor's counter starts again at zero when it is full, after about an hour of full load; one
start is seen and added, more between ``start`` and ``stop`` are not.
"""

import dataclasses
from collections.abc import Mapping

from runtime.hardware.energy_terms import ASSUMED, BATTERY, COUNTER, EnergyTerms
from runtime.hardware.gpu_energy import GpuEnergy
from runtime.hardware.profile import profile_of
from runtime.hardware.system_files import SystemFiles
from runtime.protocol.values import EnergyPart

_RAPL_FOLDER = "/sys/class/powercap"
_SUPPLY_FOLDER = "/sys/class/power_supply"
_COUNTED = ("package-", "dram")
"""Domains that do not contain each other; cores are part of a package, ``psys`` of everything."""


@dataclasses.dataclass(frozen=True, slots=True)
class EnergyReading:
    """All counters at one moment, in microjoules by source, and what the battery holds."""

    counters_uj: dict[str, int]
    battery_uj: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class _Domain:
    source: str
    file: str
    range_uj: int


class EnergyMeter:
    """Measures the energy between two moments.

    The battery counts only where no processor counter can be read, because it feeds the processor
    too; and only while it alone feeds the PC. Then it stands for the cards as well.

    ``terms`` say what is assumed beside what is measured, and which counters count.

    Threads: any may call ``read`` and ``between``; ``start`` and ``stop`` belong to one.
    """

    def __init__(
        self,
        files: SystemFiles | None = None,
        gpus: GpuEnergy | None = None,
        *,
        terms: EnergyTerms = ASSUMED,
    ) -> None:
        self.terms = terms
        self._files = files or SystemFiles()
        self._gpus = gpus or GpuEnergy()
        self._domains = {
            domain.source: domain for domain in self._find_domains() if terms.counts(domain.source)
        }
        self._start: EnergyReading | None = None

    @property
    def sources(self) -> list[str]:
        """Names of what can be measured now, for the report of this PC."""
        reading = self.read()
        if reading.battery_uj is not None and not self._domains.keys() & reading.counters_uj.keys():
            return [BATTERY]
        return list(reading.counters_uj)

    @property
    def choosable(self) -> list[str]:
        """Names of what is there now and of which a person may say whether it counts."""
        reading = self.read()
        battery = [] if reading.battery_uj is None else [BATTERY]
        return [source for source in self._domains if source in reading.counters_uj] + battery

    def start(self) -> None:
        """Remember the counters of now."""
        self._start = self.read()

    def stop(self) -> list[EnergyPart]:
        """Return the energy since ``start`` by source; empty where nothing can be measured."""
        start, self._start = self._start, None
        return [] if start is None else self.between(start, self.read())

    def read(self) -> EnergyReading:
        """Return the counters of now; those that may not be read are left out."""
        counters = {
            source: value
            for source, domain in self._domains.items()
            if (value := self._files.number(domain.file)) is not None
        }
        return EnergyReading(counters | self._gpus.read(), self._battery_uj())

    def between(self, start: EnergyReading, stop: EnergyReading) -> list[EnergyPart]:
        """Return the energy between two readings by source."""
        parts = []
        for source, before in start.counters_uj.items():
            if source not in stop.counters_uj:
                continue
            used = stop.counters_uj[source] - before
            if used < 0 and source in self._domains:
                used += self._domains[source].range_uj
            parts.append(EnergyPart(source=source, joules=max(0, used) / 1e6, is_measured=True))
        is_processor_measured = any(part.source in self._domains for part in parts)
        if is_processor_measured or start.battery_uj is None or stop.battery_uj is None:
            return parts
        used = start.battery_uj - stop.battery_uj
        # A battery tells in steps; within the first one nothing is known.
        if used <= 0:
            return parts
        return [EnergyPart(source=BATTERY, joules=used / 1e6, is_measured=True)]

    def close(self) -> None:
        """Close the library of the cards; may be called twice."""
        self._gpus.close()

    def _find_domains(self) -> list[_Domain]:
        found = []
        for entry in self._files.folders(_RAPL_FOLDER, "intel-rapl:*"):
            folder = f"{_RAPL_FOLDER}/{entry}"
            name = self._files.text(f"{folder}/name").strip()
            range_uj = self._files.number(f"{folder}/max_energy_range_uj")
            if name.startswith(_COUNTED) and range_uj:
                package = entry.split(":")[1]
                label = name if name.startswith("package-") else f"{name}-{package}"
                found.append(_Domain(f"{COUNTER}{label}", f"{folder}/energy_uj", range_uj))
        return found

    def _battery_uj(self) -> int | None:
        """Return what the discharging batteries hold together, None if none does or may count."""
        if not self.terms.counts(BATTERY):
            return None
        held = []
        for entry in self._files.folders(_SUPPLY_FOLDER, "*"):
            folder = f"{_SUPPLY_FOLDER}/{entry}"
            if self._files.text(f"{folder}/status").strip() != "Discharging":
                continue
            energy_uwh = self._files.number(f"{folder}/energy_now")
            if energy_uwh is None:
                charge_uah = self._files.number(f"{folder}/charge_now")
                volts_uv = self._files.number(f"{folder}/voltage_now")
                if charge_uah is None or volts_uv is None:
                    continue
                energy_uwh = charge_uah * volts_uv // 1_000_000
            held.append(energy_uwh * 3600)
        return sum(held) if held else None


def stated_terms(environment: Mapping[str, str]) -> EnergyTerms:
    """Return what the machine profile states of energy; what it does not state is assumed."""
    profile = profile_of(environment)
    if profile is None:
        return ASSUMED
    watts, drive = profile.pc_watts, profile.drive_j_per_gb
    return EnergyTerms(
        pc_watts=ASSUMED.pc_watts if watts is None else watts,
        rest_watts=profile.rest_watts,
        drive_j_per_gb=ASSUMED.drive_j_per_gb if drive is None else drive,
        sources=profile.energy_sources,
    )
