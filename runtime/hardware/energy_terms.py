"""Energy that nothing measures: what is assumed for time and for bytes moved. Pure.

Where the figures come from is in ``docs/decisions/0053-energy.md``.
"""

import dataclasses
from collections.abc import Sequence

from runtime.protocol.values import EnergyPart

PC_WATTS = 65.0
"""Power of a PC at work where nothing measures it."""
REST_WATTS = 25.0
"""Power of everything beside processor and memory where the processor is measured."""
CARD_REST_WATTS = 20.0
"""Power of a graphics card with a model in its memory while it waits; published figures are 15 to
40."""
CARD_WORK_WATTS = 200.0
"""Power of a graphics card while it reads its memory at full rate: cards of 8 to 24 GB are built
for 130 to 350."""
DRIVE_J_PER_GB = 1.0
"""Reading from a solid-state drive; published figures are 0.7 to 2.2."""
RAM_J_PER_GB = 0.074
"""Reading DDR5 memory."""
LINK_J_PER_GB = 0.066
"""The way to a device and the writing of its memory, without the reading of RAM."""

COUNTER = "rapl:"
"""How the names of the processor's counters begin."""
BATTERY = "battery"
WATTS = "assumed-watts"
DRIVE = "drive-reads"
RAM = "ram-reads"
LINK = "link-copies"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class EnergyTerms:
    """What is assumed of this PC's energy, and which of its counters count."""

    pc_watts: float = PC_WATTS
    """Power of the whole PC at work, at the socket, without its graphics card."""
    rest_watts: float | None = None
    """Power of everything beside processor and memory; None takes ``REST_WATTS``, or the power of
    the PC where that is less."""
    drive_j_per_gb: float = DRIVE_J_PER_GB
    sources: frozenset[str] | None = None
    """Which counters of the processor count, and whether the battery does; None: all. Cards always
    do, since nothing is assumed in their place."""

    def counts(self, source: str) -> bool:
        """Whether a counter counts."""
        return self.sources is None or source in self.sources


ASSUMED = EnergyTerms()
"""Where nobody states anything."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What was done in a stretch of time."""

    seconds: float
    drive_bytes: int = 0
    """Read from the drive."""
    ram_bytes: int = 0
    """Weights that the processor read from RAM."""
    link_bytes: int = 0
    """Copied to a device, which reads them from RAM too."""


def assumed_parts(
    measured: Sequence[EnergyPart], work: Work, assumed: EnergyTerms = ASSUMED
) -> list[EnergyPart]:
    """Return the terms that ``measured`` leaves out; terms of nothing moved are left out too.

    A battery measures the whole PC, so nothing is assumed beside it.
    """
    sources = {part.source for part in measured}
    if BATTERY in sources:
        return []
    is_processor_measured = any(source.startswith("rapl:package") for source in sources)
    is_ram_measured = any(source.startswith("rapl:dram") for source in sources)
    watts = assumed.pc_watts
    if is_processor_measured:
        rest = assumed.rest_watts
        watts = min(watts, REST_WATTS) if rest is None else rest
    ram_bytes = 0 if is_ram_measured else work.ram_bytes + work.link_bytes
    terms = {
        WATTS: watts * work.seconds,
        DRIVE: work.drive_bytes / 1e9 * assumed.drive_j_per_gb,
        RAM: ram_bytes / 1e9 * RAM_J_PER_GB,
        LINK: work.link_bytes / 1e9 * LINK_J_PER_GB,
    }
    return [
        EnergyPart(source=source, joules=joules, is_measured=False)
        for source, joules in terms.items()
        if joules > 0
    ]
