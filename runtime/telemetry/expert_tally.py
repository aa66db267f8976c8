"""What each expert does and where it lies, kept so that the hot loop pays next to nothing."""

import array
import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from runtime.protocol.telemetry import ExpertMap

IN_VRAM, IN_RAM, ON_DRIVE = range(3)
FADE_S = 30.0
"""After so long an expert's uses count a third of what they did."""
_MOST = 255
_STEPS_PER_DOUBLING = 16


class ExpertTally:
    """Uses since the engine was made, and the hottest tier, of every expert of every MoE layer.

    Experts are numbered layer after layer: ``position x num_experts + expert``, where the position
    of a layer counts MoE layers alone.

    Threads: uses are written by the engine thread, tiers by it and by readers, one byte at a time;
    any thread reads.
    """

    def __init__(self, num_layers: int, num_experts: int, bits: int) -> None:
        self.num_layers = num_layers
        self.num_experts = num_experts
        self.bits = bits
        self.uses = array.array("Q", bytes(8 * num_layers * num_experts))
        self.tiers = bytearray([ON_DRIVE]) * (num_layers * num_experts)

    def note_uses(self, first: int, experts: Iterable[int]) -> None:
        """Count one more use of some experts of the layer whose first expert has this number."""
        uses = self.uses
        for expert in experts:
            uses[first + expert] += 1


class UseFader:
    """Turns growing counts of uses into uses of the last minute or so.

    Threads: used by the telemetry thread alone.
    """

    def __init__(self, tally: ExpertTally) -> None:
        self._tally = tally
        self._before = _counts(tally)
        self._faded = np.zeros(len(self._before), np.float32)

    def step(self, interval_s: float) -> ExpertMap:
        """Let an interval pass; return the complete map afterwards."""
        tally = self._tally
        now = _counts(tally)
        self._faded *= np.float32(math.exp(-interval_s / FADE_S))
        self._faded += (now - self._before).astype(np.float32)
        self._before = now
        levels = np.rint(_STEPS_PER_DOUBLING * np.log2(1 + self._faded))
        return ExpertMap(
            num_layers=tally.num_layers,
            num_experts=tally.num_experts,
            use=np.minimum(levels, _MOST).astype(np.uint8).tobytes(),
            tier=bytes(tally.tiers),
            bits=bytes([tally.bits]) * len(now),
        )


def _counts(tally: ExpertTally) -> npt.NDArray[np.uint64]:
    """Return the counts of now as numbers of their own."""
    return np.frombuffer(tally.uses, np.uint64).copy()
