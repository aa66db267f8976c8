"""What a config alone says of a model that is not here."""

import json
from pathlib import Path

import pytest

from runtime.inspect.folder import inspect_folder
from runtime.inspect.outlook import outlook
from runtime.protocol.hub import HubSketch
from runtime.protocol.values import WeightFormat
from runtime.spec.facts import ModelFacts
from runtime.spec.footprint import dense_bytes
from tests.support.checkpoint_folders import write_checkpoint

CONFIGS = Path("tests/golden/model-configs")


def published(name: str, **changes: object) -> str:
    config = json.loads((CONFIGS / f"{name}.config.json").read_text(encoding="utf-8"))
    return json.dumps({**config, **changes})


def facts(config: str) -> ModelFacts:
    found = outlook(HubSketch(config=config), "/models/a")
    assert found is not None
    return found


def test_outlook_of_a_config_is_what_its_folder_says(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m")
    inspection = inspect_folder(str(folder))
    found = facts((folder / "config.json").read_text())
    report = inspection.report
    assert report.is_runnable
    for name in (
        "model_type", "num_layers", "num_moe_layers", "num_experts", "top_k", "hidden_size",
        "max_context_tokens", "num_parameters", "num_active_parameters", "stored_format",
        "dense_bytes", "expert_bytes", "kv_bytes_per_token",
    ):  # fmt: skip
        assert getattr(found.report, name) == getattr(report, name), name
    assert found.dense_ram_bytes == dense_bytes(inspection.tensors.values())
    assert found.report.folder == "/models/a"


@pytest.mark.parametrize(
    ("name", "billions", "stored", "expert_bytes"),
    [
        ("Qwen--Qwen3-30B-A3B", 30.53, WeightFormat.BF16, 3 * 2048 * 768 * 2),
        ("Qwen--Qwen3-30B-A3B-FP8", 30.53, WeightFormat.BF16, 3 * 2048 * 768),
        ("openai--gpt-oss-120b", 116.83, WeightFormat.MXFP4, 13_219_200),
        ("moonshotai--Kimi-K2.5", 1026.41, WeightFormat.BF16, 3 * 7168 * 2048 // 2),
    ],
)
def test_outlook_of_published_models_has_their_sizes(
    name: str, billions: float, stored: WeightFormat, expert_bytes: int
) -> None:
    report = facts(published(name)).report
    assert round(report.num_parameters / 1e9, 2) == billions
    assert (report.stored_format, report.expert_bytes) == (stored, expert_bytes)


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ("float32", WeightFormat.F32),
        ("float16", WeightFormat.F16),
        ("bfloat16", WeightFormat.BF16),
        ("float64", WeightFormat.BF16),
        (7, WeightFormat.BF16),
    ],
)
def test_outlook_takes_the_type_that_a_config_states(
    stated: object, expected: WeightFormat
) -> None:
    config = published("Qwen--Qwen3-30B-A3B", torch_dtype=stated)
    assert facts(config).report.stored_format is expected


@pytest.mark.parametrize(
    "config",
    [
        "",
        "[]",
        "\ud800",
        "{}",
        published("Qwen--Qwen3.5-35B-A3B"),
        published("nvidia--Qwen3.6-35B-A3B-NVFP4"),
        published("Qwen--Qwen3-30B-A3B", num_experts="many"),
        published(
            "Qwen--Qwen3-30B-A3B",
            quantization_config={"quant_method": "gptq", "bits": 4, "group_size": 128},
        ),
        published("Qwen--Qwen3-30B-A3B", quantization_config={"quant_method": "exl3"}),
    ],
)
def test_outlook_of_what_cannot_be_run_or_known_is_none(config: str) -> None:
    assert outlook(HubSketch(config=config), "/models/a") is None
