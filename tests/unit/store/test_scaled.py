"""Matrices in eight bits with scales: read with the numbers that their publisher means."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runtime.errors import LarderError
from runtime.inspect.folder import inspect_folder
from runtime.protocol.errors import ErrorCode
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import ExpertId, ExpertPart, ScaledBlocks, TensorEntry
from runtime.store.checkpoint import CheckpointStore
from runtime.store.scaled import e4m3_levels, scaled_pieces
from tests.support.scaled_folders import (
    SMALL_BLOCKS,
    Scaled,
    compressed,
    level_of,
    packed,
    rounded_to_bf16,
    scaled_matrices,
    words_of,
    write_scaled,
)

EXPERT = ExpertId(1, 2)
PREFIX = "model.layers.1.mlp.experts.2"
QUERIES = "model.layers.0.self_attn.q_proj.weight"
SMALL = (16, 24)


def opened(folder: Path, *, is_widened: bool = False) -> CheckpointStore:
    inspection = inspect_folder(str(folder))
    assert inspection.report.is_runnable, inspection.report.problems
    return CheckpointStore(inspection, prefers_direct=False, is_widened=is_widened)


def parts_of(store: CheckpointStore) -> dict[ExpertPart, np.ndarray]:
    """The matrices of the expert as f32."""
    record = bytearray(store.layout.record_bytes)
    store.read_expert(EXPERT, memoryview(record))
    found = {}
    for part, layout in store.layout.parts.items():
        data = record[layout.offset_bytes : layout.offset_bytes + layout.num_bytes]
        found[part] = numbers(data, layout.format).reshape(layout.rows, layout.columns)
    return found


def numbers(data: bytes | bytearray, weight_format: WeightFormat) -> np.ndarray:
    if weight_format is WeightFormat.F32:
        return np.frombuffer(data, np.float32)
    return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32)


def test_levels_are_those_of_e4m3() -> None:
    expected = np.array([level_of(code) for code in range(256)], np.float32)
    np.testing.assert_array_equal(e4m3_levels(), expected)
    assert np.nanmax(expected) == 448


@pytest.mark.parametrize(
    ("quantization", "block", "ending", "scale_dtype"),
    [
        (SMALL_BLOCKS, SMALL, "_scale_inv", "F32"),
        (SMALL_BLOCKS, SMALL, "_scale_inv", "BF16"),
        (compressed("block", block_structure=[16, 24]), SMALL, "_scale", "F16"),
        (compressed("channel"), (1, 0), "_scale", "F32"),
        (compressed("tensor"), (0, 0), "_scale", "F32"),
        (packed("group", group_size=24), (1, 24), "_scale", "F32"),
        (packed("group", group_size=32), (1, 32), "_scale", "BF16"),
        (packed("channel"), (1, 0), "_scale", "F16"),
    ],
)
def test_scaled_matrices_are_multiplied_in_f32_and_rounded_once(
    tmp_path: Path,
    quantization: dict[str, Any],
    block: tuple[int, int],
    ending: str,
    scale_dtype: str,
) -> None:
    bits = 4 if quantization.get("format") == "pack-quantized" else 8
    matrices = scaled_matrices(block, bits=bits)
    if scale_dtype != "F32":
        # Those that the type of the scales holds.
        matrices = {
            name: Scaled(own.codes, np.full_like(own.scales, 1.75 * 2.0**-9), own.block, bits)
            for name, own in matrices.items()
        }
    folder = write_scaled(
        tmp_path / "m", quantization, matrices, ending=ending, scale_dtype=scale_dtype
    )
    for is_widened in (False, True):
        store = opened(folder, is_widened=is_widened)
        for part, found in parts_of(store).items():
            exact = matrices[f"{PREFIX}.{part}_proj.weight"].values()
            expected = exact if is_widened else rounded_to_bf16(exact)
            np.testing.assert_array_equal(found, expected)
        entry = store.dense_tensors[QUERIES]
        data = bytearray(entry.num_bytes)
        store.read_tensor(entry, memoryview(data))
        expected = rounded_to_bf16(matrices[QUERIES].values())
        found = numbers(data, WeightFormat.BF16).reshape(entry.shape)
        np.testing.assert_array_equal(found, expected)
        room = memoryview(bytearray(1000))
        pieces = b"".join(bytes(piece) for piece in store.tensor_pieces(entry, room))
        assert pieces == data
        store.close()


def test_packed_expert_counts_as_what_it_takes_on_the_drive(tmp_path: Path) -> None:
    matrices = scaled_matrices((1, 32), bits=4)
    folder = write_scaled(tmp_path / "m", packed("group", group_size=32), matrices, ending="_scale")
    report = inspect_folder(str(folder)).report
    # Half a byte for each weight, and four for each 32 of them.
    assert report.expert_bytes == 3 * (1024 + 64 * 4)
    assert report.published_bits == 4
    store = opened(folder)
    before = store.num_bytes_read
    parts_of(store)
    assert store.num_bytes_read - before == report.expert_bytes
    store.close()


def test_scaled_expert_counts_as_what_it_takes_on_the_drive(tmp_path: Path) -> None:
    folder = write_scaled(tmp_path / "m", SMALL_BLOCKS, scaled_matrices(SMALL))
    report = inspect_folder(str(folder)).report
    # Matrices of 32 x 64: 2 x 3 blocks; one of 64 x 32: 4 x 2.
    assert report.expert_bytes == 3 * 2048 + 4 * (6 + 6 + 8)
    assert (report.stored_format, report.published_bits) == (WeightFormat.BF16, 8)
    store = opened(folder)
    before = store.num_bytes_read
    parts_of(store)
    assert store.num_bytes_read - before == report.expert_bytes
    store.close()


@pytest.mark.parametrize(
    ("value", "code", "found"),
    [
        (np.nan, ErrorCode.WEIGHTS_NOT_FINITE, ""),
        (np.inf, ErrorCode.WEIGHTS_NOT_FINITE, ""),
        (0.0, ErrorCode.TENSOR_MISMATCHED, "0 in one place"),
        (-0.5, ErrorCode.TENSOR_MISMATCHED, "-0.5 in one place"),
        (1e36, ErrorCode.TENSOR_MISMATCHED, "1e+36 in one place"),
    ],
)
def test_scale_that_is_no_scale_is_refused_by_name(
    tmp_path: Path, value: float, code: ErrorCode, found: str
) -> None:
    matrices = scaled_matrices(SMALL)
    name = f"{PREFIX}.up_proj.weight"
    matrices[name].scales[1, 2] = value
    store = opened(write_scaled(tmp_path / "m", SMALL_BLOCKS, matrices))
    with pytest.raises(LarderError) as refused:
        parts_of(store)
    store.close()
    error = refused.value
    assert error.code is code
    if code is ErrorCode.TENSOR_MISMATCHED:
        assert error.parameters["tensor"] == f"{name}_scale_inv"
        assert error.parameters["found"] == found
    else:
        assert f"{name}_scale_inv" in str(error.parameters["place"])


@pytest.mark.parametrize("code", [0x7F, 0xFF])
def test_weight_that_is_no_number_is_refused_by_name(tmp_path: Path, code: int) -> None:
    matrices = scaled_matrices(SMALL)
    matrices[QUERIES].codes[-1, -1] = code
    store = opened(write_scaled(tmp_path / "m", SMALL_BLOCKS, matrices))
    entry = store.dense_tensors[QUERIES]
    with pytest.raises(LarderError) as refused:
        store.read_tensor(entry, memoryview(bytearray(entry.num_bytes)))
    store.close()
    assert refused.value.code is ErrorCode.WEIGHTS_NOT_FINITE
    assert QUERIES in str(refused.value.parameters["place"])


class InMemory:
    """Ranges of one pretended file."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def read(self, path: str, offset_bytes: int, targets: list[memoryview]) -> None:
        assert path == "f"
        for target in targets:
            target.cast("B")[:] = self.data[offset_bytes : offset_bytes + target.nbytes]
            offset_bytes += target.nbytes


@pytest.mark.parametrize("shape", [(828, 4097), (400, 10_944), (50, 100_000)])
def test_large_matrix_in_four_bits_comes_in_stripes(shape: tuple[int, int]) -> None:
    generator = np.random.default_rng(0)
    columns = shape[1]
    codes = generator.integers(0, 16, shape, np.uint8)
    scales = generator.uniform(-1, 1, (shape[0], -(-columns // 128))).astype(np.float32)
    scales = np.abs(scales) + np.float32(0.01)
    words = words_of(codes)
    files = InMemory(words.tobytes() + scales.tobytes())
    own = TensorEntry("s", "f", words.nbytes, scales.nbytes, WeightFormat.F32, scales.shape)
    blocks = ScaledBlocks(own, 1, 128, 4)
    entry = TensorEntry("w", "f", 0, 2 * codes.size, WeightFormat.BF16, shape, blocks=blocks)
    pieces = [bytes(piece) for piece in scaled_pieces(files, entry, WeightFormat.F32)]
    found = np.frombuffer(b"".join(pieces), np.float32).reshape(shape)
    np.testing.assert_array_equal(found, Scaled(codes, scales, (1, 128), 4).values())


@pytest.mark.parametrize("block", [(128, 128), (1, 5000), (2001, 5000), (1500, 128)])
def test_large_matrix_comes_in_stripes_that_end_anywhere_in_a_block(
    block: tuple[int, int],
) -> None:
    generator = np.random.default_rng(0)
    rows, columns = shape = (2001, 5000)
    codes = generator.integers(0, 127, shape, np.uint8)
    grid = (-(-rows // block[0]), -(-columns // block[1]))
    scales = generator.uniform(1e-4, 1e-3, grid).astype(np.float32)
    files = InMemory(codes.tobytes() + scales.tobytes())
    own = TensorEntry("s", "f", codes.size, scales.nbytes, WeightFormat.F32, grid)
    entry = TensorEntry(
        "w", "f", 0, 2 * codes.size, WeightFormat.BF16, shape, blocks=ScaledBlocks(own, *block)
    )
    pieces = [bytes(piece) for piece in scaled_pieces(files, entry, WeightFormat.F32)]
    assert len(pieces) > 1
    found = np.frombuffer(b"".join(pieces), np.float32).reshape(shape)
    np.testing.assert_array_equal(found, Scaled(codes, scales, block).values())
