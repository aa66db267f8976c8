"""The extension puts blocks of GGUF files right to the very bits of the plain code."""

from collections.abc import Iterator
from unittest import mock

import numpy as np
import numpy.typing as npt
import pytest

from runtime.errors import LarderError
from runtime.native.loader import load_native
from runtime.protocol.values import WeightFormat
from runtime.spec.gguf import GgufKind, GgufRows
from runtime.spec.tensors import TensorEntry, matrix_bytes
from runtime.store import gguf_rows

COLUMNS = 768
PAIRS = list(gguf_rows.REPACKED.items())
F16_AT = {
    GgufKind.Q6_K: (208,),
    GgufKind.Q4_K: (0, 2),
    GgufKind.Q5_K: (0, 2),
    GgufKind.Q3_K: (108,),
    GgufKind.Q2_K: (80, 82),
}
"""Where blocks have numbers of two bytes; others but MXFP4 begin with one."""
Stored = npt.NDArray[np.uint8]


def random_rows(kind: GgufKind, rows: int, scales: npt.NDArray[np.float16], seed: int) -> Stored:
    """Return any bits, with scales drawn from some."""
    random = np.random.default_rng(seed)
    data = random.integers(0, 256, (rows, kind.row_bytes(COLUMNS)), dtype=np.uint8)
    blocks = data.reshape(-1, kind.block_bytes)
    if kind is GgufKind.MXFP4:
        blocks[:, 0] = random.integers(0, 253, len(blocks))
        return data
    for at in F16_AT.get(kind, (0,)):
        drawn = random.choice(scales, (len(blocks), 1))
        blocks[:, at : at + 2] = drawn.view(np.uint8)
    return data


def entry_of(kind: GgufKind, rows: int, home: WeightFormat) -> TensorEntry:
    size = matrix_bytes(home, rows, COLUMNS)
    return TensorEntry("a", "f", 0, size, home, (rows, COLUMNS), gguf=GgufRows(kind))


def made(kind: GgufKind, stored: Stored, home: WeightFormat) -> bytes:
    """Return what the program makes of rows."""

    class Memory:
        def read(self, _path: str, offset_bytes: int, targets: list[memoryview]) -> None:
            for target in targets:
                target[:] = stored.tobytes()[offset_bytes : offset_bytes + target.nbytes]

    pieces: Iterator[memoryview] = gguf_rows.gguf_pieces(
        Memory(), entry_of(kind, len(stored), home), home
    )
    return b"".join(bytes(piece) for piece in pieces)


def plainly(kind: GgufKind, stored: Stored, home: WeightFormat) -> bytes:
    """Return what the plain code makes of rows."""
    with mock.patch.object(gguf_rows, "load_native", return_value=None):
        return made(kind, stored, home)


def scales_from(low: float, high: float) -> npt.NDArray[np.float16]:
    return np.geomspace(low, high, 97).astype(np.float16)


@pytest.mark.parametrize(
    "scales",
    [
        scales_from(0.0005, 0.01),
        scales_from(6e-8, 2e-5),  # below the numbers that f16 holds in full
        scales_from(1, 500),
        np.array([0, -0.0, 0.002], np.float16),
    ],
    ids=["of models", "tiny", "large", "nothing"],
)
@pytest.mark.parametrize("rows", [1, 8, 37])
@pytest.mark.parametrize(("kind", "home"), PAIRS)
def test_repacked_bits_are_those_of_the_plain_code(
    kind: GgufKind, home: WeightFormat, rows: int, scales: npt.NDArray[np.float16]
) -> None:
    stored = random_rows(kind, rows, scales, seed=rows)
    native = load_native()
    assert native is not None
    with mock.patch.object(gguf_rows, "load_native", return_value=mock.Mock(wraps=native)) as load:
        found = made(kind, stored, home)
        load.return_value.repack.assert_called()
    assert found == plainly(kind, stored, home)


@pytest.mark.parametrize("name", ["portable", "avx2", "avx512"])
@pytest.mark.parametrize(("kind", "home"), PAIRS)
def test_every_instruction_set_gives_the_same_bits(
    kind: GgufKind, home: WeightFormat, name: str
) -> None:
    native = load_native()
    assert native is not None
    usual = native.instruction_set()
    if not native.select_instruction_set(name):
        pytest.skip(f"this processor lacks {name}")
    try:
        stored = random_rows(kind, 21, scales_from(0.0001, 0.1), seed=21)
        assert made(kind, stored, home) == plainly(kind, stored, home)
    finally:
        native.select_instruction_set(usual)


@pytest.mark.parametrize(
    "scales", [scales_from(0.0005, 0.01) * np.float16(-1)], ids=["below nothing"]
)
@pytest.mark.parametrize(("kind", "home"), PAIRS)
def test_negative_scales_are_repacked(
    kind: GgufKind, home: WeightFormat, scales: npt.NDArray[np.float16]
) -> None:
    stored = random_rows(kind, 8, scales, seed=5)
    assert made(kind, stored, home) == plainly(kind, stored, home)


@pytest.mark.parametrize(("kind", "home"), PAIRS)
@pytest.mark.parametrize("fault", [np.nan, np.inf, -np.inf])
def test_scale_that_is_no_number_is_named_as_by_the_plain_code(
    kind: GgufKind, home: WeightFormat, fault: float
) -> None:
    stored = random_rows(kind, 8, scales_from(0.0005, 0.01), seed=3)
    block = stored.reshape(-1, kind.block_bytes)[4]
    if kind is GgufKind.MXFP4:
        block[0] = 255
    else:
        at = F16_AT.get(kind, (0,))[-1]
        block[at : at + 2] = np.array([fault], np.float16).view(np.uint8)
    with pytest.raises(LarderError) as by_us:
        made(kind, stored, home)
    with pytest.raises(LarderError) as plain:
        plainly(kind, stored, home)
    assert by_us.value.code is plain.value.code
    assert by_us.value.parameters == plain.value.parameters
    assert "matrix a " in str(by_us.value.parameters["place"])


def test_kinds_and_formats_that_it_does_not_know_are_left_to_the_plain_code() -> None:
    native = load_native()
    assert native is not None
    assert not native.repack(GgufKind.IQ4_XS.value[0], 3, 0, 8, 256, 0)
    assert not native.repack(GgufKind.Q4_K.value[0], 0, 0, 8, 256, 0)
    assert not native.repack(GgufKind.Q4_K.value[0], 3, 0, 8, 256, 0)
    with pytest.raises(ValueError, match="format"):
        native.repack(GgufKind.Q4_K.value[0], 99, 0, 8, 256, 0)
