"""When the RAM budget of a loaded model gives way to other programs, and when it comes back.

``spare`` is what would be available if the model held all that its plan gives it. Marks on it, in
sixteenths of what the planner leaves to the system::

    0    3    4         8                  16
    |----|----|---------|-------------------|-->
      squeezed |         after giving back   after the planner's own choice
               after taking all of a person's budget again
"""

import dataclasses

SOON_S = 0.5
"""Between two looks while memory is scarce."""
NORMAL_S = 1.0
"""Between two looks after the planner's own choice."""
SELDOM_S = 2.0
"""Between two looks while there is plenty."""
CALM_S = 20.0
"""How long there has to be room before a model takes memory again."""
RETRY_S = 10.0
"""After a change that could not be made."""
MAX_STALLED_RATIO = 0.1
"""Part of the time in which something waited for memory, from which on the PC is short of it."""
MAX_SWAPPED_BYTES = 4 * 1024**2
"""Written to swap between two looks, from which on the PC is short of memory."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MemoryNow:
    """What the system says of its memory, in bytes."""

    available_bytes: int
    """What can be taken without pushing others out, in this process's limits."""
    own_bytes: int
    """Resident size of this process, as ``base_bytes`` of what it holds was measured."""
    reserve_bytes: int
    """What the planner leaves to the system."""
    stalled_ratio: float = 0.0
    """Part of the last seconds in which some program waited for memory."""
    swapped_bytes: int = 0
    """Written to swap since the last look."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """What the loaded model may take, and what it was given at first, in bytes."""

    base_bytes: int
    ram_bytes: int
    wanted_bytes: int


class PressureRule:
    """Decides how much RAM the loaded model is to have; time is an argument.

    Threads: used by the thread that looks, but for ``note_changed``, which the engine thread calls.
    """

    def __init__(self) -> None:
        self._before: tuple[float, int] | None = None
        """When the last look was, and what it found to spare."""
        self._roomy_since_s: float | None = None
        self._target_bytes = 0
        """The least that could be taken at any look since ``roomy_since_s``."""
        self._next_s = 0.0

    def look(self, now_s: float, memory: MemoryNow, hold: Hold) -> int | None:
        """Return the RAM that the model is to have from now on, None if that is what it has."""
        spare = _spare(memory, hold)
        falling = self._falling_bytes(now_s, spare)
        self._before = (now_s, spare)
        if now_s < self._next_s:
            return None
        if _is_squeezed(memory, spare - falling):
            self._roomy_since_s = None
            missing = memory.reserve_bytes // 2 + falling - spare
            return hold.ram_bytes - missing if missing >= memory.reserve_bytes // 8 else None
        return self._grown(now_s, hold, _roomy_target(memory, hold, spare))

    def interval_s(self, memory: MemoryNow, hold: Hold) -> float:
        """Return how long nothing has to be looked at."""
        spare, reserve = _spare(memory, hold), memory.reserve_bytes
        if spare < reserve * 3 // 4:
            return SOON_S
        return NORMAL_S if spare < 2 * reserve else SELDOM_S

    def note_changed(self) -> None:
        """Begin anew after a change that is in force: what it gave back is no trend."""
        self._before = None
        self._roomy_since_s = None

    def note_failed(self, now_s: float) -> None:
        """Leave everything as it is for a while after a change that could not be made."""
        self.note_changed()
        self._next_s = now_s + RETRY_S

    def _falling_bytes(self, now_s: float, spare: int) -> int:
        """Return how much less there will be soon, by the time that a change is in force."""
        if self._before is None:
            return 0
        before_s, spare_before = self._before
        part = SOON_S / max(now_s - before_s, SOON_S)
        return int(max(0, spare_before - spare) * part)

    def _grown(self, now_s: float, hold: Hold, target_bytes: int) -> int | None:
        if target_bytes <= hold.ram_bytes:
            self._roomy_since_s = None
            return None
        if self._roomy_since_s is None:
            self._roomy_since_s, self._target_bytes = now_s, target_bytes
        self._target_bytes = min(self._target_bytes, target_bytes)
        return self._target_bytes if now_s - self._roomy_since_s >= CALM_S else None


def _spare(memory: MemoryNow, hold: Hold) -> int:
    """Return what would be available if the model held all that it may; negative if it cannot."""
    still_to_take = max(0, hold.base_bytes + hold.ram_bytes - memory.own_bytes)
    return memory.available_bytes - still_to_take


def _is_squeezed(memory: MemoryNow, spare: int) -> bool:
    """Whether the PC is short of memory, or will be at the next look."""
    reserve = memory.reserve_bytes
    suffers = memory.stalled_ratio >= MAX_STALLED_RATIO or memory.swapped_bytes >= MAX_SWAPPED_BYTES
    return spare < reserve * 3 // 16 or (suffers and spare < reserve)


def _roomy_target(memory: MemoryNow, hold: Hold, spare: int) -> int:
    """Return the RAM that there is room for: all that was wanted, or a part that is worth it."""
    missing, reserve = hold.wanted_bytes - hold.ram_bytes, memory.reserve_bytes
    if spare - missing >= reserve // 4:
        return hold.wanted_bytes
    room = spare - reserve // 2
    return hold.ram_bytes + room if room >= reserve // 4 else hold.ram_bytes
