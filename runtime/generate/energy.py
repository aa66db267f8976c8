"""What an answer cost in energy: measured where the system tells, estimated for the rest.

The whole machine is charged for the time the answer took, because on a PC the seconds cost more
than the reads; reads from the drive are added by a price per gigabyte.
"""

import dataclasses
from collections.abc import Callable
from pathlib import Path

from runtime.protocol.values import EnergyEstimate, EnergyPart

DRIVE_J_PER_GB = 1.0
"""Energy of reading a gigabyte from a solid-state drive; published figures are 0.7 to 2.2."""
ASSUMED_WATTS = 65.0
"""Power of a PC at work where nothing measures it."""
REST_WATTS = 25.0
"""Power of everything beside the processor package where only that is measured."""

_RAPL_FOLDER = Path("/sys/class/powercap/intel-rapl:0")

ReadJoules = Callable[[], float | None]
"""Returns the processor's energy counter in joules, or None if it cannot be read."""


@dataclasses.dataclass(frozen=True, slots=True)
class EnergyStart:
    """The counter's value when an answer began."""

    package_j: float | None


class EnergyMeter:
    """Estimates the energy of an answer from its seconds and its reads."""

    def __init__(self, read_package_j: ReadJoules | None = None) -> None:
        self._read_package_j = read_package_j or RaplCounter()

    def start(self) -> EnergyStart:
        """Return what a later ``estimate`` needs to know of now."""
        return EnergyStart(self._read_package_j())

    def estimate(self, since: EnergyStart, seconds: float, drive_bytes_read: int) -> EnergyEstimate:
        """Return the energy since ``since``, part by part."""
        package_j = self._read_package_j()
        parts: list[EnergyPart] = []
        if since.package_j is not None and package_j is not None and package_j > since.package_j:
            joules = package_j - since.package_j
            parts.append(EnergyPart(source="rapl:package", joules=joules, is_measured=True))
            watts = REST_WATTS
        else:
            watts = ASSUMED_WATTS
        parts.append(EnergyPart(source="assumed-watts", joules=watts * seconds, is_measured=False))
        drive_j = drive_bytes_read / 1e9 * DRIVE_J_PER_GB
        parts.append(EnergyPart(source="drive-reads", joules=drive_j, is_measured=False))
        return EnergyEstimate(total_j=sum(part.joules for part in parts), parts=parts)


class RaplCounter:
    """Linux' energy counter of the first processor package, made to grow for ever.

    The kernel's counter starts again at zero when it is full.
    """

    def __init__(self, folder: Path = _RAPL_FOLDER) -> None:
        self._energy_file = folder / "energy_uj"
        self._range_uj = _read_number(folder / "max_energy_range_uj")
        self._last_uj = 0
        self._full_turns = 0

    def __call__(self) -> float | None:
        """Return joules, or None where the file cannot be read."""
        now_uj = _read_number(self._energy_file)
        if now_uj is None or self._range_uj is None:
            return None
        if now_uj < self._last_uj:
            self._full_turns += 1
        self._last_uj = now_uj
        return (self._full_turns * self._range_uj + now_uj) / 1e6


def _read_number(file: Path) -> int | None:
    """Return the whole number in a file, or None."""
    try:
        return int(file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
