"""Attention over latent rows equals transformers, which expands every key and value."""

import dataclasses
import importlib
from typing import Any, cast

import pytest
import torch

from runtime.kernels.base import Kernels
from runtime.kernels.kv import KvPages
from runtime.kernels.matrix import Matrix
from runtime.kernels.reference import ReferenceKernels
from runtime.models.attention import LatentAttention
from runtime.models.base import ExpertSource, Parts
from runtime.models.rope import rope_tables
from runtime.spec.attention import LatentAttentionSpec
from runtime.spec.blocks import NormSpec
from runtime.spec.model import ModelSpec
from runtime.spec.rope import RopeSpec

HIDDEN, NUM_TOKENS = 48, 20
SPEC = LatentAttentionSpec(
    num_heads=4,
    latent_dim=24,
    plain_dim=16,
    rope_dim=8,
    value_dim=12,
    query_dim=20,
    rope=RopeSpec(10000.0, 8, is_interleaved=True),
    scale=24**-0.5,
    norm_eps=1e-6,
)


class Weights:
    """Tensors by name."""

    def __init__(self, tensors: dict[str, torch.Tensor]) -> None:
        self.tensors = tensors

    def matrix(self, name: str) -> Matrix:
        return Matrix.from_tensor(self.tensors[name])

    def vector(self, name: str) -> torch.Tensor:
        return self.tensors[name]


def their_attention(spec: LatentAttentionSpec) -> tuple[Any, Any]:
    """Their block with random weights, and their rotary positions."""
    module = importlib.import_module("transformers.models.deepseek_v3.modeling_deepseek_v3")
    config = importlib.import_module("transformers").DeepseekV3Config(
        hidden_size=HIDDEN,
        num_attention_heads=spec.num_heads,
        num_key_value_heads=spec.num_heads,
        q_lora_rank=spec.query_dim or None,
        kv_lora_rank=spec.latent_dim,
        qk_nope_head_dim=spec.plain_dim,
        qk_rope_head_dim=spec.rope_dim,
        v_head_dim=spec.value_dim,
        attention_bias=spec.has_bias,
        rope_interleave=True,
        attn_implementation="eager",
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
    )
    block = module.DeepseekV3Attention(config, 0).eval()
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in block.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            is_norm = parameter.ndim == 1 and parameter.shape[0] in (spec.query_dim, 24)
            parameter.copy_(1 + 0.2 * noise if is_norm else noise / parameter.shape[-1] ** 0.5)
    return block, module.DeepseekV3RotaryEmbedding(config)


def our_attention(kernels: Kernels, block: Any, spec: LatentAttentionSpec) -> LatentAttention:
    tensors = {f"a.{name}": value.detach() for name, value in block.named_parameters()}
    model = ModelSpec(
        model_type="any",
        hidden_size=HIDDEN,
        num_layers=1,
        vocabulary_size=10,
        max_context_tokens=64,
        attention=(spec,),
        norm=NormSpec(1e-6),
    )
    tables = {spec.rope: rope_tables(spec.rope, 64)}
    parts = Parts(model, kernels, Weights(tensors), cast("ExpertSource", None), tables)
    return LatentAttention(parts, spec, "a")


def run(attention: LatentAttention, x: torch.Tensor, sizes: list[int]) -> torch.Tensor:
    """Compute the rows in chunks over fresh pages that hold keys alone."""
    pages = KvPages(8, 1, SPEC.latent_dim + SPEC.rope_dim)
    room = [torch.full((8, 1, 32), torch.nan) for _ in range(4)]
    pages.extend([(page, page) for page in room])
    rows: list[torch.Tensor] = []
    for size in sizes:
        start = sum(map(len, rows))
        rows.append(attention(x[start : start + size], start, pages))
    return torch.cat(rows)


@pytest.mark.parametrize("kind", ["native", "reference"])
@pytest.mark.parametrize("changes", [{}, {"query_dim": 0}, {"has_bias": True}])
def test_latent_attention_equals_transformers_in_any_chunking(
    kernels: Kernels, kind: str, changes: dict[str, Any]
) -> None:
    spec = dataclasses.replace(SPEC, **changes)
    block, rotary = their_attention(spec)
    x = torch.randn(NUM_TOKENS, HIDDEN, generator=torch.Generator().manual_seed(1))
    mask = torch.full((NUM_TOKENS, NUM_TOKENS), -torch.inf).triu(1)[None, None]
    with torch.no_grad():
        positions = rotary(x[None], torch.arange(NUM_TOKENS)[None])
        expected = block(x[None], position_embeddings=positions, attention_mask=mask)[0][0]
    used = ReferenceKernels() if kind == "reference" else kernels
    attention = our_attention(used, block, spec)
    whole = run(attention, x, [NUM_TOKENS])
    cut = run(attention, x, [7, 1, 1, 11])

    assert expected.std() > 0.1
    torch.testing.assert_close(whole, expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(cut, whole, atol=1e-5, rtol=0)
    if used.is_row_invariant:
        assert torch.equal(cut, whole)
