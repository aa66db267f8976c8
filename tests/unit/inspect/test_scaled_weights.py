"""Which weights in eight bits are read, and what is wrong with their scales."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runtime.inspect.config import ConfigReader
from runtime.inspect.folder import inspect_folder
from runtime.inspect.quantization import READABLE
from runtime.inspect.scaled import ScaleScheme, read_scheme
from runtime.protocol.errors import ErrorCode, ErrorReport
from tests.support.checkpoint_folders import edit_json, tiny_tensors, write_checkpoint
from tests.support.scaled_folders import (
    BLOCKS_128,
    MODEL,
    SMALL_BLOCKS,
    Scaled,
    compressed,
    packed,
    scaled_matrices,
    write_scaled,
)

NAME = "model.layers.1.mlp.experts.2.up_proj.weight"
SMALL = (16, 24)
TRANSFORMS = {"config_groups": {"u": {"type": "hadamard", "apply": []}}}
TWO_GROUPS = {
    **compressed("tensor"),
    "config_groups": {
        "group_0": compressed("tensor")["config_groups"]["group_0"],
        "group_1": compressed("channel")["config_groups"]["group_0"],
    },
}


def only_problem(folder: Path) -> ErrorReport:
    (problem,) = inspect_folder(str(folder)).report.problems
    return problem


@pytest.mark.parametrize(
    ("stated", "scheme"),
    [
        (BLOCKS_128, ScaleScheme("_scale_inv", 128, 128)),
        ({**BLOCKS_128, "fmt": "float8_e4m3fn"}, ScaleScheme("_scale_inv", 128, 128)),
        (compressed("block", block_structure=[64, 32]), ScaleScheme("_scale", 64, 32)),
        (compressed("channel"), ScaleScheme("_scale", 1, 0)),
        (compressed("tensor"), ScaleScheme("_scale", 0, 0)),
        ({**BLOCKS_128, "fmt": "e5m2"}, None),
        ({**BLOCKS_128, "weight_block_size": None}, None),
        ({**BLOCKS_128, "weight_block_size": [128]}, None),
        ({**BLOCKS_128, "weight_block_size": [128, 0]}, None),
        ({**BLOCKS_128, "weight_block_size": [True, 128]}, None),
        ({**BLOCKS_128, "quant_method": "gptq"}, None),
        (packed("group", group_size=32), ScaleScheme("_scale", 1, 32, bits=4)),
        (packed("channel"), ScaleScheme("_scale", 1, 0, bits=4)),
        (packed("group", group_size=32, num_bits=8), None),
        (packed("group", group_size=32, symmetric=False), None),
        (packed("group", group_size=32, actorder="group"), None),
        (packed("group", group_size=-1), None),
        (packed("tensor"), None),
        ({**compressed("tensor"), "format": "pack-quantized"}, None),
        ({**compressed("tensor"), "config_groups": {}}, None),
        ({**compressed("tensor"), "config_groups": {"group_0": {}}}, None),
        (compressed("tensor", num_bits=4), None),
        (compressed("tensor", symmetric=False), None),
        (compressed("group"), None),
        (TWO_GROUPS, None),
        ({**packed("channel"), "transform_config": TRANSFORMS}, None),
        (
            {**packed("channel"), "transform_config": {"config_groups": {}}},
            ScaleScheme("_scale", 1, 0, bits=4),
        ),
        ({**packed("channel"), "transform_config": {}}, ScaleScheme("_scale", 1, 0, bits=4)),
        ("fp8", None),
    ],
)
def test_scheme_is_read_where_each_block_has_one_scale(
    stated: object, scheme: ScaleScheme | None
) -> None:
    for key in ("quantization_config", "compression_config"):
        assert read_scheme(ConfigReader({key: stated}, "config.json")) == scheme


@pytest.mark.parametrize(
    ("stated", "method"),
    [
        ({**BLOCKS_128, "weight_block_size": None}, "fp8 (e4m3)"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "modelopt (NVFP4)"),
        (
            {**compressed("tensor"), "format": "nvfp4-pack-quantized"},
            "compressed-tensors (nvfp4-pack-quantized)",
        ),
        (
            {**packed("channel"), "transform_config": TRANSFORMS},
            "compressed-tensors (pack-quantized) with transforms",
        ),
    ],
)
def test_other_schemes_are_refused_by_name(
    tmp_path: Path, stated: dict[str, Any], method: str
) -> None:
    folder = write_checkpoint(tmp_path / "m")
    edit_json(folder / "config.json", quantization_config=stated)
    problem = only_problem(folder)
    assert problem.code is ErrorCode.QUANTIZATION_UNSUPPORTED
    assert (problem.parameters["method"], problem.parameters["supported"]) == (method, READABLE)


def test_one_scale_may_be_stored_as_one_number_or_a_list_of_it(tmp_path: Path) -> None:
    matrices = scaled_matrices((0, 0))
    for shape in ((), (1,), (1, 1)):
        own = matrices[NAME]
        matrices[NAME] = Scaled(own.codes, own.scales.reshape(shape), own.block)
        folder = write_scaled(tmp_path / "m", compressed("tensor"), matrices, ending="_scale")
        assert inspect_folder(str(folder)).report.is_runnable


def test_missing_scale_is_named(tmp_path: Path) -> None:
    matrices = scaled_matrices(SMALL)
    folder = write_scaled(tmp_path / "m", SMALL_BLOCKS, matrices, ending="_scale")
    problem = only_problem(folder)
    assert problem.code is ErrorCode.TENSOR_MISSING
    assert problem.parameters["num_missing"] == len(matrices)
    assert str(problem.parameters["tensor"]).endswith("_proj.weight_scale_inv")


@pytest.mark.parametrize("quantization", [SMALL_BLOCKS, compressed("tensor")])
def test_scales_of_another_shape_are_named(tmp_path: Path, quantization: dict[str, Any]) -> None:
    is_whole = quantization is not SMALL_BLOCKS
    ending = "_scale" if is_whole else "_scale_inv"
    matrices = scaled_matrices((0, 0) if is_whole else SMALL)
    matrices[NAME] = Scaled(matrices[NAME].codes, np.ones((3, 2), np.float32), SMALL)
    problem = only_problem(write_scaled(tmp_path / "m", quantization, matrices, ending=ending))
    assert problem.code is ErrorCode.TENSOR_MISMATCHED
    assert problem.parameters["tensor"] == NAME + ending
    assert problem.parameters["found"] == "3 x 2"
    assert problem.parameters["expected"] == ("1 x 1" if is_whole else "2 x 3")


def test_matrix_in_eight_bits_of_another_shape_is_named(tmp_path: Path) -> None:
    matrices = scaled_matrices(SMALL)
    own = matrices[NAME]
    matrices[NAME] = Scaled(own.codes[:-1], own.scales, own.block)
    problem = only_problem(write_scaled(tmp_path / "m", SMALL_BLOCKS, matrices))
    assert (problem.code, problem.parameters["tensor"], problem.parameters["found"]) == (
        ErrorCode.TENSOR_MISMATCHED,
        NAME,
        "31 x 64",
    )


def test_eight_bits_without_a_scheme_are_refused_by_their_type(tmp_path: Path) -> None:
    folder = write_scaled(tmp_path / "m", SMALL_BLOCKS, scaled_matrices(SMALL))
    edit_json(folder / "config.json", quantization_config=None)
    problem = only_problem(folder)
    assert problem.code is ErrorCode.QUANTIZATION_UNSUPPORTED
    assert problem.parameters["method"] == "F8_E4M3"


def test_scales_in_eight_bits_are_refused_by_their_type(tmp_path: Path) -> None:
    matrices = scaled_matrices(SMALL)
    name = f"{NAME}_scale_inv"
    folder = write_scaled(tmp_path / "m", SMALL_BLOCKS, matrices)
    path = folder / "model.safetensors"
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = data[8 : 8 + length].decode()
    before, after = header.split(f'"{name}": {{"dtype": "F32", "shape": [2, 3]')
    changed = f'{before}"{name}": {{"dtype": "F8_E4M3", "shape": [4, 6]{after}'.encode()
    path.write_bytes(len(changed).to_bytes(8, "little") + changed + data[8 + length :])
    assert only_problem(folder).parameters["method"] == "F8_E4M3"


def test_packed_matrix_of_another_shape_and_one_without_scales_are_named(tmp_path: Path) -> None:
    matrices = scaled_matrices((1, 32), bits=4)
    scheme = packed("group", group_size=32)
    folder = write_scaled(tmp_path / "m", scheme, matrices, ending="_scale")
    assert inspect_folder(str(folder)).report.is_runnable
    own = matrices[NAME]
    matrices[NAME] = Scaled(own.codes[:, :48], own.scales, own.block, 4)
    problem = only_problem(write_scaled(tmp_path / "m", scheme, matrices, ending="_scale"))
    assert (problem.parameters["tensor"], problem.parameters["found"]) == (
        f"{NAME}_packed",
        "32 x 6",
    )
    matrices[NAME] = own
    problem = only_problem(write_scaled(tmp_path / "m", scheme, matrices, ending="_other"))
    assert problem.code is ErrorCode.TENSOR_MISSING
    assert problem.parameters["num_missing"] == len(matrices)


def test_words_where_none_are_expected_are_refused_by_their_type(tmp_path: Path) -> None:
    matrices = scaled_matrices((1, 32), bits=4)
    folder = write_scaled(tmp_path / "m", packed("group", group_size=32), matrices, ending="_scale")
    path = folder / "model.safetensors"
    data = path.read_bytes()
    path.write_bytes(data.replace(f"{NAME}_packed".encode(), f"{NAME}_packet".encode(), 1))
    problem = only_problem(folder)
    assert (problem.code, problem.parameters["tensor"]) == (ErrorCode.TENSOR_MISSING, NAME)
    edit_json(folder / "config.json", quantization_config=None)
    assert len(inspect_folder(str(folder)).report.problems) == 1


def test_output_matrix_in_four_bits_is_taken_although_config_says_tied(tmp_path: Path) -> None:
    scheme = packed("group", group_size=32)
    matrices = scaled_matrices((1, 32), bits=4)
    shape = (tiny_tensors(MODEL)["lm_head.weight"][1][0], MODEL.hidden_size)
    scales = np.full((shape[0], shape[1] // 32), np.float32(0.01))
    matrices["lm_head.weight"] = Scaled(np.full(shape, 3, np.uint8), scales, (1, 32), 4)
    folder = write_scaled(tmp_path / "m", scheme, matrices, ending="_scale")
    edit_json(folder / "config.json", tie_word_embeddings=True)
    inspection = inspect_folder(str(folder))
    assert inspection.report.problems == []
    assert inspection.tensors["lm_head.weight"].blocks is not None


def test_expert_in_four_bits_behind_plain_ones_of_another_kind_is_refused(tmp_path: Path) -> None:
    scheme = packed("group", group_size=32)
    matrices = scaled_matrices((1, 32), bits=4)
    kept = {name: own for name, own in matrices.items() if "layers.0." not in name}
    folder = write_scaled(tmp_path / "m", scheme, kept, ending="_scale")
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes().replace(b'"BF16"', b'"F16" '))
    problem = only_problem(folder)
    assert problem.code is ErrorCode.TENSOR_MISMATCHED
    assert problem.parameters["tensor"] == "model.layers.1.mlp.experts.0.gate_proj.weight_packed"
    assert (problem.parameters["found"], problem.parameters["expected"]) == ("bf16", "f16")


def test_packed_matrix_of_another_type_and_shape_is_named(tmp_path: Path) -> None:
    scheme = packed("group", group_size=32)
    folder = write_scaled(tmp_path / "m", scheme, scaled_matrices((1, 32), bits=4), ending="_scale")
    path = folder / "model.safetensors"
    begin = f'"{NAME}_packed": {{"dtype": '.encode()
    path.write_bytes(path.read_bytes().replace(begin + b'"I32"', begin + b'"F32"'))
    problem = only_problem(folder)
    assert problem.code is ErrorCode.TENSOR_MISMATCHED
    assert problem.parameters["tensor"] == f"{NAME}_packed"
