"""What a model is made of, independent of where its weights lie."""

import dataclasses
from collections.abc import Sequence

from runtime.protocol.values import WeightFormat
from runtime.spec.attention import AnyAttention
from runtime.spec.blocks import SILU, Activation, NormSpec, Routing, Scales
from runtime.spec.naming import Naming
from runtime.spec.rope import LongScaling, RopeSpec

NO_SCALES = Scales()
NO_ROUTING = Routing(top_k=0)
"""Of a model without experts."""
PLAIN_NAMES = Naming()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """The architecture of one checkpoint, normalised from its ``config.json``.

    Widths are numbers of channels. Layers with index in ``moe_layers`` have routed experts, the
    others one dense feed-forward block of ``dense_width``.
    """

    model_type: str
    hidden_size: int
    num_layers: int
    vocabulary_size: int
    max_context_tokens: int
    attention: tuple[AnyAttention, ...]
    """One for each layer; layers of a kind share one value."""
    norm: NormSpec
    scales: Scales = NO_SCALES
    activation: Activation = SILU
    is_tied: bool = False
    """The output matrix is the embedding."""
    has_output_bias: bool = False
    """The output matrix has a bias."""
    moe_layers: tuple[int, ...] = ()
    num_experts: int = 0
    routing: Routing = NO_ROUTING
    expert_width: int = 0
    packed_experts: WeightFormat | None = None
    """The format in which routed experts are published with scales apart; None: plain numbers."""
    shared_width: int = 0
    """0: no shared expert."""
    has_shared_gate: bool = False
    """What the shared expert gives is scaled by the sigmoid of its own one-row router."""
    dense_width: int = 0
    naming: Naming = PLAIN_NAMES
    """What the checkpoint calls the tensors."""
    eos_ids: tuple[int, ...] = ()
    bos_id: int | None = None

    def __post_init__(self) -> None:
        if len(self.attention) != self.num_layers:
            raise ValueError(f"{len(self.attention)} attentions for {self.num_layers} layers")

    @property
    def top_k(self) -> int:
        """Experts that a token takes in each layer that has them."""
        return self.routing.top_k

    @property
    def ropes(self) -> Sequence[RopeSpec]:
        """The different rotary positions of all layers, in the order of their first layer."""
        ropes = (attention.rope for attention in self.attention)
        return tuple(dict.fromkeys(rope for rope in ropes if rope is not None))

    @property
    def original_context_tokens(self) -> int:
        """Up to this context positions are turned as in the shortest; beyond, all are otherwise."""
        scalings = (rope.scaling for rope in self.ropes)
        originals = [each.original_tokens for each in scalings if isinstance(each, LongScaling)]
        return min([self.max_context_tokens, *originals])
