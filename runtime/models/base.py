"""What a model is handed: weights by name, and experts from wherever they lie."""

from collections.abc import Callable, Sequence
from typing import Protocol

import torch

from runtime.kernels.matrix import Matrix, Slot
from runtime.spec.tensors import ExpertLayout

AfterLayer = Callable[[int], None]
"""Called with the index of each layer when it is done; may raise to end the chunk there."""


class DenseWeights(Protocol):
    """All weights that are not routed experts, by their published name."""

    def matrix(self, name: str) -> Matrix:
        """Return a tensor of two dimensions as kernels take it."""

    def vector(self, name: str) -> torch.Tensor:
        """Return a tensor of one dimension as f32."""


class ExpertSource(Protocol):
    """Routed experts, made resident on demand.

    Threads: used by the engine thread.
    """

    @property
    def layout(self) -> ExpertLayout:
        """How each expert lies in its slot."""

    def groups(self, layer: int, experts: Sequence[int]) -> list[Sequence[int]]:
        """Cut ascending experts into consecutive groups that can each be acquired at once."""

    def acquire(self, layer: int, experts: Sequence[int]) -> list[Slot]:
        """Make distinct experts resident, lock them, and return their slots in the same order."""

    def release(self, layer: int, experts: Sequence[int]) -> None:
        """Unlock experts that were acquired; their slots may be reused from now on."""
