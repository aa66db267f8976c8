"""What a trace is: which experts every token chose in every MoE layer."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

ExpertIds = npt.NDArray[np.uint16]
Scores = npt.NDArray[np.uint8]
MAX_SCORE = 255
"""The score of a weight of 1."""


@dataclasses.dataclass(frozen=True, slots=True)
class TraceOrigin:
    """Where a trace comes from, and what it may be used for."""

    model: str
    kind: str
    """``decode`` for generated tokens, ``text`` for text that was fed."""
    source: str
    licence: str


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """The experts that tokens chose, without the tokens.

    ``ids`` is [tokens, layers, top_k], the best expert first where ``is_ranked``. ``scores`` has
    the same shape: the router's weight of each, 1 being ``MAX_SCORE``. Sequences follow each other.
    """

    name: str
    origin: TraceOrigin
    num_experts: int
    layers: tuple[int, ...]
    """Numbers of the MoE layers in the model."""
    sequence_tokens: tuple[int, ...]
    ids: ExpertIds
    scores: Scores | None = None
    is_ranked: bool = True
    hints: ExpertIds | None = None
    """[tokens, layers, hints]: what was guessed of a layer while the one before it computed."""

    def __post_init__(self) -> None:
        if self.ids.ndim != 3 or self.ids.shape[1] != len(self.layers):
            raise ValueError(f"ids of [tokens, {len(self.layers)}, top_k], not {self.ids.shape}")
        if sum(self.sequence_tokens) != self.num_tokens or min(self.sequence_tokens, default=0) < 0:
            raise ValueError(f"the sequences do not sum to {self.num_tokens} tokens")
        if self.scores is not None and self.scores.shape != self.ids.shape:
            raise ValueError(f"scores of {self.scores.shape} for ids of {self.ids.shape}")
        if self.hints is not None and self.hints.shape[:2] != self.ids.shape[:2]:
            raise ValueError(f"hints of {self.hints.shape} for ids of {self.ids.shape}")
        if self.hints is not None and self.hints.size and self.hints.max() >= self.num_experts:
            raise ValueError(f"hinted expert {int(self.hints.max())} of {self.num_experts}")
        if self.ids.size and int(self.ids.max()) >= self.num_experts:
            raise ValueError(f"expert {int(self.ids.max())} of {self.num_experts}")

    @property
    def num_tokens(self) -> int:
        """Tokens of all sequences."""
        return int(self.ids.shape[0])

    @property
    def num_layers(self) -> int:
        """MoE layers."""
        return int(self.ids.shape[1])

    @property
    def top_k(self) -> int:
        """Experts that a token uses in a layer."""
        return int(self.ids.shape[2])

    def rows(self, layer_index: int) -> list[list[int]]:
        """Return what each token needs of a layer."""
        rows: list[list[int]] = self.ids[:, layer_index].tolist()
        return rows

    def part(self, max_tokens: int | None = None, layer_stride: int = 1) -> "Trace":
        """Return the first tokens, and every so many-th layer."""
        number = self.num_tokens if max_tokens is None else min(max_tokens, self.num_tokens)
        ends = np.minimum(np.cumsum((0, *self.sequence_tokens)), number)
        return dataclasses.replace(
            self,
            layers=self.layers[::layer_stride],
            sequence_tokens=tuple(int(size) for size in np.diff(ends) if size),
            ids=self.ids[:number, ::layer_stride],
            scores=None if self.scores is None else self.scores[:number, ::layer_stride],
            # With layers left out, nobody computes the layer before.
            hints=None if self.hints is None or layer_stride > 1 else self.hints[:number],
        )

    def only_layers(self, indexes: Sequence[int]) -> "Trace":
        """Return some layers, by their position."""
        chosen = list(indexes)
        return dataclasses.replace(
            self,
            layers=tuple(self.layers[index] for index in chosen),
            ids=self.ids[:, chosen],
            scores=None if self.scores is None else self.scores[:, chosen],
            hints=None,
        )

    def one_by_one(self) -> "Trace":
        """Return the same needs as steps of one expert each, as some published figures count."""
        ids = self.ids.transpose(0, 2, 1).reshape(-1, self.num_layers, 1)
        return dataclasses.replace(
            self,
            sequence_tokens=tuple(size * self.top_k for size in self.sequence_tokens),
            ids=ids,
            scores=None,
            hints=None,
        )
