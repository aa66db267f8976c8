"""The small choices a family makes between its matrices: norms, activations, routing, scales."""

import dataclasses
import enum


class NormKind(enum.StrEnum):
    """What a norm does to a row."""

    RMS = "rms"
    """Divide by the root of the mean square, multiply with the weights."""
    LAYER = "layer"
    """Take the mean away first, and add a bias at the end."""


@dataclasses.dataclass(frozen=True, slots=True)
class NormSpec:
    """The norms before each block and at the end."""

    eps: float
    kind: NormKind = NormKind.RMS


class ActivationKind(enum.StrEnum):
    """What a gated feed-forward block does with ``gate`` and ``up``."""

    SILU = "silu"
    GELU_TANH = "gelu-tanh"
    CLAMPED_SWIGLU = "clamped-swiglu"
    """``gate * sigmoid(alpha * gate) * (up + 1)``, gate cut above, up cut on both sides."""


@dataclasses.dataclass(frozen=True, slots=True)
class Activation:
    """One activation with its constants."""

    kind: ActivationKind
    limit: float = 0.0
    alpha: float = 0.0


SILU = Activation(ActivationKind.SILU)


class Score(enum.StrEnum):
    """What the router's logits are turned into."""

    SOFTMAX = "softmax"
    """Shares of all experts. Normalised, these are also the softmax of the chosen logits alone."""
    SIGMOID = "sigmoid"
    """Each expert for itself."""
    SPARSE_MIXER = "sparse-mixer"
    """One expert after another, each weighed against those that nearly were as good."""


@dataclasses.dataclass(frozen=True, slots=True)
class ExpertGroups:
    """Experts lie in ``num_groups`` equal groups, and only those of the best groups are chosen.

    A group is as good as its ``num_best`` best experts together.
    """

    num_groups: int
    num_kept: int
    num_best: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """How a token's experts are chosen and weighed."""

    top_k: int
    score: Score = Score.SOFTMAX
    is_normalised: bool = False
    """The weights of the chosen experts are divided by their sum."""
    least_sum: float = 0.0
    """The sum counts as at least so much."""
    scale: float = 1.0
    """What the weights are multiplied with in the end."""
    has_correction: bool = False
    """A stored vector is added to the scores for the choice, not for the weights."""
    groups: ExpertGroups | None = None
    jitter: float = 0.0
    """Of the sparse mixer: how near another expert has to be to count."""

    @property
    def is_plain(self) -> bool:
        """Whether it is the softmax of all experts, normalised or not, and nothing else."""
        is_softmax = self.score is Score.SOFTMAX and self.jitter == 0.0
        is_scaled = self.scale != 1.0 or self.least_sum != 0.0
        return is_softmax and not is_scaled and not self.has_correction and self.groups is None


@dataclasses.dataclass(frozen=True, slots=True)
class Scales:
    """Constants that some families multiply into the stream."""

    embedding: float = 1.0
    residual: float = 1.0
    """What each block gives is multiplied with it before it is added."""
    logits: float = 1.0
    logits_cap: float = 0.0
    """Logits approach plus and minus this softly; 0: they do not."""
