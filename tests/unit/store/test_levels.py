"""Matrices by GPTQ and AWQ: read bit for bit as the formula that their publishers give."""

import contextlib
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from runtime.errors import LarderError
from runtime.inspect.config import ConfigReader
from runtime.inspect.folder import inspect_folder
from runtime.inspect.levels import LevelScheme, as_expert, level_entry, read_levels
from runtime.kernels.formats import unpack
from runtime.protocol.errors import ErrorCode
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import ExpertId, TensorEntry
from runtime.store.checkpoint import CheckpointStore
from runtime.store.levels import level_pieces
from tests.support.checkpoint_folders import Tensor, tiny_tensors
from tests.support.level_folders import (
    AWQ,
    GPTQ,
    GPTQ_ZEROS,
    MODEL,
    STATED,
    Published,
    packed_tensors,
    published_matrices,
    random_published,
    write_levels,
)

EXPERT = ExpertId(1, 2)
PREFIX = "model.layers.1.mlp.experts.2"
QUERIES = "model.layers.0.self_attn.q_proj"
FORMATS = {
    "gptq": WeightFormat.Q4_G32,
    "gptq-eight": WeightFormat.Q8_G32,
    "gptq-zeros": WeightFormat.Q8_G32,
    "awq": WeightFormat.Q8_G32,
}


class InMemory:
    """Tensors one after another in one pretended file."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._data = b"".join(data for _, _, data in tensors.values())
        self._tensors = tensors

    def take(
        self, name: str, shape: tuple[int, ...], formats: Mapping[str, WeightFormat]
    ) -> TensorEntry:
        dtype, found, data = self._tensors[name]
        assert (found, dtype in formats) == (shape, True)
        names = list(self._tensors)
        before = sum(len(self._tensors[each][2]) for each in names[: names.index(name)])
        return TensorEntry(name, "f", before, len(data), formats[dtype], shape)

    def read(self, path: str, offset_bytes: int, targets: list[memoryview]) -> None:
        assert path == "f"
        for target in targets:
            target.cast("B")[:] = self._data[offset_bytes : offset_bytes + target.nbytes]
            offset_bytes += target.nbytes


def scheme_of(stated: Mapping[str, Any]) -> LevelScheme:
    scheme = read_levels(ConfigReader({"quantization_config": dict(stated)}, "config.json"))
    assert scheme is not None
    return scheme


def both_ways(stated: Mapping[str, Any], own: Published) -> tuple[np.ndarray, np.ndarray]:
    """The matrix as the store reads it in f32, and what its record stands for."""
    scheme = scheme_of(stated)
    files = InMemory(packed_tensors(stated, "w", own))
    dense = level_entry(scheme, files.take, "w.weight", own.codes.shape)
    assert dense is not None
    assert dense.format is WeightFormat.F32
    plain = b"".join(level_pieces(files, dense, dense.format))
    assert len(plain) == dense.num_bytes
    record_entry = as_expert(scheme, dense)
    pieces = level_pieces(files, record_entry, record_entry.format)
    record = np.frombuffer(b"".join(pieces), np.uint8)
    assert len(record) == record_entry.num_bytes
    values = unpack(record_entry.format, record, *own.codes.shape)
    return np.frombuffer(plain, np.float32).reshape(own.codes.shape), values


def bits_of(values: np.ndarray) -> np.ndarray:
    bits: np.ndarray = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return bits


finite_halves = st.integers(0, 0xFFFF).filter(lambda bits: bits & 0x7C00 != 0x7C00)


@st.composite
def publications(draw: st.DrawFn) -> tuple[Mapping[str, Any], Published]:
    size = draw(st.sampled_from([-1, 32, 64, 96, 128]))
    stated = {**STATED[draw(st.sampled_from(sorted(STATED)))], "group_size": size}
    if stated["quant_method"] == "gptq":
        stated["checkpoint_format"] = draw(st.sampled_from(["gptq", "gptq_v2"]))
    shape = (draw(st.integers(1, 20)), draw(st.integers(1, 150)))
    own = random_published(stated, shape, np.random.default_rng(draw(st.integers(0, 1 << 32))))
    halves = draw(st.lists(finite_halves, min_size=1, max_size=12))
    own.scales[:] = np.resize(np.array(halves, np.uint16).view(np.float16), own.scales.shape)
    return stated, own


@given(publication=publications())
def test_levels_of_any_shape_and_scale_are_read_without_rounding(
    publication: tuple[Mapping[str, Any], Published],
) -> None:
    stated, own = publication
    expected = bits_of(own.values())
    plain, record = both_ways(stated, own)
    np.testing.assert_array_equal(bits_of(plain), expected)
    np.testing.assert_array_equal(bits_of(record), expected)


@pytest.mark.parametrize("kind", sorted(STATED))
def test_every_level_and_zero_that_can_be_stored_is_held(kind: str) -> None:
    stated = {**STATED[kind], "group_size": -1}
    num_levels = 1 << int(stated["bits"])
    middle = num_levels // 2
    zeros = np.arange(num_levels) if not stated.get("sym") else np.full(num_levels, middle)
    codes = np.tile(np.arange(num_levels), (num_levels, 1))
    scales = np.full((num_levels, 1), np.float16(0.0123))
    own = Published(codes, zeros[:, None], scales, num_levels)
    for found in both_ways(stated, own):
        np.testing.assert_array_equal(bits_of(found), bits_of(own.values()))


def test_zeros_of_the_first_version_borrow_from_each_other_in_a_word() -> None:
    """As GPTQModel stores and reads them: one less in each level, taken off the whole word."""
    zeros = np.array([[0], [5], [0], [0], [1], [15], [8], [0]])
    own = Published(np.full((8, 32), 9), zeros, np.full((8, 1), np.float16(0.5)), 32)
    stated = {**GPTQ, "sym": False, "checkpoint_format": "gptq"}
    _, _, stored = packed_tensors(stated, "w", own)["w.qzeros"]
    assert int.from_bytes(stored, "little") == (0x08F10050 - 0x11111111) % (1 << 32)
    for found in both_ways(stated, own):
        np.testing.assert_array_equal(found[:, 0], (9 - zeros[:, 0]) / 2)


def test_products_need_more_bits_than_f16_has() -> None:
    """So that a matrix cannot be handed on in f16 or bf16 without rounding."""
    products = np.float32(np.float16(0.0123)) * np.arange(-15, 16, dtype=np.float32)
    assert (products.astype(np.float16).astype(np.float32) != products).any()


@pytest.mark.parametrize("stated", [GPTQ, AWQ])
def test_large_matrix_in_whole_levels_comes_in_stripes(stated: Mapping[str, Any]) -> None:
    own = random_published(stated, (1044, 2080), np.random.default_rng(1))
    for found in both_ways(stated, own):
        np.testing.assert_array_equal(found, own.values())


@pytest.mark.parametrize("kind", sorted(STATED))
def test_folder_in_whole_levels_is_read_in_place(tmp_path: Path, kind: str) -> None:
    stated = STATED[kind]
    matrices = published_matrices(stated)
    inspection = inspect_folder(str(write_levels(tmp_path / "m", stated, matrices)))
    report = inspection.report
    assert report.is_runnable, report.problems
    assert (report.stored_format, report.published_bits) == (FORMATS[kind], 0)
    store = CheckpointStore(inspection, prefers_direct=False)
    record = np.zeros(store.layout.record_bytes, np.uint8)
    before = store.num_bytes_read
    store.read_expert(EXPERT, record.data)
    stored = matrices[f"{PREFIX}.up_proj.weight"].codes.size * int(stated["bits"]) // 8
    assert store.num_bytes_read - before > 3 * stored
    for part, layout in store.layout.parts.items():
        data = record[layout.offset_bytes : layout.offset_bytes + layout.num_bytes]
        found = unpack(layout.format, data, layout.rows, layout.columns)
        expected = matrices[f"{PREFIX}.{part}_proj.weight"].values()
        np.testing.assert_array_equal(found, expected)
    entry = store.dense_tensors[f"{QUERIES}.weight"]
    data = np.zeros(entry.num_bytes, np.uint8)
    store.read_tensor(entry, data.data)
    expected = matrices[f"{QUERIES}.weight"].values()
    np.testing.assert_array_equal(data.view(np.float32).reshape(entry.shape), expected)
    room = memoryview(bytearray(1000))
    assert b"".join(map(bytes, store.tensor_pieces(entry, room))) == data.tobytes()
    store.close()


@pytest.mark.parametrize("kind", sorted(STATED))
@pytest.mark.parametrize("dtype", ["F16", "BF16", "F32"])
def test_matrices_left_alone_stand_beside_those_in_levels_exactly(
    tmp_path: Path, kind: str, dtype: str
) -> None:
    """One expert with one matrix that was left alone, one with all of them, one with none."""
    matrices = published_matrices(STATED[kind])
    other = ExpertId(0, 1)
    plain = tiny_tensors(dataclasses.replace(MODEL, dtype=dtype))
    left = {name for name in matrices if ".layers.0.mlp.experts.1." in name}
    left.add(f"{PREFIX}.up_proj.weight")

    def change(tensors: dict[str, Tensor]) -> None:
        tensors.update({name: plain[name] for name in left})

    kept = {name: own for name, own in matrices.items() if name not in left}
    folder = write_levels(tmp_path / "m", STATED[kind], kept, change)
    store = CheckpointStore(inspect_folder(str(folder)), prefers_direct=False)
    for expert in (EXPERT, other, ExpertId(1, 0)):
        record = np.full(store.layout.record_bytes, 0xA5, np.uint8)
        store.read_expert(expert, record.data)
        for part, layout in store.layout.parts.items():
            name = f"model.layers.{expert.layer}.mlp.experts.{expert.expert}.{part}_proj.weight"
            shape = (layout.rows, layout.columns)
            expected = plain_values(plain[name]) if name in left else matrices[name].values()
            data = record[layout.offset_bytes : layout.offset_bytes + layout.num_bytes]
            assert layout.format is WeightFormat.F32
            found = data.view(np.float32).reshape(shape)
            np.testing.assert_array_equal(bits_of(found), bits_of(expected.reshape(shape)))
    store.close()


def plain_values(tensor: Tensor) -> np.ndarray:
    """What the numbers of a plain tensor are in f32."""
    dtype, _, data = tensor
    if dtype == "BF16":
        # The upper half of an f32.
        data = b"".join(b"\0\0" + data[begin : begin + 2] for begin in range(0, len(data), 2))
    return np.frombuffer(data, "<f2" if dtype == "F16" else "<f4").astype(np.float32)


def spoiled(name: str, array: np.ndarray) -> Any:
    """Return what replaces the numbers of a tensor."""

    def change(tensors: dict[str, Tensor]) -> None:
        dtype, shape, data = tensors[name]
        assert len(data) == array.nbytes
        tensors[name] = (dtype, shape, array.tobytes())

    return change


@pytest.mark.parametrize(
    ("stated", "ending", "array", "code", "found"),
    [
        (GPTQ, "scales", np.full(128, np.nan, np.float16), ErrorCode.WEIGHTS_NOT_FINITE, ""),
        (AWQ, "scales", np.full(128, np.inf, np.float16), ErrorCode.WEIGHTS_NOT_FINITE, ""),
        (
            GPTQ,
            "qzeros",
            np.full(16, 0x77767777, np.int32),
            ErrorCode.TENSOR_MISMATCHED,
            "7 in one place",
        ),
        (
            GPTQ_ZEROS,
            "g_idx",
            np.arange(64, dtype=np.int32)[::-1].copy() // 32,
            ErrorCode.TENSOR_MISMATCHED,
            "columns in another order",
        ),
        (
            {**GPTQ, "desc_act": True},
            "g_idx",
            np.arange(64, dtype=np.int32)[::-1].copy() // 32,
            ErrorCode.TENSOR_MISMATCHED,
            "columns in another order",
        ),
        (
            GPTQ,
            "g_idx",
            np.full(64, -1, np.int32),
            ErrorCode.TENSOR_MISMATCHED,
            "columns in another order",
        ),
    ],
)
def test_parts_that_contradict_the_config_are_refused_by_name(
    tmp_path: Path,
    stated: Mapping[str, Any],
    ending: str,
    array: np.ndarray,
    code: ErrorCode,
    found: str,
) -> None:
    name = f"{QUERIES}.{ending}"
    folder = write_levels(tmp_path / "m", stated, published_matrices(stated), spoiled(name, array))
    store = CheckpointStore(inspect_folder(str(folder)), prefers_direct=False)
    entry = store.dense_tensors[f"{QUERIES}.weight"]
    with pytest.raises(LarderError) as refused:
        store.read_tensor(entry, memoryview(bytearray(entry.num_bytes)))
    store.close()
    error = refused.value
    assert error.code is code
    if code is ErrorCode.TENSOR_MISMATCHED:
        assert (error.parameters["tensor"], error.parameters["found"]) == (name, found)
        assert str(folder) in str(error.parameters["file"])
    else:
        assert name in str(error.parameters["place"])


@pytest.mark.parametrize("stem", [QUERIES, f"{PREFIX}.up_proj"])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_bias_that_a_model_has_not_may_hold_nothing_but_zeros(
    tmp_path: Path, stem: str, value: float
) -> None:
    matrices = published_matrices(GPTQ)
    bias = np.zeros(len(matrices[f"{stem}.weight"].codes), np.float16)
    bias[-1] = value

    def change(tensors: dict[str, Tensor]) -> None:
        tensors[f"{stem}.bias"] = ("F16", bias.shape, bias.tobytes())

    folder = write_levels(tmp_path / "m", GPTQ, matrices, change)
    store = CheckpointStore(inspect_folder(str(folder)), prefers_direct=False)
    entry = store.dense_tensors[f"{QUERIES}.weight"]
    refusal = contextlib.nullcontext() if value == 0 else pytest.raises(LarderError)
    with refusal as refused:
        store.read_tensor(entry, memoryview(bytearray(entry.num_bytes)))
        store.read_expert(EXPERT, memoryview(bytearray(store.layout.record_bytes)))
    store.close()
    if refused is not None:
        assert refused.value.code is ErrorCode.TENSOR_MISMATCHED
        assert refused.value.parameters["tensor"] == f"{stem}.bias"
        assert refused.value.parameters["found"] == "a bias"
