"""The norms before blocks, behind them and at the end."""

from collections.abc import Callable

import torch

from runtime.models.base import Parts
from runtime.spec.blocks import NormKind

Norm = Callable[[torch.Tensor], torch.Tensor]
"""Takes rows and returns rows of the same shape."""


def norm(parts: Parts, prefix: str) -> Norm:
    """Return the norm of the model's kind whose tensors begin with ``prefix``."""
    kernels, spec = parts.kernels, parts.spec.norm
    weight = parts.weights.vector(f"{prefix}.weight")
    match spec.kind:
        case NormKind.RMS:
            return lambda x: kernels.rms_norm(x, weight, spec.eps)
        case NormKind.LAYER:
            bias = parts.weights.vector(f"{prefix}.bias")
            return lambda x: kernels.layer_norm(x, weight, bias, spec.eps)
