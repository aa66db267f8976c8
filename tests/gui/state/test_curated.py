"""The list that comes with the program: its shapes are those of the published models."""

from pathlib import Path

import pytest

from app.state.curated import CURATED, CURATED_CONFIGS
from runtime.inspect.outlook import outlook
from runtime.protocol.hub import HubModel, HubSketch
from runtime.spec.facts import ModelFacts

CONFIGS = Path("tests/golden/model-configs")
PUBLISHED = {
    "ibm-granite/granite-3.1-1b-a400m-instruct": "ibm-granite--granite-3.1-1b-a400m-instruct",
    "openai/gpt-oss-20b": "openai--gpt-oss-20b",
    "openai/gpt-oss-120b": "openai--gpt-oss-120b",
    "deepseek-ai/DeepSeek-V2-Lite-Chat": "deepseek-ai--DeepSeek-V2-Lite",
    "baidu/ERNIE-4.5-21B-A3B-PT": "baidu--ERNIE-4.5-21B-A3B-PT",
    "Qwen/Qwen3-30B-A3B": "Qwen--Qwen3-30B-A3B",
    "Qwen/Qwen3-235B-A22B": "Qwen--Qwen3-235B-A22B",
    "microsoft/Phi-3.5-MoE-instruct": "microsoft--Phi-3.5-MoE-instruct",
    "zai-org/GLM-4.5-Air": "zai-org--GLM-4.5-Air",
}


def facts(config: str, label: str = "") -> ModelFacts:
    found = outlook(HubSketch(config=config, gguf_label=label), "/models/a")
    assert found is not None
    return found


@pytest.mark.parametrize("model", CURATED, ids=lambda each: each.model_id)
def test_listed_model_has_the_size_that_its_shape_gives(model: HubModel) -> None:
    report = facts(CURATED_CONFIGS[model.base_model or model.model_id], model.gguf_label).report
    assert report.num_parameters == pytest.approx(model.num_parameters, rel=0.01)
    # Files in GGUF hold what is not run too, and mix more kinds than their names say.
    spread = 0.15 if model.gguf_label else 0.02
    assert report.file_bytes == pytest.approx(model.size_bytes, rel=spread)


@pytest.mark.parametrize("name", PUBLISHED)
def test_shape_is_that_of_the_published_config(name: str) -> None:
    config = (CONFIGS / f"{PUBLISHED[name]}.config.json").read_text(encoding="utf-8")
    own, published = facts(CURATED_CONFIGS[name]), facts(config)
    for field in (
        "num_parameters", "num_active_parameters", "expert_bytes", "dense_bytes", "stored_format",
        "kv_bytes_per_token", "max_context_tokens", "num_experts", "top_k", "num_moe_layers",
    ):  # fmt: skip
        assert getattr(own.report, field) == getattr(published.report, field), field
    assert own.dense_ram_bytes == published.dense_ram_bytes


def test_list_is_in_the_order_of_sizes() -> None:
    sizes = [model.size_bytes for model in CURATED]
    assert sizes == sorted(sizes)
    assert any(model.gguf_label for model in CURATED)
