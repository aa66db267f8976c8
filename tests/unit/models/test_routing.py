"""Routings equal the routers of transformers, whatever kind they are."""

import importlib
from typing import Any

import pytest
import torch

from runtime.kernels.base import Kernels
from runtime.kernels.matrix import Matrix
from runtime.kernels.reference import ReferenceKernels
from runtime.models.moe import Router
from runtime.spec.blocks import ExpertGroups, Routing, Score

HIDDEN, EXPERTS, TOP_K = 32, 16, 4
_GROUPED = {
    "n_routed_experts": EXPERTS,
    "num_experts_per_tok": TOP_K,
    "hidden_size": HIDDEN,
    "n_group": 4,
    "topk_group": 2,
    "routed_scaling_factor": 2.5,
}
CASES: dict[str, tuple[str, str, dict[str, Any], Routing]] = {
    "groups by their two best": (
        "deepseek_v3",
        "DeepseekV3TopkRouter",
        {**_GROUPED, "norm_topk_prob": True},
        Routing(
            top_k=TOP_K,
            score=Score.SIGMOID,
            is_normalised=True,
            least_sum=1e-20,
            scale=2.5,
            has_correction=True,
            groups=ExpertGroups(4, 2, 2),
        ),
    ),
    "groups by their best": (
        "deepseek_v2",
        "DeepseekV2TopkRouter",
        {**_GROUPED, "topk_method": "group_limited_greedy"},
        Routing(top_k=TOP_K, scale=2.5, groups=ExpertGroups(4, 2, 1)),
    ),
    "sigmoid with correction": (
        "minimax_m2",
        "MiniMaxM2TopKRouter",
        {"hidden_size": HIDDEN, "num_local_experts": EXPERTS, "num_experts_per_tok": TOP_K},
        Routing(top_k=TOP_K, score=Score.SIGMOID, is_normalised=True, has_correction=True),
    ),
    "softmax with correction": (
        "ernie4_5_moe",
        "Ernie4_5_MoeTopKRouter",
        {"hidden_size": HIDDEN, "moe_num_experts": EXPERTS, "moe_k": TOP_K},
        Routing(top_k=TOP_K, is_normalised=True, least_sum=1e-12, has_correction=True),
    ),
    "softmax of the chosen": (
        "gpt_oss",
        "GptOssTopKRouter",
        {"hidden_size": HIDDEN, "num_local_experts": EXPERTS, "num_experts_per_tok": TOP_K},
        Routing(top_k=TOP_K, is_normalised=True),
    ),
    "sparse mixer": (
        "phimoe",
        "PhimoeTopKRouter",
        {
            "hidden_size": HIDDEN,
            "num_local_experts": EXPERTS,
            "num_experts_per_tok": 2,
            "router_jitter_noise": 0.2,
        },
        Routing(top_k=2, score=Score.SPARSE_MIXER, jitter=0.2),
    ),
}


@pytest.mark.parametrize("kind", ["native", "reference"])
@pytest.mark.parametrize("case", CASES)
def test_routing_equals_transformers(kernels: Kernels, kind: str, case: str) -> None:
    family, name, values, routing = CASES[case]
    module = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
    theirs = getattr(module, name)(
        importlib.import_module("transformers").AutoConfig.for_model(family, **values)
    ).eval()
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(50, HIDDEN, generator=generator)
    correction = 0.2 * torch.randn(EXPERTS, generator=generator)
    bias = torch.randn(EXPERTS, generator=generator) if family == "gpt_oss" else None
    with torch.no_grad():
        theirs.weight.copy_(0.3 * torch.randn(EXPERTS, HIDDEN, generator=generator))
        if bias is not None:
            theirs.bias.copy_(bias)
        for key, value in (*theirs.named_buffers(), *theirs.named_parameters()):
            if key.endswith("e_score_correction_bias"):
                value.copy_(correction.view(value.shape))
        more = (correction,) if family == "minimax_m2" else ()
        _, weights, ids = theirs(x, *more)
    router = Router(
        ReferenceKernels() if kind == "reference" else kernels,
        routing,
        Matrix.from_tensor(theirs.weight.detach()),
        bias,
        correction if routing.has_correction else None,
    )
    our_ids, our_weights = router(x)

    order = ids.argsort(dim=1)
    assert torch.equal(our_ids.to(torch.int64), ids.gather(1, order))
    torch.testing.assert_close(our_weights, weights.gather(1, order), atol=1e-5, rtol=1e-5)


def test_router_scales_each_expert_in_the_end(kernels: Kernels) -> None:
    generator = torch.Generator().manual_seed(2)
    matrix = Matrix.from_tensor(torch.randn(EXPERTS, HIDDEN, generator=generator))
    x = torch.randn(7, HIDDEN, generator=generator)
    scales = torch.arange(1.0, EXPERTS + 1)
    routing = Routing(top_k=TOP_K, is_normalised=True)
    ids, plain = Router(kernels, routing, matrix)(x)
    same, scaled = Router(kernels, routing, matrix, expert_scales=scales)(x)

    assert torch.equal(ids, same)
    assert torch.equal(scaled, plain * (ids + 1))
