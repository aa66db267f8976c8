"""Which file computes which ``model_type``."""

import dataclasses
from collections.abc import Callable, Mapping

import torch

from runtime.errors import LarderError
from runtime.kernels.base import Kernels, RopeTables
from runtime.kernels.matrix import Matrix
from runtime.models import (
    deepseek_v2,
    deepseek_v3,
    ernie4_5_moe,
    gemma4,
    glm4_moe,
    glm4_moe_lite,
    gpt_oss,
    granitemoe,
    llama,
    minimax_m2,
    mixtral,
    olmoe,
    phimoe,
    qwen2_moe,
    qwen3,
    qwen3_moe,
)
from runtime.models.base import DenseWeights, ExpertSource, FixedRunner, Parts
from runtime.models.decoder import Decoder
from runtime.models.rope import rope_tables
from runtime.protocol.errors import ErrorCode
from runtime.spec.model import ModelSpec
from runtime.spec.naming import Naming
from runtime.spec.rope import RopeSpec

Build = Callable[[Parts], Decoder]

FAMILIES: dict[str, Build] = {
    "deepseek_v2": deepseek_v2.build,
    "deepseek_v3": deepseek_v3.build,
    "ernie4_5_moe": ernie4_5_moe.build,
    "gemma4": gemma4.build,
    "glm4_moe": glm4_moe.build,
    "glm4_moe_lite": glm4_moe_lite.build,
    "gpt_oss": gpt_oss.build,
    "granitemoe": granitemoe.build,
    "llama": llama.build,
    "minimax_m2": minimax_m2.build,
    "mixtral": mixtral.build,
    "olmoe": olmoe.build,
    "phimoe": phimoe.build,
    "qwen2_moe": qwen2_moe.build,
    "qwen3": qwen3.build,
    "qwen3_moe": qwen3_moe.build,
}


def build_model(
    spec: ModelSpec,
    kernels: Kernels,
    weights: DenseWeights,
    experts: ExpertSource,
    context_tokens: int,
    torch_device: torch.device | None = None,
    runner: FixedRunner | None = None,
) -> Decoder:
    """Return the model of a spec for up to ``context_tokens`` positions.

    ``torch_device`` is where the dense weights lie, if not in RAM; ``runner`` runs the fixed part
    of layers there.
    """
    build = FAMILIES.get(spec.model_type)
    if build is None:
        raise LarderError(
            ErrorCode.ARCHITECTURE_UNSUPPORTED,
            architecture=spec.model_type,
            supported=", ".join(sorted(FAMILIES)),
        )
    ropes = _ropes(spec, context_tokens, torch_device)
    names = _NamedWeights(weights, spec.naming)
    return build(Parts(spec, kernels, names, experts, ropes, runner=runner))


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _NamedWeights:
    """Dense weights under the names that a language model alone would have."""

    weights: DenseWeights
    naming: Naming

    def matrix(self, name: str) -> Matrix:
        """Return a tensor of two dimensions as kernels take it."""
        return self.weights.matrix(self.naming.published(name))

    def vector(self, name: str) -> torch.Tensor:
        """Return a tensor of one dimension as f32."""
        return self.weights.vector(self.naming.published(name))


def _ropes(
    spec: ModelSpec, context_tokens: int, torch_device: torch.device | None
) -> Mapping[RopeSpec, RopeTables]:
    """Return the tables of every kind of rotary positions, where they are needed."""
    made = {rope: rope_tables(rope, context_tokens) for rope in spec.ropes}
    if torch_device is None:
        return made
    return {
        rope: RopeTables(
            tables.cosines.to(torch_device), tables.sines.to(torch_device), tables.is_interleaved
        )
        for rope, tables in made.items()
    }
