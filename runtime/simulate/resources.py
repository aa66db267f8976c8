"""Resources of a pretended machine, whose time passes only by being used."""

import dataclasses
import heapq


@dataclasses.dataclass(frozen=True, slots=True)
class AffineCost:
    """Seconds of one piece of work: a fixed part, and one for each byte."""

    fixed_s: float = 0.0
    byte_s: float = 0.0

    def seconds(self, num_bytes: int) -> float:
        """Return what work on so many bytes takes alone."""
        return self.fixed_s + num_bytes * self.byte_s


class Server:
    """Does one piece of work after the other: a processor, a link, a device."""

    def __init__(self, cost: AffineCost) -> None:
        self._cost = cost
        self.busy_s = 0.0
        self.free_at_s = 0.0

    def work(self, at_s: float, num_bytes: int) -> float:
        """Begin at a time or when it is free, whichever is later; return when it ends."""
        seconds = self._cost.seconds(num_bytes)
        self.busy_s += seconds
        self.free_at_s = max(at_s, self.free_at_s) + seconds
        return self.free_at_s


class Drive:
    """Serves several reads at once: their fixed parts overlap, their bytes pass one by one.

    A read begins when one of ``depth`` places is free::

        read 1   [fixed][bytes]
        read 2   [fixed]       [bytes]
        read 3                 [fixed]  [bytes]      depth 2
    """

    def __init__(self, cost: AffineCost, depth: int) -> None:
        if depth < 1:
            raise ValueError(f"a drive that serves {depth} reads at once")
        self._cost = cost
        self._places = [0.0] * depth
        self._bytes_end_s = 0.0
        self.busy_s = 0.0
        self.num_bytes = 0

    @property
    def idle_from_s(self) -> float:
        """When the last read that was begun ends."""
        return self._bytes_end_s

    def read(self, at_s: float, num_bytes: int) -> float:
        """Ask for a read at a time; return when it ends."""
        begin_s = max(at_s, self._places[0])
        bytes_begin_s = max(begin_s + self._cost.fixed_s, self._bytes_end_s)
        end_s = bytes_begin_s + num_bytes * self._cost.byte_s
        self.busy_s += end_s - max(begin_s, self._bytes_end_s)
        self._bytes_end_s = end_s
        heapq.heapreplace(self._places, end_s)
        self.num_bytes += num_bytes
        return end_s
