"""The language model inside a checkpoint that also sees."""

import json
from pathlib import Path
from typing import Any

import pytest

from runtime.inspect.config import ConfigReader
from runtime.inspect.families.registry import FAMILIES
from runtime.inspect.families.wrapped import with_text_part
from runtime.inspect.folder import inspect_folder
from runtime.spec.naming import Naming
from runtime.spec.tensors import ExpertId, ExpertPart
from tests.support.family_folders import tensor_values, write_family

CONFIGS = Path(__file__).parents[2] / "golden" / "model-configs"
NAMES = {
    "google--gemma-4-26B-A4B": (
        "model.language_model.embed_tokens.weight",
        "model.language_model.layers.2.experts.down_proj",
    ),
    "Qwen--Qwen3-VL-30B-A3B-Instruct": (
        "lm_head.weight",
        "model.language_model.layers.2.mlp.experts.down_proj",
    ),
    "moonshotai--Kimi-K2.5": (
        "language_model.lm_head.weight",
        "language_model.model.layers.2.mlp.experts.5.down_proj.weight",
    ),
}


def golden(name: str) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((CONFIGS / f"{name}.config.json").read_text())
    return config


@pytest.mark.parametrize("name", NAMES)
def test_tensors_of_a_wrapped_model_have_their_published_names(name: str) -> None:
    reader = with_text_part(ConfigReader(golden(name), name))
    family = FAMILIES[str(reader["model_type"])]
    spec = family.read_spec(reader)
    assert not reader.problems
    dense, expert = NAMES[name]
    assert dense in family.dense_shapes(spec)
    assert family.expert_part(spec, ExpertId(2, 5), ExpertPart.DOWN).name == expert


def test_experts_of_qwen3_vl_lie_turned_or_upright() -> None:
    reader = with_text_part(ConfigReader(golden("Qwen--Qwen3-VL-30B-A3B-Instruct"), "c"))
    family = FAMILIES["qwen3_vl_moe"]
    place = family.expert_part(family.read_spec(reader), ExpertId(2, 5), ExpertPart.UP)
    upright = place.otherwise
    assert upright is not None
    assert (place.shape, place.is_transposed, place.first_row) == ((128, 2048, 1536), True, 768)
    assert (upright.shape, upright.is_transposed) == ((128, 1536, 2048), False)
    assert upright.name == place.name


def test_qwen3_vl_normalises_weights_and_has_its_own_base_without_being_told() -> None:
    config = golden("Qwen--Qwen3-VL-30B-A3B-Instruct")
    for name in ("norm_topk_prob", "rope_theta"):
        del config["text_config"][name]
    reader = with_text_part(ConfigReader(config, "config.json"))
    spec = FAMILIES["qwen3_vl_moe"].read_spec(reader)
    assert not reader.problems
    assert spec.routing.is_normalised
    assert [rope.theta for rope in spec.ropes] == [500_000.0]
    config["text_config"]["norm_topk_prob"] = False
    reader = with_text_part(ConfigReader(config, "config.json"))
    FAMILIES["qwen3_vl_moe"].read_spec(reader)
    (problem,) = reader.problems
    assert "weights of experts as they are" in str(problem.parameters["architecture"])


@pytest.mark.parametrize("is_turned", [True, False])
def test_experts_are_found_in_whichever_way_they_lie(tmp_path: Path, *, is_turned: bool) -> None:
    values = tensor_values("qwen3_vl_moe")
    if not is_turned:
        values = {
            name: array.transpose(0, 2, 1).copy() if ".experts." in name else array
            for name, array in values.items()
        }
    folder = write_family(tmp_path / "seeing", "qwen3_vl_moe", values)
    inspection = inspect_folder(str(folder))
    assert inspection.report.is_runnable
    assert (inspection.report.num_layers, inspection.report.num_experts) == (2, 5)
    up = inspection.experts[ExpertId(1, 3)][ExpertPart.UP]
    assert up.shape == (48, 64)
    assert (up.weave is not None) is is_turned


def test_config_with_a_text_part_keeps_its_own_type_and_takes_the_fields_of_the_part() -> None:
    outer = ConfigReader(golden("google--gemma-4-26B-A4B"), "config.json")
    laid = with_text_part(outer)
    assert laid["model_type"] == "gemma4"
    assert (laid["hidden_size"], laid["eos_token_id"]) == (2816, 1)
    assert not laid.problems


def test_null_in_the_text_part_takes_nothing_away() -> None:
    part = {"quantization_config": None, "q_lora_rank": None}
    outer = ConfigReader({"quantization_config": {"quant_method": "gptq"}, "text_config": part}, "")
    laid = with_text_part(outer)
    assert laid["quantization_config"] == {"quant_method": "gptq"}
    assert "q_lora_rank" in laid.values


@pytest.mark.parametrize("part", [None, [], "gemma4_text"])
def test_config_without_a_text_part_stays_as_it_is(part: object) -> None:
    config = ConfigReader({"model_type": "mixtral", "text_config": part}, "config.json")
    assert with_text_part(config) is config


def test_config_whose_parts_disagree_about_ties_names_the_field() -> None:
    config = golden("google--gemma-4-26B-A4B")
    config["text_config"]["tie_word_embeddings"] = False
    (problem,) = with_text_part(ConfigReader(config, "config.json")).problems
    assert problem.parameters["field"] == "text_config.tie_word_embeddings"


def test_wrapper_around_another_language_model_is_refused_by_name() -> None:
    config = golden("google--gemma-4-26B-A4B")
    config["text_config"]["model_type"] = "gemma9_text"
    reader = with_text_part(ConfigReader(config, "config.json"))
    FAMILIES["gemma4"].read_spec(reader)
    (problem,) = reader.problems
    assert problem.parameters["architecture"] == "gemma4 with the language model 'gemma9_text'"


def test_naming_changes_only_how_names_begin() -> None:
    naming = Naming(body="model.language_model", head="language_model.lm_head")
    assert naming.published("model.norm.weight") == "model.language_model.norm.weight"
    assert naming.published("lm_head.weight") == "language_model.lm_head.weight"
    assert naming.published("modelling.weight") == "modelling.weight"
    assert Naming().published("model.layers.3.model.x") == "model.layers.3.model.x"
