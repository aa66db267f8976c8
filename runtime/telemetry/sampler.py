"""Telemetry samples made from counters and gauges, each of the time since the one before."""

import collections
import dataclasses
from collections.abc import Callable, Mapping

from runtime.hardware.energy_terms import Work, assumed_parts
from runtime.hardware.power import EnergyMeter
from runtime.hardware.strain import StrainMeter
from runtime.protocol.plan import MemoryPart
from runtime.protocol.telemetry import HintCount, RateLimits, RuntimeNote, TelemetrySample
from runtime.telemetry.expert_tally import ExpertTally, UseFader
from runtime.telemetry.recorder import Counters


@dataclasses.dataclass(frozen=True, slots=True)
class Gauges:
    """Where a sample reads what the engine thread does not count.

    Threads: any thread may call any of them.
    """

    resident_bytes: Callable[[], int]
    ram_by_kind: Callable[[], Mapping[MemoryPart, int]]
    vram_by_kind: Callable[[], Mapping[MemoryPart, int]]
    """Empty where no device is used."""
    drive_bytes: Callable[[], int]
    """Read from the drive so far, in the background too."""
    link_bytes: Callable[[], int]
    """Copied to the device so far."""
    limits: RateLimits
    energy: EnergyMeter
    strain: StrainMeter


class NoteBox:
    """Notes on their way from any thread to the next sample.

    Threads: any thread puts; the telemetry thread takes.
    """

    def __init__(self) -> None:
        self._notes: collections.deque[RuntimeNote] = collections.deque(maxlen=100)

    def put(self, note: RuntimeNote) -> None:
        """Add a note; of too many that nobody takes the oldest is lost."""
        self._notes.append(note)

    def take(self) -> list[RuntimeNote]:
        """Return and forget all notes."""
        notes = []
        while self._notes:
            notes.append(self._notes.popleft())
        return notes


class Sampler:
    """Makes samples of one loaded model.

    Threads: used by the telemetry thread alone; it reads the engine thread's counters.
    """

    def __init__(
        self, counters: Counters, tally: ExpertTally, gauges: Gauges, notes: NoteBox
    ) -> None:
        self._counters = counters
        self._gauges = gauges
        self._notes = notes
        self._fader = UseFader(tally)
        self._earlier = counters.copy()
        self._drive_bytes = gauges.drive_bytes()
        self._link_bytes = gauges.link_bytes()
        self._energy_reading = gauges.energy.read()

    def sample(self, interval_s: float) -> TelemetrySample:
        """Return what happened since the previous call, ``interval_s`` ago."""
        gauges = self._gauges
        now = self._counters.copy()
        added = now.since(self._earlier)
        self._earlier = now
        drive_before, self._drive_bytes = self._drive_bytes, gauges.drive_bytes()
        link_before, self._link_bytes = self._link_bytes, gauges.link_bytes()
        worked_s = min(interval_s, added.prefill_s + added.decode_s)
        energy_before, self._energy_reading = self._energy_reading, gauges.energy.read()
        measured = gauges.energy.between(energy_before, self._energy_reading)
        work = Work(
            seconds=interval_s,
            drive_bytes=self._drive_bytes - drive_before,
            ram_bytes=added.ram_bytes_read,
            link_bytes=self._link_bytes - link_before,
        )
        vram_by_kind = _named(gauges.vram_by_kind())
        has_device = bool(vram_by_kind)
        return TelemetrySample(
            interval_s=interval_s,
            num_dropped=0,
            num_tokens=added.num_decoded_tokens,
            decode_tokens_per_s=added.decode_tokens_per_s,
            tiers=added.tiers(has_device=has_device),
            drive_bytes_read=work.drive_bytes,
            seconds=added.seconds(worked_s, has_device=has_device),
            resident_bytes=gauges.resident_bytes(),
            ram_by_kind=_named(gauges.ram_by_kind()),
            vram_by_kind=vram_by_kind,
            link_bytes=work.link_bytes,
            ram_bytes_read=added.ram_bytes_read,
            limits=gauges.limits,
            energy=[*measured, *assumed_parts(measured, work, gauges.energy.terms)],
            hints=HintCount(
                useful=added.hints_useful, late=added.hints_late, wasted=added.hints_wasted
            ),
            strain=gauges.strain.read(),
            experts=self._fader.step(interval_s),
            notes=self._notes.take(),
        )

    def close(self) -> None:
        """Give back what gauges hold open; no sample is made afterwards."""
        self._gauges.strain.close()


def _named(by_kind: Mapping[MemoryPart, int]) -> dict[str, int]:
    return {kind.value: num_bytes for kind, num_bytes in by_kind.items()}
