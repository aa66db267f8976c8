"""Folders by GPTQ and AWQ of which some matrices were left alone."""

from pathlib import Path

import numpy as np
import pytest

from runtime.inspect.folder import inspect_folder
from runtime.protocol.errors import ErrorCode
from runtime.protocol.values import WeightFormat
from tests.support.checkpoint_folders import (
    edit_json,
    tiny_tensors,
    write_checkpoint,
    write_safetensors,
)
from tests.support.level_folders import (
    AWQ,
    GPTQ,
    MODEL,
    published_matrices,
    random_published,
    write_levels,
)

UP = "model.layers.1.mlp.experts.2.up_proj"


def test_matrices_that_were_left_alone_stay_plain(tmp_path: Path) -> None:
    matrices = published_matrices(GPTQ)
    kept = {name: own for name, own in matrices.items() if "self_attn" not in name}
    inspection = inspect_folder(str(write_levels(tmp_path / "m", GPTQ, kept)))
    assert inspection.report.problems == []
    entry = inspection.tensors["model.layers.0.self_attn.q_proj.weight"]
    assert (entry.format, entry.levels) == (WeightFormat.F16, None)


def test_output_matrix_in_levels_is_taken_although_config_says_tied(tmp_path: Path) -> None:
    matrices = published_matrices(GPTQ)
    shape = (tiny_tensors(MODEL)["lm_head.weight"][1][0], MODEL.hidden_size)
    matrices["lm_head.weight"] = random_published(GPTQ, shape, np.random.default_rng(4))
    folder = write_levels(tmp_path / "m", GPTQ, matrices)
    edit_json(folder / "config.json", tie_word_embeddings=True)
    inspection = inspect_folder(str(folder))
    assert inspection.report.problems == []
    assert inspection.spec is not None
    assert not inspection.spec.is_tied
    assert inspection.tensors["lm_head.weight"].levels is not None


@pytest.mark.parametrize("left", [f"{UP}.weight", "model.layers.0.mlp.experts.0.gate_proj.weight"])
def test_experts_that_were_partly_left_alone_are_kept_in_f32(tmp_path: Path, left: str) -> None:
    """As where a config names modules that are not converted: f32 holds both kinds exactly."""
    matrices = published_matrices(GPTQ)
    del matrices[left]
    inspection = inspect_folder(str(write_levels(tmp_path / "m", GPTQ, matrices)))
    report = inspection.report
    assert report.problems == []
    assert (report.stored_format, report.published_bits) == (WeightFormat.F32, 0)
    whole = 1024 + 64 * 2 + 64 // 2
    # One matrix of those of eight experts has two bytes a weight.
    assert report.expert_bytes == -(-(23 * whole + 2 * 32 * 64) // 8)


def test_experts_of_a_first_layer_that_was_left_alone_stay_plain(tmp_path: Path) -> None:
    matrices = published_matrices(AWQ)
    matrices = {name: own for name, own in matrices.items() if "layers.0." not in name}
    inspection = inspect_folder(str(write_levels(tmp_path / "m", AWQ, matrices)))
    assert inspection.report.problems == []
    assert inspection.report.stored_format is WeightFormat.F32
    formats = {
        layer: {
            entry.format
            for expert, parts in inspection.experts.items()
            for entry in parts.values()
            if expert.layer == layer
        }
        for layer in (0, 1)
    }
    assert formats == {0: {WeightFormat.F16}, 1: {WeightFormat.Q8_G32}}


def test_experts_in_two_plain_formats_are_refused_without_levels(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m", MODEL)
    tensors = tiny_tensors(MODEL)
    _, shape, data = tensors[f"{UP}.weight"]
    tensors[f"{UP}.weight"] = ("BF16", shape, data)
    write_safetensors(folder / "model.safetensors", tensors)
    (problem,) = inspect_folder(str(folder)).report.problems
    assert problem.code is ErrorCode.TENSOR_MISMATCHED
    assert problem.parameters["tensor"] == f"{UP}.weight"
    assert (problem.parameters["found"], problem.parameters["expected"]) == ("bf16", "f16")


def test_expert_counts_as_what_it_takes_on_the_drive(tmp_path: Path) -> None:
    report = inspect_folder(str(write_levels(tmp_path / "m", AWQ, published_matrices(AWQ)))).report
    # Half a byte a weight; of each 32 weights a scale of two bytes and a zero of half a byte.
    assert report.expert_bytes == 3 * (1024 + 64 * 2 + 64 // 2)
    assert report.stored_format is WeightFormat.Q8_G32
