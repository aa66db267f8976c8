"""Blocks of GGUF files become what the format's own library says, exactly or within a bound."""

import dataclasses
import io

import gguf
import numpy as np
import pytest

from runtime.errors import LarderError
from runtime.kernels.formats import unpack
from runtime.protocol.errors import ErrorCode
from runtime.protocol.values import WeightFormat
from runtime.spec.gguf import EXACT_KINDS, HOME, PLAIN, GgufKind, GgufRows, Join
from runtime.spec.tensors import TensorEntry, matrix_bytes
from runtime.store import gguf_rows
from runtime.store.gguf_blocks import dequantise
from runtime.store.gguf_rows import gguf_pieces

ROWS, COLUMNS = 40, 512


class Memory:
    """A file in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def read(self, path: str, offset_bytes: int, targets: list[memoryview]) -> None:
        self._data.seek(offset_bytes)
        for target in targets:
            assert self._data.readinto(target) == target.nbytes


def theirs(kind: GgufKind) -> gguf.GGMLQuantizationType:
    return gguf.GGMLQuantizationType(kind.value[0])


def random_rows(kind: GgufKind, rows: int = ROWS, columns: int = COLUMNS) -> np.ndarray:
    """Any bits, with scales that are numbers of the size that models have."""
    random = np.random.default_rng(kind.value[0])
    data = random.integers(0, 256, (rows, kind.row_bytes(columns)), dtype=np.uint8)
    if kind in PLAIN:
        values = random.standard_normal((rows, columns)).astype(np.float32)
        if kind is GgufKind.BF16:
            return (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
        return (values if kind is GgufKind.F32 else values.astype(np.float16)).view(np.uint8)
    blocks = data.reshape(-1, kind.block_bytes)
    if kind is GgufKind.MXFP4:
        blocks[:, 0] = random.integers(100, 130, len(blocks))
        return data
    at = {GgufKind.Q2_K: 80, GgufKind.Q3_K: 108, GgufKind.Q6_K: 208}.get(kind, 0)
    count = 2 if kind.name in ("Q4_1", "Q5_1", "Q2_K", "Q4_K", "Q5_K") else 1
    scales = random.uniform(0.001, 0.01, (len(blocks), count)).astype(np.float16)
    blocks[:, at : at + 2 * count] = scales.view(np.uint8)
    return data


def entry_of(
    kind: GgufKind, shape: tuple[int, ...], home: WeightFormat, **rows: object
) -> TensorEntry:
    num_bytes = matrix_bytes(home, *(shape if len(shape) == 2 else (*shape, 1)))
    return TensorEntry("a", "f", 0, num_bytes, home, shape, gguf=GgufRows(kind, **rows))  # type: ignore[arg-type]


def pieces(data: bytes, entry: TensorEntry, home: WeightFormat) -> np.ndarray:
    made = b"".join(bytes(each) for each in gguf_pieces(Memory(data), entry, home))
    assert len(made) == entry.num_bytes
    return np.frombuffer(made, np.uint8)


def converted(kind: GgufKind, stored: np.ndarray, home: WeightFormat, heads: int = 0) -> np.ndarray:
    rows = len(stored)
    columns = stored.shape[1] // kind.block_bytes * kind.block_columns
    entry = entry_of(kind, (rows, columns), home, heads=heads)
    return unpack(home, pieces(stored.tobytes(), entry, home), rows, columns)


def test_kinds_have_the_sizes_of_the_library() -> None:
    for kind in GgufKind:
        assert gguf.GGML_QUANT_SIZES[theirs(kind)] == kind.value[1:]
        assert theirs(kind).name == kind.name


@pytest.mark.parametrize("kind", GgufKind)
def test_any_bits_stand_for_the_very_numbers_of_the_library(kind: GgufKind) -> None:
    random = np.random.default_rng(1)
    stored = random.integers(0, 256, (64, kind.row_bytes(COLUMNS)), dtype=np.uint8)
    with np.errstate(all="ignore"):
        expected = gguf.dequantize(stored, theirs(kind)).astype(np.float32)
        found = dequantise(kind, stored)
    same = found.view(np.uint32) == np.ascontiguousarray(expected).view(np.uint32)
    assert (same | (np.isnan(found) & np.isnan(expected))).all()


@pytest.mark.parametrize("kind", sorted(EXACT_KINDS, key=str))
def test_exact_kinds_keep_every_value(kind: GgufKind) -> None:
    stored = random_rows(kind)
    expected = gguf.dequantize(stored, theirs(kind)).astype(np.float32)
    np.testing.assert_array_equal(converted(kind, stored, HOME[kind]), expected)


@pytest.mark.parametrize("kind", [each for each in GgufKind if HOME[each] is WeightFormat.Q8_G32])
def test_eight_bits_are_at_most_half_a_level_away(kind: GgufKind) -> None:
    stored = random_rows(kind)
    expected = gguf.dequantize(stored, theirs(kind)).astype(np.float32)
    found = converted(kind, stored, WeightFormat.Q8_G32)
    groups = np.abs(expected.reshape(ROWS, -1, 32)).max(axis=2, keepdims=True)
    bound = np.broadcast_to(groups / 127 * 0.5 * 1.01, (ROWS, COLUMNS // 32, 32))
    assert (np.abs(found - expected) <= bound.reshape(ROWS, COLUMNS) + 1e-7).all()


@pytest.mark.parametrize("home", [WeightFormat.F32, WeightFormat.F16, WeightFormat.BF16])
@pytest.mark.parametrize("kind", [GgufKind.Q6_K, GgufKind.Q4_K, GgufKind.MXFP4])
def test_numbers_of_their_own_are_rounded_once(kind: GgufKind, home: WeightFormat) -> None:
    stored = random_rows(kind)
    expected = gguf.dequantize(stored, theirs(kind)).astype(np.float32)
    step = {WeightFormat.F32: 0.0, WeightFormat.F16: 2.0**-11, WeightFormat.BF16: 2.0**-8}[home]
    found = converted(kind, stored, home)
    assert (np.abs(found - expected) <= np.abs(expected) * step + 2.0**-25).all()


@pytest.mark.parametrize(("heads", "rows"), [(2, 40), (5, 60), (4, 512)])
def test_alternating_halves_of_heads_are_put_apart(
    heads: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_STRIPE_WEIGHTS", "_READ_WEIGHTS"):
        monkeypatch.setattr(gguf_rows, name, 1 << 13)
    stored = random_rows(GgufKind.Q8_0, rows)
    expected = gguf.dequantize(stored, theirs(GgufKind.Q8_0)).astype(np.float32)
    expected = expected.reshape(heads, -1, 2, COLUMNS).swapaxes(1, 2).reshape(rows, COLUMNS)
    found = converted(GgufKind.Q8_0, stored, WeightFormat.Q8_G32, heads)
    np.testing.assert_array_equal(found, expected)


def test_vector_of_heads_is_put_apart() -> None:
    values = np.arange(24, dtype=np.float32)
    entry = dataclasses.replace(
        entry_of(GgufKind.F32, (24,), WeightFormat.F32, heads=2), num_bytes=96
    )
    found = pieces(values.tobytes(), entry, WeightFormat.F32).view(np.float32)
    np.testing.assert_array_equal(found, values.reshape(2, 6, 2).swapaxes(1, 2).reshape(-1))


def test_odd_rows_are_filled_up() -> None:
    stored = random_rows(GgufKind.Q5_1, 13, 96)
    expected = gguf.dequantize(stored, theirs(GgufKind.Q5_1)).astype(np.float32)
    found = converted(GgufKind.Q5_1, stored, WeightFormat.Q8_G32)
    assert np.abs(found - expected).max() < 0.5 * 1.01 * np.abs(expected).max() / 127


def test_tiny_and_zero_weights_stay_near() -> None:
    stored = random_rows(GgufKind.Q4_1, 8, 64)
    blocks = stored.reshape(8, 2, -1)
    blocks[..., :4] = 0
    blocks[0, 0, :4] = np.array([4e-7, -3e-6], np.float16).view(np.uint8)
    expected = gguf.dequantize(stored, theirs(GgufKind.Q4_1)).astype(np.float32)
    assert 2e-6 < np.abs(expected).max() < 4e-6
    found = converted(GgufKind.Q4_1, stored, WeightFormat.Q8_G32)
    assert np.abs(found - expected).max() <= 2.0**-24
    assert not found[1:].any()


def joined(
    first: np.ndarray,
    second: np.ndarray,
    shape: tuple[int, int],
    join: Join,
    groups: int,
    second_shape: tuple[int, ...],
    kind: GgufKind = GgufKind.F32,
) -> np.ndarray:
    data = first.tobytes() + second.tobytes()
    other = TensorEntry(
        "b", "f", first.nbytes, second.nbytes, WeightFormat.F32, second_shape, gguf=GgufRows(kind)
    )
    entry = entry_of(kind, shape, WeightFormat.F32, join=join, second=other, groups=groups)
    return pieces(data, entry, WeightFormat.F32).view(np.float32).reshape(shape)


def test_keys_and_values_are_joined_head_by_head() -> None:
    random = np.random.default_rng(0)
    whole = random.standard_normal((3, 8 + 4, 32)).astype(np.float32)
    keys = np.ascontiguousarray(whole[:, :8].swapaxes(1, 2))
    values = np.ascontiguousarray(whole[:, 8:])
    found = joined(keys, values, (36, 32), Join.KEYS_AND_VALUES, 3, (3, 4, 32))
    np.testing.assert_array_equal(found, whole.reshape(36, 32))


def test_biases_are_joined_alternating() -> None:
    gate, up = np.arange(8.0, dtype=np.float32).reshape(2, 4), -np.ones((2, 4), np.float32)
    found = joined(gate, up, (2, 8), Join.ALTERNATING, 1, (2, 4))
    np.testing.assert_array_equal(found[:, ::2], gate)
    np.testing.assert_array_equal(found[:, 1::2], up)


@pytest.mark.parametrize("kind", [GgufKind.Q8_0, GgufKind.Q4_K, GgufKind.Q6_K, GgufKind.Q4_1])
def test_scale_that_is_no_number_is_refused_by_name(kind: GgufKind) -> None:
    for broken in range(2 if kind.name in ("Q4_K", "Q4_1") else 1):
        stored = random_rows(kind)
        at = (208 if kind is GgufKind.Q6_K else 0) + 2 * broken
        stored[3, at : at + 2] = np.array([np.nan], np.float16).view(np.uint8)
        with pytest.raises(LarderError) as caught:
            converted(kind, stored, HOME[kind])
        assert caught.value.code is ErrorCode.WEIGHTS_NOT_FINITE


def test_what_a_format_cannot_hold_is_refused() -> None:
    stored = random_rows(GgufKind.MXFP4)
    stored[0, 0] = 255
    with pytest.raises(LarderError) as caught:
        converted(GgufKind.MXFP4, stored, WeightFormat.MXFP4)
    assert caught.value.code is ErrorCode.WEIGHTS_NOT_FINITE
    # Scales are numbers, and weights are beyond what levels with scales in f16 reach.
    stored = np.full((8, GgufKind.IQ4_XS.row_bytes(256)), 127, np.uint8)
    stored[:, :2] = np.array([6e4], np.float16).view(np.uint8)
    with pytest.raises(LarderError) as caught:
        converted(GgufKind.IQ4_XS, stored, WeightFormat.Q8_G32)
    assert caught.value.code is ErrorCode.WEIGHTS_NOT_FINITE


def test_plain_numbers_as_stored_are_handed_on() -> None:
    stored = random_rows(GgufKind.F16)
    entry = entry_of(GgufKind.F16, (ROWS, COLUMNS), WeightFormat.F16)
    assert pieces(stored.tobytes(), entry, WeightFormat.F16).tobytes() == stored.tobytes()
