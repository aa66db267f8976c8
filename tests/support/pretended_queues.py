"""A module of torch for a kind of cards that are not there: its queues end what they begin."""

import contextlib
import types
from collections.abc import Iterator

import torch

FREE_BYTES, TOTAL_BYTES = 5 << 30, 6 << 30


class PretendedEvent:
    """The end of what was put into a queue; somebody has to wait for it."""

    def __init__(self, module: "PretendedModule") -> None:
        self._module = module
        module.num_open += 1

    def synchronize(self) -> None:
        """Return when it has ended."""
        self._module.num_open -= 1


class PretendedStream:
    """A queue."""

    def __init__(self, module: "PretendedModule") -> None:
        self._module = module

    def record_event(self) -> PretendedEvent:
        """Return the end of what is in the queue."""
        self._module.most_open = max(self._module.most_open, self._module.num_open + 1)
        return PretendedEvent(self._module)

    def synchronize(self) -> None:
        """Return when all has ended."""
        self._module.num_synchronised += 1


class PretendedModule:
    """What ``torch.xpu`` offers, with the processor's memory behind it."""

    def __init__(self, *, is_integrated: bool = False, num_cards: int = 1) -> None:
        self.num_open = 0
        self.most_open = 0
        self.num_synchronised = 0
        self.num_launches = 0
        self.num_trimmed = 0
        self._is_integrated = is_integrated
        self._num_cards = num_cards

    def Stream(self, device: torch.device) -> PretendedStream:
        """Make a queue."""
        del device
        return PretendedStream(self)

    def is_available(self) -> bool:
        """There is a driver."""
        return True

    def device_count(self) -> int:
        """Return how many there are."""
        return self._num_cards

    def get_device_properties(self, device: object) -> types.SimpleNamespace:
        """Return what a card is."""
        del device
        return types.SimpleNamespace(
            name="Some Arc", total_memory=TOTAL_BYTES, is_integrated=self._is_integrated
        )

    def mem_get_info(self, device: object) -> tuple[int, int]:
        """Return free and total memory."""
        del device
        return FREE_BYTES, TOTAL_BYTES

    @contextlib.contextmanager
    def device(self, device: object) -> Iterator[None]:
        """Make a card the current one."""
        del device
        self.num_launches += 1
        yield

    @contextlib.contextmanager
    def stream(self, stream: PretendedStream) -> Iterator[None]:
        """Make a queue the current one."""
        del stream
        yield

    def current_stream(self, device: object) -> PretendedStream:
        """Return the queue of computations."""
        del device
        return PretendedStream(self)

    def empty_cache(self) -> None:
        """Give memory back."""
        self.num_trimmed += 1
