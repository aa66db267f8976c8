"""Steps of a model that are noted layer by layer, put together."""

from collections.abc import Sequence
from typing import Generic, TypeVar

Part = TypeVar("Part")


class WholeSteps(Generic[Part]):
    """Collects the parts of one step; layers are noted in their order.

    A step that was not noted to its last layer is forgotten when the next begins.
    """

    def __init__(self, layers: Sequence[int]) -> None:
        self._position = {layer: index for index, layer in enumerate(layers)}
        self._parts: list[Part] = []

    def add(self, layer: int, part: Part) -> list[Part] | None:
        """Take the part of a layer; return those of all layers if it was the last."""
        index = self._position[layer]
        if not index:
            self._parts = []
        if index != len(self._parts):
            # The step was broken off and begun anew in the middle: nothing to keep of it.
            self._parts = []
            return None
        self._parts.append(part)
        if len(self._parts) < len(self._position):
            return None
        whole, self._parts = self._parts, []
        return whole
