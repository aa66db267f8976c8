"""How much of a process lies in RAM beyond a base, looked at all the time."""

import collections
import dataclasses
import threading
from collections.abc import Callable, Mapping
from typing import Self

import psutil

_INTERVAL_S = 0.004


@dataclasses.dataclass(slots=True)
class _Seen:
    """The largest resident sizes of a phase, by the limit in force, and how often it was looked."""

    num_samples: int = 0
    peak_bytes: dict[int, int] = dataclasses.field(default_factory=dict)


class ResidentWatch:
    """Looks at a process in a thread of its own, from ``with`` on.

    ``phase`` is what the process does now; ``limit_bytes`` tells the budget in force, and
    ``left_out_bytes`` what of its memory is not counted.

    Threads: ``phase`` is set and results are asked for by whoever made it.
    """

    def __init__(
        self,
        process_id: int,
        limit_bytes: Callable[[], int],
        left_out_bytes: Callable[[], int] = lambda: 0,
    ) -> None:
        self.phase = "start"
        self._process = psutil.Process(process_id)
        self._limit_bytes = limit_bytes
        self._left_out_bytes = left_out_bytes
        self._seen: dict[str, _Seen] = collections.defaultdict(_Seen)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def num_samples(self) -> Mapping[str, int]:
        """How often each phase was looked at."""
        return {phase: seen.num_samples for phase, seen in self._seen.items()}

    def worst_ratio(self, base_bytes: int) -> dict[str, float]:
        """Return, for each phase, the resident size less the base by the limit in force."""
        return {
            phase: max((peak - base_bytes) / limit for limit, peak in seen.peak_bytes.items())
            for phase, seen in self._seen.items()
        }

    def _run(self) -> None:
        while not self._stop.wait(_INTERVAL_S):
            phase, limit_before = self.phase, self._limit_bytes()
            left_out_bytes = self._left_out_bytes()
            resident_bytes = self._process.memory_info().rss - left_out_bytes
            if left_out_bytes != self._left_out_bytes():
                continue
            # Between two looks the limit may have changed; the larger one was in force.
            limit_bytes = max(limit_before, self._limit_bytes())
            seen = self._seen[phase]
            seen.num_samples += 1
            seen.peak_bytes[limit_bytes] = max(seen.peak_bytes.get(limit_bytes, 0), resident_bytes)
