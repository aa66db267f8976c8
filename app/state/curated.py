"""Models that are known to run, for a person who has not searched yet; needs no network.

Parameters are those of the published models, sizes those of their weights as published; of those in
GGUF about those of the files that are named.
"""

import json
from collections.abc import Mapping

import msgspec

from app.state.curated_shapes import SHAPES
from runtime.protocol.hub import HubFit, HubModel


def _model(
    model_id: str, model_type: str, licence: str, billions: float, gigabytes: float
) -> HubModel:
    return HubModel(
        model_id=model_id,
        fit=HubFit.FITS,
        model_type=model_type,
        licence=licence,
        num_parameters=round(billions * 1e9),
        size_bytes=round(gigabytes * 1e9),
    )


def _gguf(
    model_id: str, base_model: str, architecture: str, label: str, billions: float, gigabytes: float
) -> HubModel:
    licence = "mit" if base_model.startswith("zai-org/") else "apache-2.0"
    model = _model(model_id, architecture, licence, billions, gigabytes)
    return msgspec.structs.replace(model, gguf_label=label, base_model=base_model)


_QWEN, _LARGE_QWEN, _GLM = "Qwen/Qwen3-30B-A3B", "Qwen/Qwen3-235B-A22B", "zai-org/GLM-4.5-Air"
CURATED: tuple[HubModel, ...] = (
    _model("ibm-granite/granite-3.1-1b-a400m-instruct", "granitemoe", "apache-2.0", 1.33, 2.7),
    _model("ibm-granite/granite-3.1-3b-a800m-instruct", "granitemoe", "apache-2.0", 3.3, 6.6),
    _model("allenai/OLMoE-1B-7B-0125-Instruct", "olmoe", "apache-2.0", 6.9, 13.8),
    _model("openai/gpt-oss-20b", "gpt_oss", "apache-2.0", 20.9, 13.8),
    _gguf(f"{_QWEN}-GGUF", _QWEN, "qwen3moe", "Q4_K_M", 30.5, 18.6),
    _model("deepseek-ai/DeepSeek-V2-Lite-Chat", "deepseek_v2", "deepseek", 15.7, 31.4),
    _model("baidu/ERNIE-4.5-21B-A3B-PT", "ernie4_5_moe", "apache-2.0", 21.8, 43.7),
    _model("zai-org/GLM-4.7-Flash", "glm4_moe_lite", "mit", 30, 60),
    _model("Qwen/Qwen3-30B-A3B", "qwen3_moe", "apache-2.0", 30.5, 61.1),
    _model("openai/gpt-oss-120b", "gpt_oss", "apache-2.0", 116.8, 65.2),
    _gguf("unsloth/GLM-4.5-Air-GGUF", _GLM, "glm4moe", "Q4_K_M", 106.9, 73),
    _model("microsoft/Phi-3.5-MoE-instruct", "phimoe", "mit", 41.9, 83.7),
    _gguf(f"{_LARGE_QWEN}-GGUF", _LARGE_QWEN, "qwen3moe", "Q4_K_M", 235.1, 142),
    _model("zai-org/GLM-4.5-Air", "glm4_moe", "mit", 106.9, 213.7),
    _model("Qwen/Qwen3-235B-A22B", "qwen3_moe", "apache-2.0", 235.1, 470.2),
)
"""Smallest weights first."""
CURATED_CONFIGS: Mapping[str, str] = {name: json.dumps(shape) for name, shape in SHAPES.items()}
"""What is known of each without a network, by the name of the model whose config says it."""
