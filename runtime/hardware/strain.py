"""What the machine is put through: bytes written to drives, and how warm its parts are."""

import os
import time
from collections.abc import Callable

from runtime.hardware.drive_kind import drive_file, drive_temperature
from runtime.hardware.gpu_warmth import GpuWarmth
from runtime.hardware.system_files import SystemFiles
from runtime.protocol.telemetry import MachineStrain

LOOK_S = 2.0
"""A sensor is not asked more often, because asking a drive takes it time."""
_SENSORS = "/sys/class/hwmon"
_PROCESSORS = frozenset({"coretemp", "k10temp", "zenpower", "cpu_thermal"})
_CARDS = frozenset({"amdgpu", "radeon", "nouveau", "xe", "i915"})
_SECTOR_BYTES = 512
_SECTORS_WRITTEN = 6
"""Place of the number in a drive's line of counters, from 0."""


class StrainMeter:
    """Reads counters of writing and sensors of warmth; what nothing tells is None.

    Bytes are those since it was made: by this process and what it started, and by all programs to
    the drive of a folder. Of several processors or cards the warmest counts.

    Threads: ``read`` belongs to one; ``close`` must not run beside it.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        files: SystemFiles | None = None,
        clock: Callable[[], float] = time.monotonic,
        gpus: GpuWarmth | None = None,
    ) -> None:
        self._folder = folder
        self._files = files or SystemFiles()
        self._clock = clock
        self._gpus = gpus or GpuWarmth()
        self._own_before = own_bytes_written(self._files)
        self._drive_before = self._drive_bytes()
        self._looked_s: float | None = None
        self._latest = MachineStrain()

    def read(self) -> MachineStrain:
        """Return what is told now, or was a moment ago."""
        now_s = self._clock()
        if self._looked_s is None or now_s - self._looked_s >= LOOK_S:
            self._looked_s = now_s
            self._latest = MachineStrain(
                own_bytes_written=_since(self._own_before, own_bytes_written(self._files)),
                drive_bytes_written=_since(self._drive_before, self._drive_bytes()),
                drive_temperature_c=drive_temperature(self._folder, self._files),
                processor_temperature_c=self._warmest(_PROCESSORS),
                card_temperature_c=_most(self._gpus.read(), self._warmest(_CARDS)),
            )
        return self._latest

    def close(self) -> None:
        """Close the library of the cards; may be called twice."""
        self._gpus.close()

    def _drive_bytes(self) -> int | None:
        """Return what all programs have written to the drive since the system started."""
        words = drive_file(self._folder, "stat", self._files).split()
        if len(words) <= _SECTORS_WRITTEN or not words[_SECTORS_WRITTEN].isdecimal():
            return None
        return int(words[_SECTORS_WRITTEN]) * _SECTOR_BYTES

    def _warmest(self, names: frozenset[str]) -> float | None:
        """Return the highest of the first sensors of parts with one of these names."""
        found: float | None = None
        for entry in self._files.folders(_SENSORS, "hwmon*"):
            folder = f"{_SENSORS}/{entry}"
            if self._files.text(f"{folder}/name").strip() in names:
                told = self._files.number(f"{folder}/temp1_input")
                found = _most(found, None if told is None else told / 1000)
        return found


def own_bytes_written(files: SystemFiles) -> int | None:
    """Return what this process had written to drives, without what it took back in time."""
    counts = files.table("/proc/self/io")
    written = counts.get("write_bytes")
    return None if written is None else written - counts.get("cancelled_write_bytes", 0)


def _since(before: int | None, now: int | None) -> int | None:
    return None if before is None or now is None else max(0, now - before)


def _most(one: float | None, other: float | None) -> float | None:
    return max((each for each in (one, other) if each is not None), default=None)
