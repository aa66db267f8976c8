"""Real configs: those we read give the right spec, the others are refused by their name."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import TypedDict

import pytest

from runtime.inspect.config import ConfigReader
from runtime.inspect.families.registry import FAMILIES
from runtime.inspect.folder import inspect_folder
from runtime.protocol.errors import ErrorCode
from runtime.protocol.sentences import sentence
from runtime.spec.attention import AttentionSpec, QkNorm
from runtime.spec.blocks import NormSpec, Routing
from runtime.spec.model import ModelSpec
from runtime.spec.rope import RopeSpec
from runtime.spec.tensors import ExpertId, ExpertPart
from tests.support.checkpoint_folders import TinyModel, edit_json, write_checkpoint
from tests.support.model_facts import FACTS

CONFIGS = Path(__file__).parents[2] / "golden" / "model-configs"
OF_CONFIG = (
    ErrorCode.CONFIG_INVALID,
    ErrorCode.ARCHITECTURE_UNSUPPORTED,
    ErrorCode.QUANTIZATION_UNSUPPORTED,
)


class Heads(TypedDict):
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rope: RopeSpec


def heads(num_heads: int, num_kv_heads: int, theta: float = 1e6) -> Heads:
    """Heads of 128 channels with plain rope."""
    return Heads(
        num_heads=num_heads, num_kv_heads=num_kv_heads, head_dim=128, rope=RopeSpec(theta, 128)
    )


def only_attention(spec: ModelSpec | None) -> AttentionSpec:
    """The attention that all layers share."""
    assert spec is not None
    (attention,) = set(spec.attention)
    assert isinstance(attention, AttentionSpec)
    return attention


def rope_theta(spec: ModelSpec | None) -> float:
    rope = only_attention(spec).rope
    assert rope is not None
    return rope.theta


QWEN2_BASE = ModelSpec(
    model_type="qwen2_moe",
    hidden_size=2048,
    num_layers=24,
    attention=(AttentionSpec(**heads(16, 16), has_qkv_bias=True),) * 24,
    vocabulary_size=151936,
    max_context_tokens=8192,
    norm=NormSpec(1e-6),
    moe_layers=tuple(range(24)),
    num_experts=60,
    routing=Routing(top_k=4),
    expert_width=1408,
    shared_width=5632,
    has_shared_gate=True,
    eos_ids=(151643,),
    bos_id=151643,
)
QWEN3_BASE = ModelSpec(
    model_type="qwen3_moe",
    hidden_size=2048,
    num_layers=48,
    attention=(AttentionSpec(**heads(32, 4), qk_norm=QkNorm.HEAD),) * 48,
    vocabulary_size=151936,
    max_context_tokens=40960,
    norm=NormSpec(1e-6),
    moe_layers=tuple(range(48)),
    num_experts=128,
    routing=Routing(top_k=8, is_normalised=True),
    expert_width=768,
    eos_ids=(151645,),
    bos_id=151643,
)
EXPECTED = {
    "Qwen--Qwen1.5-MoE-A2.7B": QWEN2_BASE,
    "Qwen--Qwen2-57B-A14B": dataclasses.replace(
        QWEN2_BASE,
        hidden_size=3584,
        num_layers=28,
        attention=(AttentionSpec(**heads(28, 4), has_qkv_bias=True),) * 28,
        max_context_tokens=131072,
        moe_layers=tuple(range(28)),
        num_experts=64,
        routing=Routing(top_k=8),
        expert_width=2560,
        shared_width=20480,
    ),
    "Qwen--Qwen3-30B-A3B": QWEN3_BASE,
    "Qwen--Qwen3-Coder-480B-A35B-Instruct": dataclasses.replace(
        QWEN3_BASE,
        hidden_size=6144,
        num_layers=62,
        attention=(AttentionSpec(**heads(96, 8, 1e7), qk_norm=QkNorm.HEAD),) * 62,
        max_context_tokens=262144,
        moe_layers=tuple(range(62)),
        num_experts=160,
        expert_width=2560,
        bos_id=None,
    ),
    "mistralai--Mixtral-8x7B-v0.1": ModelSpec(
        model_type="mixtral",
        hidden_size=4096,
        num_layers=32,
        attention=(AttentionSpec(**heads(32, 8)),) * 32,
        vocabulary_size=32000,
        max_context_tokens=32768,
        norm=NormSpec(1e-5),
        moe_layers=tuple(range(32)),
        num_experts=8,
        routing=Routing(top_k=2, is_normalised=True),
        expert_width=14336,
        eos_ids=(2,),
        bos_id=1,
    ),
}
REFUSED = {
    "nvidia--Qwen3.6-35B-A3B-NVFP4": ["qwen3_5_moe", "modelopt (MIXED_PRECISION)"],
    "deepseek-ai--DeepSeek-V3.2": ["deepseek_v32"],
    "deepseek-ai--DeepSeek-V4-Flash": ["deepseek_v4"],
    "openbmb--MiniCPM-MoE-8x2B": ["MiniCPMForCausalLM"],
    "nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8": ["nemotron_h"],
    "ai21labs--AI21-Jamba-Mini-1.6": ["jamba"],
    "MiniMaxAI--MiniMax-M3": ["minimax_m3"],
    "Qwen--Qwen3.5-122B-A10B": ["qwen3_5_moe"],
    "Qwen--Qwen3.5-35B-A3B": ["qwen3_5_moe"],
    "Qwen--Qwen3.5-397B-A17B": ["qwen3_5_moe"],
    "XiaomiMiMo--MiMo-V2-Flash": ["mimo_v2_flash"],
    "deepseek-ai--DeepSeek-V4-Pro": ["deepseek_v4"],
    "deepseek-ai--deepseek-moe-16b-base": ["deepseek"],
    "facebook--nllb-moe-54b": ["nllb-moe"],
    "google--switch-base-128": ["switch_transformers"],
    "jetmoe--jetmoe-8b": ["jetmoe"],
    "meta-llama--Llama-4-Scout-17B-16E-Instruct": ["llama4"],
    "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": ["nemotron_h"],
    "stepfun-ai--Step-3.7-Flash": ["step3p7"],
    "zai-org--GLM-5": ["glm_moe_dsa"],
    "zai-org--GLM-5.2": ["glm_moe_dsa"],
}


def lay_out(name: str, folder: Path) -> Path:
    folder.mkdir()
    shutil.copyfile(CONFIGS / f"{name}.config.json", folder / "config.json")
    return folder


def test_every_golden_config_is_expected_or_refused() -> None:
    names = {path.name.removesuffix(".config.json") for path in CONFIGS.glob("*.json")}
    assert names == FACTS.keys() | REFUSED.keys()
    assert EXPECTED.keys() <= FACTS.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_config_of_supported_family_gives_the_spec(tmp_path: Path, name: str) -> None:
    inspection = inspect_folder(str(lay_out(name, tmp_path / "m")))
    assert inspection.spec == EXPECTED[name]
    assert not [item for item in inspection.report.problems if item.code in OF_CONFIG]


@pytest.mark.parametrize("name", REFUSED)
def test_config_of_other_family_is_refused_by_name(tmp_path: Path, name: str) -> None:
    inspection = inspect_folder(str(lay_out(name, tmp_path / "m")))
    problems = [item for item in inspection.report.problems if item.code in OF_CONFIG]
    named = [
        item.parameters.get("architecture", item.parameters.get("method")) for item in problems
    ]
    assert named[: len(REFUSED[name])] == REFUSED[name]
    said = sentence(problems[0])
    assert REFUSED[name][0] in said
    assert "Choose a" in said


def spec_with(tmp_path: Path, model_type: str, **changes: object) -> ModelSpec | None:
    folder = write_checkpoint(tmp_path / "m", TinyModel(model_type=model_type))
    edit_json(folder / "config.json", **changes)
    return inspect_folder(str(folder)).spec


def test_spec_reads_a_whole_number_as_rope_theta(tmp_path: Path) -> None:
    spec = spec_with(tmp_path, "qwen3_moe", rope_theta=10_000_000)
    assert rope_theta(spec) == 1e7


def test_spec_reads_rope_parameters_of_newer_configs(tmp_path: Path) -> None:
    parameters = {"rope_theta": 12345.0, "rope_type": "default"}
    spec = spec_with(tmp_path, "qwen3_moe", rope_theta=None, rope_parameters=parameters)
    assert rope_theta(spec) == 12345.0


@pytest.mark.parametrize(
    ("model_type", "theta"), [("qwen2_moe", 1e4), ("qwen3_moe", 1e4), ("mixtral", 1e6)]
)
def test_spec_takes_the_family_defaults_for_absent_fields(
    tmp_path: Path, model_type: str, theta: float
) -> None:
    spec = spec_with(
        tmp_path,
        model_type,
        rope_theta=None,
        hidden_act=None,
        norm_topk_prob=None,
        num_key_value_heads=None,
    )
    assert spec is not None
    assert rope_theta(spec) == theta
    assert spec.routing.is_normalised is (model_type == "mixtral")
    assert only_attention(spec).num_kv_heads == only_attention(spec).num_heads


@pytest.mark.parametrize(
    ("older", "newer", "model_type"),
    [
        ("num_experts", "num_local_experts", "qwen3_moe"),
        ("num_local_experts", "num_experts", "mixtral"),
    ],
)
def test_spec_knows_both_names_of_the_number_of_experts(
    tmp_path: Path, older: str, newer: str, model_type: str
) -> None:
    spec = spec_with(tmp_path, model_type, **{older: None, newer: 8})
    assert spec is not None
    assert spec.num_experts == 8


def test_spec_with_sparse_step_and_dense_layers_lists_its_moe_layers(tmp_path: Path) -> None:
    for model_type in ("qwen2_moe", "qwen3_moe"):
        spec = spec_with(
            tmp_path / model_type, model_type, decoder_sparse_step=2, mlp_only_layers=[3]
        )
        assert spec is not None
        assert spec.moe_layers == (1,)
        assert spec.dense_width == 96
        shapes = FAMILIES[model_type].dense_shapes(spec)
        assert shapes["model.layers.0.mlp.up_proj.weight"] == (96, 64)
        assert "model.layers.1.mlp.gate.weight" in shapes
        assert "model.layers.0.mlp.gate.weight" not in shapes


def test_spec_without_shared_expert_needs_no_shared_tensors(tmp_path: Path) -> None:
    spec = spec_with(tmp_path, "qwen2_moe", shared_expert_intermediate_size=0)
    assert spec is not None
    assert spec.shared_width == 0
    assert not [name for name in FAMILIES["qwen2_moe"].dense_shapes(spec) if "shared" in name]


@pytest.mark.parametrize(("window", "expected"), [(64, 64), (512, 0), (4096, 0), (0, 0)])
def test_spec_of_mixtral_keeps_a_window_that_the_context_exceeds(
    tmp_path: Path, window: int, expected: int
) -> None:
    spec = spec_with(tmp_path, "mixtral", sliding_window=window)
    assert only_attention(spec).window == expected


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"num_key_value_heads": 3}, "num_key_value_heads"),
        ({"head_dim": 15}, "head_dim"),
        ({"num_experts_per_tok": 9}, "num_experts_per_tok"),
        ({"num_experts": 60_000}, "num_experts"),
        ({"rms_norm_eps": "x"}, "rms_norm_eps"),
        ({"max_position_embeddings": 1.5}, "max_position_embeddings"),
        ({"tie_word_embeddings": 1}, "tie_word_embeddings"),
        ({"hidden_act": 3}, "hidden_act"),
        ({"rope_scaling": "yarn"}, "rope_scaling"),
        ({"rope_parameters": {"rope_theta": float("inf")}}, "rope_theta"),
        ({"bos_token_id": "x"}, "bos_token_id"),
        ({"vocab_size": None}, "vocab_size"),
    ],
)
def test_spec_with_impossible_value_names_the_field(
    tmp_path: Path, changes: dict[str, object], field: str
) -> None:
    folder = write_checkpoint(tmp_path / "m")
    edit_json(folder / "config.json", **{key: changes[key] for key in changes if changes[key]})
    config = json.loads((folder / "config.json").read_text())
    for key in [key for key, value in changes.items() if value is None]:
        del config[key]
    (folder / "config.json").write_text(json.dumps(config))
    inspection = inspect_folder(str(folder))
    assert inspection.spec is None
    assert field in [item.parameters.get("field") for item in inspection.report.problems]


def test_expert_names_of_mixtral_follow_its_letters() -> None:
    place = FAMILIES["mixtral"].expert_part
    spec = EXPECTED["mistralai--Mixtral-8x7B-v0.1"]
    prefix = "model.layers.3.block_sparse_moe.experts.5"
    for part, letter in ((ExpertPart.GATE, "w1"), (ExpertPart.UP, "w3"), (ExpertPart.DOWN, "w2")):
        assert place(spec, ExpertId(3, 5), part).name == f"{prefix}.{letter}.weight"


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"model_type": "llama", "mlp_bias": True}, "llama with feed-forward biases"),
        ({"model_type": "olmoe", "clip_qkv": 8.0}, "olmoe with clip_qkv 8.0"),
    ],
)
def test_spec_with_what_the_family_does_not_compute_is_refused(
    config: dict[str, object], named: str
) -> None:
    reader = ConfigReader(config, "config.json")
    FAMILIES[str(config["model_type"])].read_spec(reader)
    assert named in [problem.parameters.get("architecture") for problem in reader.problems]


def test_spec_of_dense_qwen3_may_have_windows_in_some_layers() -> None:
    reader = ConfigReader(
        {
            "model_type": "qwen3",
            "hidden_size": 64,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "vocab_size": 100,
            "max_position_embeddings": 512,
            "intermediate_size": 96,
            "sliding_window": 128,
            "layer_types": ["full_attention", "sliding_attention", "full_attention"],
        },
        "config.json",
    )
    spec = FAMILIES["qwen3"].read_spec(reader)
    assert not reader.problems
    seen = [item.window for item in spec.attention if isinstance(item, AttentionSpec)]
    assert seen == [0, 128, 0]
    assert (spec.num_experts, spec.top_k, spec.moe_layers) == (0, 0, ())
