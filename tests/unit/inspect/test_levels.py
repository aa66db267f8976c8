"""Folders by GPTQ and AWQ: what is read, what is refused by name, and what is missing in them."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.errors import LarderError
from runtime.inspect.config import ConfigReader
from runtime.inspect.folder import inspect_folder
from runtime.inspect.levels import (
    LevelScheme,
    has_other_order,
    levels_name,
    read_levels,
    refused_variant,
)
from runtime.inspect.quantization import READABLE
from runtime.protocol.errors import ErrorCode, ErrorReport
from runtime.spec.tensors import LevelOrder
from tests.support.checkpoint_folders import (
    Tensor,
    edit_json,
    write_checkpoint,
    write_json,
)
from tests.support.level_folders import (
    AWQ,
    GPTQ,
    GPTQ_EIGHT,
    GPTQ_ZEROS,
    Change,
    published_matrices,
    write_levels,
)

INPUTS, OUTPUTS = LevelOrder.INPUTS, LevelOrder.OUTPUTS
UP = "model.layers.1.mlp.experts.2.up_proj"
QUERIES = "model.layers.0.self_attn.q_proj"


def problems_of(folder: Path) -> list[ErrorReport]:
    return inspect_folder(str(folder)).report.problems


@pytest.mark.parametrize(
    ("stated", "scheme"),
    [
        (GPTQ, LevelScheme(INPUTS, 4, 32, 1, is_centred=True)),
        ({**GPTQ, "checkpoint_format": "gptq"}, LevelScheme(INPUTS, 4, 32, 1, is_centred=True)),
        (GPTQ_EIGHT, LevelScheme(INPUTS, 8, 0, 1, is_centred=True)),
        (GPTQ_ZEROS, LevelScheme(INPUTS, 4, 64, 0)),
        ({**GPTQ, "format": "gptq_v2"}, LevelScheme(INPUTS, 4, 32, 0, is_centred=True)),
        ({**GPTQ, "dynamic": {"-:.*down.*": {}}}, LevelScheme(INPUTS, 4, 32, 1, is_centred=True)),
        ({**GPTQ, "dynamic": None}, LevelScheme(INPUTS, 4, 32, 1, is_centred=True)),
        ({**GPTQ, "desc_act": True}, LevelScheme(INPUTS, 4, 32, 1, is_centred=True)),
        (AWQ, LevelScheme(OUTPUTS, 4, 32)),
        (
            {"quant_method": "awq", "w_bit": 4, "q_group_size": 128, "version": "GEMM"},
            LevelScheme(OUTPUTS, 4, 128),
        ),
        ({"quant_method": "fp8"}, None),
        ("gptq", None),
    ],
)
def test_scheme_is_what_the_config_says(stated: object, scheme: LevelScheme | None) -> None:
    for key in ("quantization_config", "compression_config"):
        assert read_levels(ConfigReader({key: stated}, "config.json")) == scheme
    if isinstance(stated, dict):
        assert refused_variant(stated) == ""


@pytest.mark.parametrize(
    ("stated", "method"),
    [
        ({**GPTQ, "bits": 3}, "gptq with 3 bits"),
        ({**GPTQ, "bits": True}, "gptq with True bits"),
        ({**GPTQ, "bits": [4]}, "gptq with [4] bits"),
        ({**GPTQ_EIGHT, "sym": False}, "gptq with sym False in 8 bits"),
        ({**GPTQ, "sym": "yes"}, "gptq with sym yes in 4 bits"),
        ({**GPTQ, "checkpoint_format": "marlin"}, "gptq with checkpoint_format marlin"),
        ({**GPTQ, "checkpoint_format": ["gptq"]}, "gptq with checkpoint_format [gptq]"),
        ({**GPTQ, "format": "marlin"}, "gptq (marlin) with checkpoint_format marlin"),
        ({**GPTQ, "is_marlin_format": True}, "gptq with the order of Marlin"),
        ({**GPTQ, "pack_dtype": "int16"}, "gptq with pack_dtype int16"),
        (
            {**GPTQ, "dynamic": {"+:.*": {"bits": 8}}},
            "gptq with different schemes in one model (dynamic)",
        ),
        (
            {**GPTQ, "dynamic": ["+:.*"]},
            "gptq with different schemes in one model (dynamic)",
        ),
        ({**GPTQ, "group_size": 48}, "gptq with group_size 48"),
        ({**GPTQ, "group_size": 0}, "gptq with group_size 0"),
        ({**GPTQ, "group_size": 1 << 21}, "gptq with group_size 2097152"),
        ({"quant_method": "gptq", "bits": 4}, "gptq with group_size None"),
        ({**AWQ, "bits": 8}, "awq with 8 bits"),
        ({**AWQ, "version": "gemv"}, "awq with version gemv"),
        ({**AWQ, "version": 1}, "awq with version 1"),
        ({**AWQ, "zero_point": False}, "awq with no zero points"),
        ({**AWQ, "group_size": 16}, "awq with group_size 16"),
    ],
)
def test_other_variants_are_refused_by_name(
    tmp_path: Path, stated: dict[str, Any], method: str
) -> None:
    folder = write_checkpoint(tmp_path / "m")
    edit_json(folder / "config.json", quantization_config=stated)
    (problem,) = problems_of(folder)
    assert problem.code is ErrorCode.QUANTIZATION_UNSUPPORTED
    found = str(problem.parameters["method"]).replace("'", "")
    assert (found, problem.parameters["supported"]) == (method, READABLE)


@pytest.mark.parametrize(
    ("file", "stated", "method"),
    [
        ("quantize_config.json", GPTQ, {}),
        ("quantize_config.json", AWQ, {"quant_method": "awq"}),
        ("quant_config.json", AWQ, {}),
        (
            "quant_config.json",
            {"zero_point": True, "q_group_size": 32, "w_bit": 4, "version": "GEMM"},
            {},
        ),
    ],
)
def test_scheme_is_read_from_a_file_of_its_own(
    tmp_path: Path, file: str, stated: Mapping[str, Any], method: dict[str, str]
) -> None:
    """As the tools of both methods wrote it before configs said it."""
    written = {key: value for key, value in stated.items() if key != "quant_method"} | method
    of_config = GPTQ if stated is GPTQ else AWQ
    folder = write_levels(tmp_path / "m", of_config, published_matrices(of_config))
    said = inspect_folder(str(folder))
    edit_json(folder / "config.json", quantization_config=None)
    write_json(folder / file, written)
    inspection = inspect_folder(str(folder))
    assert inspection.report.problems == []
    assert inspection.experts == said.experts
    assert inspection.tensors == said.tensors
    edit_json(folder / file, damp_percent=0.1)
    # A prepared copy belongs to what the file says.
    assert inspect_folder(str(folder)).report.fingerprint != inspection.report.fingerprint


@pytest.mark.parametrize(
    ("file", "written", "method"),
    [
        ("quantize_config.json", {**GPTQ, "bits": 3}, "gptq with 3 bits"),
        ("quant_config.json", {"w_bit": 4, "version": "GEMV"}, "awq with version GEMV"),
        ("quant_config.json", {"quant_method": "hqq"}, "hqq"),
        ("hf_quant_config.json", {"quantization": {"quant_algo": "NVFP4"}}, "modelopt (NVFP4)"),
        ("hf_quant_config.json", {"quantization": None}, "modelopt"),
    ],
)
def test_other_scheme_in_a_file_of_its_own_is_refused_by_name(
    tmp_path: Path, file: str, written: dict[str, Any], method: str
) -> None:
    folder = write_checkpoint(tmp_path / "m")
    write_json(folder / file, written)
    (problem,) = problems_of(folder)
    assert problem.code is ErrorCode.QUANTIZATION_UNSUPPORTED
    assert str(problem.parameters["method"]).replace("'", "") == method
    assert problem.detail == file


def test_file_of_its_own_is_not_read_where_the_config_says_it(tmp_path: Path) -> None:
    folder = write_levels(tmp_path / "m", GPTQ, published_matrices(GPTQ))
    (folder / "quantize_config.json").write_text("no JSON")
    assert problems_of(folder) == []


def test_file_of_its_own_that_is_no_json_is_named(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m")
    (folder / "quantize_config.json").write_text("<html>")
    problem = problems_of(folder)[0]
    assert problem.code is ErrorCode.FILE_INVALID
    assert "quantize_config.json" in str(problem.parameters["file"])


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
anything = scalars | st.lists(scalars, max_size=2) | st.dictionaries(st.text(max_size=4), scalars)
fields = st.sampled_from([*GPTQ, *AWQ, "checkpoint_format", "dynamic", "w_bit", "pack_dtype"])


@given(
    base=st.sampled_from([GPTQ, GPTQ_EIGHT, GPTQ_ZEROS, AWQ]),
    changes=st.dictionaries(fields, anything, max_size=4),
)
def test_config_with_anything_in_its_fields_is_read_or_refused_by_name(
    base: Mapping[str, Any], changes: dict[str, Any]
) -> None:
    stated = {**base, **changes}
    scheme = read_levels(ConfigReader({"quantization_config": stated}, "config.json"))
    if stated["quant_method"] not in ("gptq", "awq"):
        assert (scheme, refused_variant(stated)) == (None, "")
        return
    assert (scheme is None) == bool(refused_variant(stated))
    if scheme is not None:
        assert scheme.bits in (4, 8)
        assert scheme.group_columns % 32 == 0
        assert scheme.bits == 4 or scheme.is_centred


parts = st.sampled_from([f"{UP}.{ending}" for ending in ("qweight", "qzeros", "scales", "g_idx")])
dtypes = st.sampled_from(["I32", "F16", "F32", "U8", "BF16", "I64", "F8_E4M3"])
sizes = st.lists(st.integers(0, 70), max_size=3).map(tuple)


@settings(max_examples=30, deadline=None)
@given(name=parts, dtype=dtypes, shape=sizes, is_awq=st.booleans())
def test_part_of_any_type_and_shape_is_taken_or_named(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    dtype: str,
    shape: tuple[int, ...],
    is_awq: bool,
) -> None:
    stated = AWQ if is_awq else GPTQ
    size = {"U8": 1, "F8_E4M3": 1, "F16": 2, "BF16": 2, "I64": 8}.get(dtype, 4)
    tensor = (dtype, shape, bytes(size * math.prod(shape)))
    before: list[Tensor | None] = []

    def change(tensors: dict[str, Tensor]) -> None:
        before.append(tensors.get(name))
        tensors[name] = tensor

    folder = tmp_path_factory.mktemp("m")
    problems = problems_of(write_levels(folder, stated, published_matrices(stated), change))
    # None: AWQ has no such tensor, and another one more does no harm.
    is_wrong = before[0] is not None and before[0][:2] != tensor[:2]
    named = [problem.parameters["tensor"] for problem in problems]
    assert named == ([name] if is_wrong else [])


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a.up_proj.weight", "a.up_proj.qweight"), ("a.up_proj.bias", ""), ("weight", "")],
)
def test_levels_stand_in_for_weights_alone(name: str, expected: str) -> None:
    assert levels_name(name) == expected


def dropped(ending: str) -> Change:
    def change(tensors: dict[str, Tensor]) -> None:
        del tensors[f"{UP}.{ending}"]

    return change


def cut(ending: str) -> Change:
    """Half of the first dimension is missing."""

    def change(tensors: dict[str, Tensor]) -> None:
        dtype, (first, *others), data = tensors[f"{UP}.{ending}"]
        tensors[f"{UP}.{ending}"] = (dtype, (first // 2, *others), data[: len(data) // 2])

    return change


def as_bf16(tensors: dict[str, Tensor]) -> None:
    _, shape, data = tensors[f"{UP}.scales"]
    tensors[f"{UP}.scales"] = ("BF16", shape, data)


def as_floats(tensors: dict[str, Tensor]) -> None:
    _, shape, data = tensors[f"{UP}.qweight"]
    tensors[f"{UP}.qweight"] = ("F32", shape, data)


@pytest.mark.parametrize(
    ("stated", "change", "code", "tensor", "found"),
    [
        (GPTQ, dropped("scales"), ErrorCode.TENSOR_MISSING, "scales", ""),
        (GPTQ, dropped("qzeros"), ErrorCode.TENSOR_MISSING, "qzeros", ""),
        (GPTQ, dropped("g_idx"), ErrorCode.TENSOR_MISSING, "g_idx", ""),
        (GPTQ, dropped("qweight"), ErrorCode.TENSOR_MISSING, "weight", ""),
        (AWQ, dropped("scales"), ErrorCode.TENSOR_MISSING, "scales", ""),
        (AWQ, dropped("qzeros"), ErrorCode.TENSOR_MISSING, "qzeros", ""),
        (GPTQ, cut("scales"), ErrorCode.TENSOR_MISMATCHED, "scales", "1 x 32"),
        (GPTQ, cut("qzeros"), ErrorCode.TENSOR_MISMATCHED, "qzeros", "1 x 4"),
        (GPTQ, cut("g_idx"), ErrorCode.TENSOR_MISMATCHED, "g_idx", "32"),
        (GPTQ, cut("qweight"), ErrorCode.TENSOR_MISMATCHED, "qweight", "4 x 32"),
        (AWQ, cut("scales"), ErrorCode.TENSOR_MISMATCHED, "scales", "1 x 32"),
        (AWQ, cut("qzeros"), ErrorCode.TENSOR_MISMATCHED, "qzeros", "1 x 4"),
        (AWQ, cut("qweight"), ErrorCode.TENSOR_MISMATCHED, "qweight", "32 x 4"),
        (GPTQ, as_bf16, ErrorCode.TENSOR_MISMATCHED, "scales", "BF16"),
        (AWQ, as_floats, ErrorCode.TENSOR_MISMATCHED, "qweight", "F32"),
    ],
)
def test_spoiled_parts_are_named(
    tmp_path: Path,
    stated: Mapping[str, Any],
    change: Change,
    code: ErrorCode,
    tensor: str,
    found: str,
) -> None:
    folder = write_levels(tmp_path / "m", stated, published_matrices(stated), change)
    (problem,) = problems_of(folder)
    assert problem.code is code
    assert problem.parameters["tensor"] == f"{UP}.{tensor}"
    if code is ErrorCode.TENSOR_MISMATCHED:
        assert problem.parameters["found"] == found
        assert str(folder) in str(problem.parameters["file"])
    else:
        assert problem.parameters["num_missing"] == 1


def shuffled(stem: str) -> Change:
    """The columns of a matrix, groups of 32, in the order of their weight."""

    def change(tensors: dict[str, Tensor]) -> None:
        dtype, shape, data = tensors[f"{stem}.g_idx"]
        tensors[f"{stem}.g_idx"] = (dtype, shape, np.frombuffer(data, np.int32)[::-1].tobytes())

    return change


GATE = "model.layers.0.mlp.experts.0.gate_proj"
ORDERED = {**GPTQ, "desc_act": True}


def test_columns_in_another_order_are_refused_by_name(tmp_path: Path) -> None:
    matrices = published_matrices(ORDERED)
    folder = write_levels(tmp_path / "m", ORDERED, matrices, shuffled(GATE))
    (problem,) = problems_of(folder)
    assert problem.code is ErrorCode.QUANTIZATION_UNSUPPORTED
    assert problem.parameters["method"] == "gptq with columns in another order (desc_act)"
    assert problem.parameters["supported"] == READABLE


def test_columns_of_the_dense_part_in_another_order_are_refused_by_name(tmp_path: Path) -> None:
    """Where experts were left alone."""
    matrices = {name: own for name, own in published_matrices(ORDERED).items() if "attn" in name}
    folder = write_levels(tmp_path / "m", ORDERED, matrices, shuffled(QUERIES))
    (problem,) = problems_of(folder)
    assert problem.code is ErrorCode.QUANTIZATION_UNSUPPORTED


@pytest.mark.parametrize("group_size", [32, -1])
def test_columns_that_stayed_in_order_are_taken_although_config_says_otherwise(
    tmp_path: Path, group_size: int
) -> None:
    """As where all columns share a scale, so that no order shows."""
    stated = {**ORDERED, "group_size": group_size}
    assert problems_of(write_levels(tmp_path / "m", stated, published_matrices(stated))) == []


@pytest.mark.parametrize("stated", [{**AWQ, "desc_act": True}, ORDERED])
def test_plain_and_other_weights_have_no_order(tmp_path: Path, stated: dict[str, Any]) -> None:
    matrices = published_matrices(AWQ) if stated["quant_method"] == "awq" else {}
    assert problems_of(write_levels(tmp_path / "m", stated, matrices)) == []


def test_groups_in_a_file_that_went_away_are_an_error_of_that_file(tmp_path: Path) -> None:
    inspection = inspect_folder(
        str(write_levels(tmp_path / "m", ORDERED, published_matrices(ORDERED)))
    )
    (tmp_path / "m" / "model.safetensors").unlink()
    config = ConfigReader({"quantization_config": ORDERED}, "config.json")
    with pytest.raises(LarderError) as refused:
        has_other_order(config, inspection.tensors.values())
    assert refused.value.code is ErrorCode.FILE_UNREADABLE
    assert "model.safetensors" in str(refused.value.parameters["file"])


def test_folder_of_the_other_method_is_told_by_the_shapes(tmp_path: Path) -> None:
    """The words of both methods have other shapes, so that none is taken for the other."""
    folder = write_levels(tmp_path / "m", AWQ, published_matrices(AWQ))
    edit_json(folder / "config.json", quantization_config=dict(GPTQ))
    codes = {problem.code for problem in problems_of(folder)}
    assert codes == {ErrorCode.TENSOR_MISSING, ErrorCode.TENSOR_MISMATCHED}


def with_bias(dtype: str, shape: tuple[int, ...], stem: str) -> Change:
    def change(tensors: dict[str, Tensor]) -> None:
        size = 2 if dtype == "F16" else 1
        tensors[f"{stem}.bias"] = (dtype, shape, bytes(size * math.prod(shape)))

    return change


@pytest.mark.parametrize("stem", [UP, QUERIES])
def test_bias_that_a_model_has_not_is_kept_to_be_checked(tmp_path: Path, stem: str) -> None:
    rows = published_matrices(GPTQ)[f"{stem}.weight"].codes.shape[0]
    change = with_bias("F16", (rows,), stem)
    inspection = inspect_folder(
        str(write_levels(tmp_path / "m", GPTQ, published_matrices(GPTQ), change))
    )
    assert inspection.report.problems == []
    experts = [entry for parts in inspection.experts.values() for entry in parts.values()]
    found = [
        entry.levels.bias.name
        for entry in (*inspection.tensors.values(), *experts)
        if entry.levels is not None and entry.levels.bias is not None
    ]
    assert found == [f"{stem}.bias"]


@pytest.mark.parametrize("stem", [UP, QUERIES])
@pytest.mark.parametrize(("dtype", "shape"), [("F16", (3,)), ("U8", (32,))])
def test_bias_of_another_kind_is_refused(
    tmp_path: Path, stem: str, dtype: str, shape: tuple[int, ...]
) -> None:
    change = with_bias(dtype, shape, stem)
    (problem,) = problems_of(write_levels(tmp_path / "m", GPTQ, published_matrices(GPTQ), change))
    assert f"{stem}.bias" in (problem.parameters.get("tensor"), problem.detail.split()[-1])


def test_bias_of_an_expert_that_is_not_in_levels_is_refused(tmp_path: Path) -> None:
    change = with_bias("F16", (32,), UP)
    (problem,) = problems_of(write_levels(tmp_path / "m", GPTQ, {}, change))
    assert problem.code is ErrorCode.TENSOR_MISMATCHED
    assert problem.parameters["tensor"] == f"{UP}.bias"
    assert (problem.parameters["found"], problem.parameters["expected"]) == ("a bias", "no bias")
