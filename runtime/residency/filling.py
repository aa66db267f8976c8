"""Experts that are being read in the background, each into a slot that was set aside for it."""

import dataclasses
import functools
import logging
import threading
import time
from collections.abc import Collection, Sequence

from runtime.residency.books import FillEnded
from runtime.residency.lanes import Arrived, ReadLanes, ReadOutcome
from runtime.spec.tensors import ExpertId

_LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """An expert to read, the slot it goes to and the slot's bytes."""

    expert: ExpertId
    slot: int
    target: memoryview


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Arrival:
    """An expert on its way."""

    wanted: Wanted
    outcome: ReadOutcome

    @property
    def is_good(self) -> bool:
        """Whether an ended read filled the slot."""
        outcome = self.outcome
        return not outcome.cancelled() and outcome.exception() is None and outcome.result() is None


class Filling:
    """What is on its way in the background, by layer; the slots belong to it until handed out.

    Threads: methods belong to the engine thread; ends are counted by whoever reads.
    """

    def __init__(self, lanes: ReadLanes, arrived: Arrived, ended: FillEnded) -> None:
        self._lanes = lanes
        self._arrived = arrived
        self._ended = ended
        self._by_layer: dict[int, dict[int, Arrival]] = {}
        self._lock = threading.Lock()
        self._num_left = 0
        self._num_read = 0
        self._started_s = 0.0
        self._idle = threading.Event()
        self._idle.set()

    @property
    def is_busy(self) -> bool:
        """Whether anything was not handed out yet."""
        return bool(self._by_layer)

    def start(self, wanted: Sequence[Wanted]) -> None:
        """Let experts be read, in this order after those that wait already."""
        if not wanted:
            return
        with self._lock:
            if not self._num_left:
                self._started_s = time.perf_counter()
            self._num_left += len(wanted)
            self._idle.clear()
        for each in wanted:
            outcome = self._lanes.behind(each.expert, each.target, self._arrived)
            layer = self._by_layer.setdefault(each.expert.layer, {})
            layer[each.expert.expert] = Arrival(each, outcome)
            outcome.add_done_callback(functools.partial(self._end, each.expert))

    def collect(self, layer: int) -> list[Arrival]:
        """Hand out the arrivals of a layer that have ended."""
        waiting = self._by_layer.get(layer)
        if waiting is None:
            return []
        ended = [arrival for arrival in waiting.values() if arrival.outcome.done()]
        for arrival in ended:
            self._hand_out(arrival)
        return ended

    def claim(self, expert: ExpertId) -> Arrival:
        """Hand out the arrival of an expert that is on its way.

        If its turn had not come, the read is called off; else it is waited for.
        """
        arrival = self._by_layer[expert.layer][expert.expert]
        self._hand_out(arrival)
        if not arrival.outcome.cancel():
            arrival.outcome.exception()
        return arrival

    def of_layer(self, layer: int) -> Collection[int]:
        """Return the experts of a layer that are on their way."""
        return self._by_layer.get(layer, {}).keys()

    def layers(self) -> list[int]:
        """Return the layers that have something on its way."""
        return list(self._by_layer)

    def wait(self, timeout_s: float) -> bool:
        """Wait until every read has ended; return whether they have."""
        return self._idle.wait(timeout_s)

    def _hand_out(self, arrival: Arrival) -> None:
        expert = arrival.wanted.expert
        layer = self._by_layer[expert.layer]
        del layer[expert.expert]
        if not layer:
            del self._by_layer[expert.layer]

    def _end(self, expert: ExpertId, outcome: ReadOutcome) -> None:
        """Count one end: read, failed or cancelled."""
        is_read = False
        if not outcome.cancelled() and outcome.exception() is None:
            error = outcome.result()
            is_read = error is None
            if error is not None:
                _LOG.info("%s was not read in the background: %s", expert, error.code)
        with self._lock:
            self._num_left -= 1
            self._num_read += is_read
            is_last = not self._num_left
            num_read = self._num_read
            if is_last:
                self._num_read = 0
        if is_last:
            self._ended(num_read, time.perf_counter() - self._started_s)
            self._idle.set()
