"""Torch's modules for kinds of accelerators that have a memory and queues of their own.

They share their names: what is written for one runs with the other. ROCm's cards are ``cuda`` to
torch; Apple's GPU (``mps``) has no memory of its own and is not among them.
"""

from typing import Any, Protocol

import torch

KINDS = ("cuda", "xpu")
"""In the order in which they are looked for."""


class DeviceModule(Protocol):
    """What ``torch.cuda`` and ``torch.xpu`` have in common and is used here."""

    def Stream(self, device: Any) -> Any:  # noqa: N802, ANN401 - as torch names it
        """Make a queue of a device."""

    def is_available(self) -> bool:
        """Whether there is such a card, and a driver for it."""

    def device_count(self) -> int:
        """Return how many there are."""

    def get_device_properties(self, device: Any) -> Any:  # noqa: ANN401 - each kind has its own
        """Return name, total memory and more of a card."""

    def mem_get_info(self, device: Any) -> tuple[int, int]:  # noqa: ANN401
        """Return the free and the total memory of a card."""

    def device(self, device: Any) -> Any:  # noqa: ANN401
        """Return a context in which a card is the current one."""

    def stream(self, stream: Any) -> Any:  # noqa: ANN401
        """Return a context in which a queue is the current one."""

    def current_stream(self, device: Any) -> Any:  # noqa: ANN401
        """Return the queue that computations are in."""

    def empty_cache(self) -> None:
        """Give memory back that torch keeps for later."""


def module_of(kind: str) -> DeviceModule | None:
    """Return the module of a kind, None where torch drives none here."""
    if kind not in KINDS:
        return None
    module: DeviceModule = getattr(torch, kind)
    return module if module.is_available() else None
