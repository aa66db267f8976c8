"""What an answer cost in energy: measured where the system tells, estimated for the rest.

The whole PC is charged for the time the answer took, because at home the seconds cost more than
the reads; reads from the drive are added at a price per gigabyte.
"""

from collections.abc import Sequence

from runtime.protocol.values import EnergyEstimate, EnergyPart

DRIVE_J_PER_GB = 1.0
"""Energy of reading a gigabyte from a solid-state drive; published figures are 0.7 to 2.2."""
ASSUMED_WATTS = 65.0
"""Power of a PC at work where nothing measures it."""
REST_WATTS = 25.0
"""Power of everything beside processor and memory where only these are measured."""
BATTERY = "battery"
"""Source that measures the whole PC."""


def estimate_energy(
    measured: Sequence[EnergyPart], seconds: float, drive_bytes_read: int
) -> EnergyEstimate:
    """Return the energy of ``seconds`` of work, part by part.

    What ``measured`` leaves out is assumed: the whole PC, or what is beside the processor; a
    battery leaves out nothing.
    """
    parts = list(measured)
    if all(part.source != BATTERY for part in parts):
        watts = REST_WATTS if parts else ASSUMED_WATTS
        drive_j = drive_bytes_read / 1e9 * DRIVE_J_PER_GB
        parts += [
            EnergyPart(source="assumed-watts", joules=watts * seconds, is_measured=False),
            EnergyPart(source="drive-reads", joules=drive_j, is_measured=False),
        ]
    return EnergyEstimate(total_j=sum(part.joules for part in parts), parts=parts)
