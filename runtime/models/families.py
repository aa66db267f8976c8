"""Which file computes which ``model_type``."""

from collections.abc import Callable

from runtime.errors import LarderError
from runtime.kernels.base import Kernels, RopeTables
from runtime.models import mixtral, qwen2_moe, qwen3_moe
from runtime.models.attention import rope_tables
from runtime.models.base import DenseWeights, ExpertSource
from runtime.models.decoder import Decoder
from runtime.protocol.errors import ErrorCode
from runtime.spec.model import ModelSpec

Build = Callable[[ModelSpec, Kernels, RopeTables, DenseWeights, ExpertSource], Decoder]

FAMILIES: dict[str, Build] = {
    family.MODEL_TYPE: family.build for family in (qwen2_moe, qwen3_moe, mixtral)
}


def build_model(
    spec: ModelSpec,
    kernels: Kernels,
    weights: DenseWeights,
    experts: ExpertSource,
    context_tokens: int,
) -> Decoder:
    """Return the model of a spec for up to ``context_tokens`` positions."""
    build = FAMILIES.get(spec.model_type)
    if build is None:
        raise LarderError(
            ErrorCode.ARCHITECTURE_UNSUPPORTED,
            architecture=spec.model_type,
            supported=", ".join(sorted(FAMILIES)),
        )
    rope = rope_tables(spec.head_dim, spec.rope_theta, context_tokens)
    return build(spec, kernels, rope, weights, experts)
