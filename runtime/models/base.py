"""What a model is handed: spec, kernels, weights by name, and experts from wherever they lie."""

import dataclasses
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Protocol

import torch

from runtime.kernels.base import FixedWork, Kernels, RopeTables
from runtime.kernels.kv import KvPages
from runtime.kernels.matrix import Matrix, Slot
from runtime.spec.model import ModelSpec
from runtime.spec.rope import RopeSpec
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
        """How each expert lies in its slot, or the largest ones."""

    def layout_of(self, layer: int, expert: int) -> ExpertLayout:
        """How one expert lies in its slot."""

    def ordered(self, layer: int, experts: Sequence[int]) -> Sequence[int]:
        """Return experts, given in ascending order, so that those of one layout stand together."""

    def note_routing(self, layer: int, ids: torch.Tensor, weights: torch.Tensor) -> None:
        """Hear which experts the rows of a step chose, ``[n, top_k]``, before they are used."""

    @property
    def takes_guesses(self) -> bool:
        """Whether it is of use to guess what a layer will ask for."""

    def guess(self, layer: int, experts: Sequence[int]) -> None:
        """Hear which experts a layer will probably choose, the surest first."""

    def runs(
        self, layer: int, experts: Sequence[int]
    ) -> Generator[Sequence[tuple[int, Slot]], None, None]:
        """Yield distinct experts with their slots, in their order, in runs that lie ready.

        A run is used until the next is asked for. The iterator must be closed.
        """


Routes = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
"""Takes rows and returns the ids and weights of the experts that each chooses."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """Everything that the blocks of one model are built from."""

    spec: ModelSpec
    kernels: Kernels
    weights: DenseWeights
    experts: ExpertSource
    ropes: Mapping[RopeSpec, RopeTables]
    """The tables of each kind of rotary positions in the spec."""
    routers: dict[int, Routes] = dataclasses.field(default_factory=dict)
    """The routers of the layers that are built so far, by layer."""
    runner: "FixedRunner | None" = None
    """Runs the fixed part of layers; None: piece by piece."""


class AttentionBlock(Protocol):
    """The attention of one layer."""

    def __call__(self, x: torch.Tensor, start_position: int, pages: KvPages) -> torch.Tensor:
        """Return the block's output for rows ``x`` at positions from ``start_position`` on.

        What the layer keeps of the rows is written to the pages first, which must have room.
        """


class FeedForward(Protocol):
    """The feed-forward block of one layer."""

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Return the block's output for rows ``x``."""

    def fixed(self, x: torch.Tensor) -> Sequence[torch.Tensor]:
        """Return what every token computes alike, which weights it uses not being chosen yet."""

    def rest(self, x: torch.Tensor, fixed: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the block's output, given what ``fixed`` returned of the same rows."""


class FixedRunner(Protocol):
    """Runs the fixed part of layers in another way than piece by piece.

    Threads: used by the engine thread.
    """

    def run(
        self, layer: int, work: FixedWork, x: torch.Tensor, position: int, pages: KvPages
    ) -> tuple[torch.Tensor, Sequence[torch.Tensor]] | None:
        """Return the stream and what ``work`` returns, None where the caller is to run it."""


class Layer(Protocol):
    """One whole layer."""

    def __call__(self, x: torch.Tensor, start_position: int, pages: KvPages) -> torch.Tensor:
        """Return the stream after this layer; ``x`` may be changed and returned."""
