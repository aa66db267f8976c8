"""Energy that the system itself measures: counters of processor and cards, else the battery.

A processor's counter starts again at zero when it is full, after about an hour of full load; one
start is seen and added, more between ``start`` and ``stop`` are not.
"""

import dataclasses
from collections.abc import Mapping

from runtime.hardware.energy_terms import PC_WATTS
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

    ``pc_watts`` is what is assumed of the whole PC beside what is measured.

    Threads: any may call ``read`` and ``between``; ``start`` and ``stop`` belong to one.
    """

    def __init__(
        self,
        files: SystemFiles | None = None,
        gpus: GpuEnergy | None = None,
        *,
        pc_watts: float = PC_WATTS,
    ) -> None:
        self.pc_watts = pc_watts
        self._files = files or SystemFiles()
        self._gpus = gpus or GpuEnergy()
        self._domains = {domain.source: domain for domain in self._find_domains()}
        self._start: EnergyReading | None = None

    @property
    def sources(self) -> list[str]:
        """Names of what can be measured now, for the report of this PC."""
        reading = self.read()
        if reading.battery_uj is not None and not self._domains.keys() & reading.counters_uj.keys():
            return ["battery"]
        return list(reading.counters_uj)

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
        return [EnergyPart(source="battery", joules=used / 1e6, is_measured=True)]

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
                found.append(_Domain(f"rapl:{label}", f"{folder}/energy_uj", range_uj))
        return found

    def _battery_uj(self) -> int | None:
        """Return what the discharging batteries hold together, None if none discharges."""
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


def stated_watts(environment: Mapping[str, str]) -> float:
    """Return the power of the PC that the machine profile states, else the assumed one."""
    profile = profile_of(environment)
    stated = profile.pc_watts if profile is not None else None
    return PC_WATTS if stated is None else stated
