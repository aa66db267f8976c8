"""Reads that were only guessed to be needed, and what became of them."""

import dataclasses
from collections.abc import Mapping, Sequence

from runtime.simulate.resources import Drive


@dataclasses.dataclass(frozen=True, slots=True)
class HintOutcomes:
    """What became of the experts that were guessed for the next layer and not resident."""

    useful: int = 0
    """Read before they were needed."""
    late: int = 0
    """Needed while they were being read."""
    wasted: int = 0
    """Read, or being read, and not needed."""
    overtaken: int = 0
    """Not begun when the layer asked for its experts itself."""


class HintLane:
    """A drive with two lanes: demands at once, hints while no demand is being read.

    What was guessed for a layer is kept in a buffer until the layer asks for its experts.
    """

    def __init__(self, drive: Drive, record_bytes: Sequence[Sequence[int]]) -> None:
        """Take the bytes of each expert of each layer."""
        self._drive = drive
        self._record_bytes = record_bytes
        self._layer = -1
        self._asked_s = 0.0
        self._waiting: list[int] = []
        self._reading: dict[int, float] = {}
        self._useful = self._late = self._wasted = self._overtaken = 0

    @property
    def outcomes(self) -> HintOutcomes:
        """What became of all hints so far."""
        return HintOutcomes(self._useful, self._late, self._wasted, self._overtaken)

    def hint(self, layer: int, experts: Sequence[int], at_s: float) -> None:
        """Guess what a layer will ask for next; must come after the demand of the layer before."""
        self._layer = layer
        self._asked_s = at_s
        self._waiting = list(experts)

    def demand(self, layer: int, experts: Sequence[int], at_s: float) -> Mapping[int, float]:
        """Ask for all experts that a layer misses; return when each is there."""
        self._begin_hints(at_s)
        arrivals: dict[int, float] = {}
        guessed = self._reading if self._layer == layer else {}
        for expert in experts:
            if expert in guessed:
                arrivals[expert] = guessed[expert]
                if guessed[expert] <= at_s:
                    self._useful += 1
                else:
                    self._late += 1
            else:
                arrivals[expert] = self._drive.read(at_s, self._record_bytes[layer][expert])
        self._wasted += sum(expert not in arrivals for expert in self._reading)
        self._overtaken += len(self._waiting)
        self._reading = {}
        self._waiting = []
        return arrivals

    def _begin_hints(self, until_s: float) -> None:
        """Begin the guessed reads that find the drive idle before a time."""
        while self._waiting:
            begin_s = max(self._asked_s, self._drive.idle_from_s)
            if begin_s >= until_s:
                return
            expert = self._waiting.pop(0)
            size_bytes = self._record_bytes[self._layer][expert]
            self._reading[expert] = self._drive.read(begin_s, size_bytes)
