"""Experts that are read because the next layer will probably ask for them."""

from collections.abc import Callable, Collection, Sequence

from runtime.residency.lanes import ReadLanes
from runtime.residency.lent_reads import LentRead, begin_reads
from runtime.residency.places import RamPlaces
from runtime.telemetry.recorder import Counters

Spare = Callable[[int], tuple[int, int]]
"""Returns how many slots for a layer there are that nobody keeps, and how many of them are free."""
NUM_CLASSES = 4
"""Guesses are judged in quarters, those most sure of first."""
MIN_PRECISION = 0.8
"""Share of a quarter's guesses that must come true for it to be read."""
_NEW_SHARE = 0.05


class Trust:
    """What share of guesses came true, for each quarter of them; what is never read counts too.

    A quarter has to earn its reads: it begins just below what is demanded.
    """

    def __init__(self, min_precision: float = MIN_PRECISION) -> None:
        self._min_precision = min_precision
        self._precision = [0.99 * min_precision] * NUM_CLASSES

    def is_worth(self, quarter: int) -> bool:
        """Whether guesses of a quarter are read."""
        return self._precision[quarter] >= self._min_precision

    def learn(self, quarter: int, num_true: int, num_guessed: int) -> None:
        """Take what became of some guesses into account."""
        share = num_true / num_guessed
        self._precision[quarter] += _NEW_SHARE * (share - self._precision[quarter])


class Hints:
    """Guesses for one layer at a time, read from free slots while nobody waits for the drive.

    At most half of the slots of a size that nobody keeps are used, so that whoever computes always
    has some.
    When the layer asks itself, guesses that came true are handed to it, those not begun are
    forgotten, and the slots of wrong ones come back as soon as they were read.

    Threads: used by the engine thread.
    """

    def __init__(
        self, lanes: ReadLanes, places: RamPlaces, counters: Counters, spare: Spare
    ) -> None:
        self.trust = Trust()
        self._spare = spare
        self._lanes = lanes
        self._places = places
        self._counters = counters
        self._layer = -1
        self._guesses: dict[int, int] = {}
        self._waiting: list[int] = []
        self._read: dict[int, LentRead] = {}
        self._leaving: list[LentRead] = []

    def guess(self, layer: int, experts: Sequence[int], resident: Collection[int]) -> None:
        """Expect a layer to ask for experts, the surest first; begin to read absent ones."""
        self._forget()
        self._layer = layer
        per_quarter = max(1, -(-len(experts) // NUM_CLASSES))
        self._guesses = {
            expert: place // per_quarter
            for place, expert in enumerate(experts)
            if expert not in resident
        }
        self._waiting = [
            expert for expert, quarter in self._guesses.items() if self.trust.is_worth(quarter)
        ]
        self.begin()

    def begin(self) -> None:
        """Let waiting guesses be read, as far as slots are free."""
        self._collect()
        if not self._waiting:
            return
        num_spare, num_free = self._spare(self._layer)
        held = (*self._read.values(), *self._leaving)
        num_held = sum(self._places.is_for(self._layer, read.slot) for read in held)
        number = min(len(self._waiting), num_free // 2, num_spare // 2 - num_held)
        if number <= 0:
            return
        experts, self._waiting = self._waiting[:number], self._waiting[number:]
        for read in begin_reads(self._layer, experts, self._places, self._lanes.hint):
            self._read[read.expert] = read

    def claim(self, layer: int, missing: Sequence[int]) -> list[LentRead]:
        """Return the guesses that a layer misses and that were read or are being read.

        Everything else is forgotten; what was guessed is compared with what is missed.
        """
        if self._layer < 0:
            return []
        wanted: Collection[int] = frozenset(missing) if layer == self._layer else ()
        if layer == self._layer:
            self._judge(wanted)
        for hint in self._read.values():
            hint.reads.abandon()
        claimed = [
            hint
            for hint in self._read.values()
            if hint.expert in wanted and hint.reads.is_usable(hint.number)
        ]
        for hint in claimed:
            del self._read[hint.expert]
            is_useful = hint.reads.is_done(hint.number)
            self._counters.hints_useful += is_useful
            self._counters.hints_late += not is_useful
        self._forget()
        return claimed

    def withdraw(self) -> None:
        """Forget everything and wait for what is being read, so that all slots are back."""
        self._forget()
        for hint in self._leaving:
            hint.reads.wait(hint.number)
        self._collect()

    def _judge(self, wanted: Collection[int]) -> None:
        for quarter in range(NUM_CLASSES):
            guessed = [expert for expert, place in self._guesses.items() if place == quarter]
            if guessed:
                num_true = sum(expert in wanted for expert in guessed)
                self.trust.learn(quarter, num_true, len(guessed))

    def _forget(self) -> None:
        for hint in self._read.values():
            hint.reads.abandon()
        self._leaving += self._read.values()
        self._read.clear()
        self._guesses.clear()
        self._waiting.clear()
        self._layer = -1
        self._collect()

    def _collect(self) -> None:
        """Take the slots of forgotten guesses back whose reads have ended."""
        still: list[LentRead] = []
        for hint in self._leaving:
            if not hint.reads.is_done(hint.number):
                still.append(hint)
                continue
            self._places.give_back(hint.slot)
            self._counters.hints_wasted += hint.reads.is_good(hint.number)
        self._leaving = still
