"""Which file computes which ``model_type``."""

from collections.abc import Callable

import torch

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
    torch_device: torch.device | None = None,
) -> Decoder:
    """Return the model of a spec for up to ``context_tokens`` positions.

    ``torch_device`` is where the dense weights lie, if not in RAM.
    """
    build = FAMILIES.get(spec.model_type)
    if build is None:
        raise LarderError(
            ErrorCode.ARCHITECTURE_UNSUPPORTED,
            architecture=spec.model_type,
            supported=", ".join(sorted(FAMILIES)),
        )
    rope = rope_tables(spec.head_dim, spec.rope_theta, context_tokens)
    if torch_device is not None:
        rope = RopeTables(rope.cosines.to(torch_device), rope.sines.to(torch_device))
    return build(spec, kernels, rope, weights, experts)
