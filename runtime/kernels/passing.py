"""Experts of a prompt that go to the card for one use."""

import time
from collections import deque
from collections.abc import Callable, Sequence

import torch

from runtime.device.base import Device, DeviceArena, DeviceEvent
from runtime.errors import LarderError
from runtime.kernels.matrix import Slot
from runtime.policy.assignment import CopyCosts, choose_copied
from runtime.protocol.errors import ErrorCode
from runtime.protocol.plan import MemoryPart

Pair = tuple[int, Slot]
MIN_ROWS = 16
"""With fewer rows in a call nothing passes: that is no prompt, or nearly none."""
NUM_SLOTS = 2
"""One is filled while the other is in use."""
_NEW_SHARE = 0.2
"""Weight of the newest time of a row in what is known of it."""
_PATIENCE_S = 5.0
"""So long a card that refused the room is not asked again: each refusal takes time."""


class PassingExperts:
    """Copies experts to room on the card that nobody holds, and gives the room back afterwards.

    Which ones is chosen from times that are measured here: of rows that the processor computed,
    and of a first copy. Where the card's budget or the card has no room for two experts, none pass;
    a card that refused is asked again after some seconds.

    Threads: used by the engine thread.
    """

    def __init__(self, device: Device, clock: Callable[[], float] = time.perf_counter) -> None:
        self._device = device
        self._clock = clock
        self._expert_s = 0.0
        self._row_s: float | None = None
        self._copy_s: float | None = None
        self._refused_s: float | None = None
        self._arena: DeviceArena | None = None
        self._waiting: deque[Slot] = deque()
        self._coming: deque[tuple[int, DeviceEvent]] = deque()
        self._in_use: int | None = None

    def note(self, num_rows: int, seconds: float) -> None:
        """Note what the processor took for rows of an expert."""
        if num_rows == 1:
            # Nearly all of it is reading the weights.
            before_s = self._expert_s or seconds
            self._expert_s = before_s + _NEW_SHARE * (seconds - before_s)
            return
        row_s = max(0.0, seconds - self._expert_s) / (num_rows - 1)
        before_s = row_s if self._row_s is None else self._row_s
        self._row_s = before_s + _NEW_SHARE * (row_s - before_s)

    def choose(self, pairs: Sequence[Pair], ids: torch.Tensor) -> frozenset[int]:
        """Return the numbers of those that pass, out of those in RAM that rows ``ids`` chose.

        Afterwards each is taken in the order of ``pairs``, and ``end`` is called.
        """
        if len(ids) < MIN_ROWS or self._row_s is None or not pairs:
            return frozenset()
        record_bytes = len(pairs[0][1].bytes())
        if self._device.ledger.free_bytes < NUM_SLOTS * record_bytes:
            return frozenset()
        if self._refused_s is not None and self._clock() - self._refused_s < _PATIENCE_S:
            return frozenset()
        try:
            arena = self._device.arena(MemoryPart.WORK, NUM_SLOTS, record_bytes)
        except LarderError as error:
            if error.code is not ErrorCode.VRAM_FULL:
                raise
            # Others have taken what the budget counts on: the processor computes all.
            self._refused_s = self._clock()
            return frozenset()
        self._refused_s = None
        if self._copy_s is None:
            self._copy_s = self._measured(pairs[0][1], arena)
        numbers = [number for number, _ in pairs]
        counts = torch.bincount(ids.reshape(-1).to(torch.int64), minlength=max(numbers) + 1)
        by_number = counts.tolist()
        rows = [by_number[number] for number in numbers]
        costs = CopyCosts(expert_s=self._expert_s, row_s=self._row_s, copy_s=self._copy_s)
        chosen = choose_copied(rows, costs)
        if not chosen:
            arena.close()
            return frozenset()
        self._arena = arena
        self._waiting.extend(slot for index, (_, slot) in enumerate(pairs) if index in chosen)
        for number in range(NUM_SLOTS):
            self._begin(number)
        return frozenset(numbers[index] for index in chosen)

    def take(self) -> Slot:
        """Wait for the next one to be there; what was taken before is not used any more."""
        assert self._arena is not None, "taken before any was chosen"
        if self._in_use is not None:
            self._device.synchronize()
            self._begin(self._in_use)
        self._in_use, event = self._coming.popleft()
        event.wait()
        return Slot.from_buffer(self._arena.tensor(self._in_use), self._device.device)

    def end(self) -> None:
        """Wait for what is on its way or in use, and give the room back; may be called twice."""
        if self._arena is None:
            return
        for _, event in self._coming:
            event.wait()
        self._device.synchronize()
        self._arena.close()
        self._arena, self._in_use = None, None
        self._waiting.clear()
        self._coming.clear()

    def _begin(self, number: int) -> None:
        """Begin to copy the next one to a free slot, if any waits."""
        assert self._arena is not None, "begun before any was chosen"
        if self._waiting:
            source = self._waiting.popleft().bytes()
            target = self._arena.tensor(number)[: len(source)]
            self._coming.append((number, self._device.copy(source, target)))

    def _measured(self, slot: Slot, arena: DeviceArena) -> float:
        """Return the seconds of a copy, the better of two."""
        source = slot.bytes()
        times = []
        for _ in range(2):
            started_s = self._clock()
            self._device.copy(source, arena.tensor(0)[: len(source)]).wait()
            times.append(self._clock() - started_s)
        return min(times)
