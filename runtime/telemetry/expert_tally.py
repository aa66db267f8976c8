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
_NUM_TIERS = 3
_LEAST = 0.01
"""A layer with fewer look-ups than this has faded away."""
_STEPS_PER_DOUBLING = 16


class ExpertTally:
    """Uses since the engine was made, and the hottest tier, of every expert of every MoE layer.

    For each layer it counts too which tiers answered: where an expert lay when it was needed.

    Experts are numbered layer after layer: ``position x num_experts + expert``, where the position
    of a layer counts MoE layers alone.

    Threads: uses are written by the engine thread, tiers by it and by readers, one byte at a time;
    any thread reads.
    """

    def __init__(self, num_layers: int, num_experts: int, bits: int | bytes) -> None:
        """``bits`` are those of a weight: of all experts, or of each."""
        self.num_layers = num_layers
        self.num_experts = num_experts
        num_all = num_layers * num_experts
        self.bits = bits if isinstance(bits, bytes) else bytes([bits]) * num_all
        self.uses = array.array("Q", bytes(8 * num_layers * num_experts))
        self.tiers = bytearray([ON_DRIVE]) * (num_layers * num_experts)
        self.layer_hits = array.array("Q", bytes(8 * _NUM_TIERS * num_layers))

    def note_uses(self, first: int, experts: Iterable[int]) -> None:
        """Count one more use of some experts of the layer whose first expert has this number.

        Called before those that are missing are fetched.
        """
        uses, tiers, hits = self.uses, self.tiers, self.layer_hits
        row = first // self.num_experts * _NUM_TIERS
        for expert in experts:
            at = first + expert
            uses[at] += 1
            hits[row + tiers[at]] += 1


class UseFader:
    """Turns growing counts of uses into uses of the last minute or so.

    Threads: used by the telemetry thread alone.
    """

    def __init__(self, tally: ExpertTally) -> None:
        self._tally = tally
        self._before = _counts(tally.uses)
        self._faded = np.zeros(len(self._before), np.float32)
        self._hits_before = _counts(tally.layer_hits)
        self._faded_hits = np.zeros(len(self._hits_before), np.float32)

    def step(self, interval_s: float) -> ExpertMap:
        """Let an interval pass; return the complete map afterwards."""
        tally = self._tally
        now, hits_now = _counts(tally.uses), _counts(tally.layer_hits)
        fading = np.float32(math.exp(-interval_s / FADE_S))
        self._faded *= fading
        self._faded += (now - self._before).astype(np.float32)
        self._faded_hits *= fading
        self._faded_hits += (hits_now - self._hits_before).astype(np.float32)
        self._before, self._hits_before = now, hits_now
        levels = np.rint(_STEPS_PER_DOUBLING * np.log2(1 + self._faded))
        return ExpertMap(
            num_layers=tally.num_layers,
            num_experts=tally.num_experts,
            use=np.minimum(levels, _MOST).astype(np.uint8).tobytes(),
            tier=bytes(tally.tiers),
            bits=tally.bits,
            layer_hits=_parts(self._faded_hits.reshape(-1, _NUM_TIERS)),
        )


def _parts(hits: npt.NDArray[np.float32]) -> bytes:
    """Return which part of each row's sum its numbers are, in bytes."""
    sums = hits.sum(axis=1, keepdims=True)
    parts = np.divide(_MOST * hits, sums, out=np.zeros_like(hits), where=sums > _LEAST)
    whole: npt.NDArray[np.uint8] = np.rint(parts).astype(np.uint8)
    return whole.tobytes()


def _counts(numbers: "array.array[int]") -> npt.NDArray[np.uint64]:
    """Return the counts of now as numbers of their own."""
    return np.frombuffer(numbers, np.uint64).copy()
