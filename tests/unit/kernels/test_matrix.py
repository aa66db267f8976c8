"""Matrices, slots and KV pages over other people's buffers."""

import mmap

import numpy as np
import pytest
import torch

from runtime.kernels.kv import KvPages
from runtime.kernels.matrix import Matrix, Slot
from runtime.kernels.reference import ReferenceKernels, weights_of
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import PLAIN_FORMATS, ExpertPart, MatrixLayout, expert_layout
from tests.support.kernel_inputs import random_matrix, random_rows


def test_matrix_from_buffer_reads_in_place() -> None:
    buffer = bytearray(np.arange(8, dtype=np.float32).tobytes())
    layout = MatrixLayout(WeightFormat.F32, 2, 3, 8, 24)
    matrix = Matrix.from_buffer(layout, memoryview(buffer))
    assert weights_of(matrix).tolist() == [[2, 3, 4], [5, 6, 7]]
    buffer[8:12] = np.float32(9).tobytes()
    assert weights_of(matrix)[0, 0] == 9
    assert matrix.address == np.frombuffer(buffer, np.uint8).ctypes.data + 8


def test_matrix_from_read_only_buffer_is_accepted() -> None:
    data = np.ones(6, np.float32).tobytes()
    matrix = Matrix.from_buffer(MatrixLayout(WeightFormat.F32, 2, 3, 0, 24), memoryview(data))
    assert weights_of(matrix).sum() == 6


def test_matrix_from_short_buffer_is_refused() -> None:
    layout = MatrixLayout(WeightFormat.F32, 2, 3, 0, 24)
    with pytest.raises(ValueError, match="20 bytes"):
        Matrix.from_buffer(layout, memoryview(bytes(20)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_matrix_from_tensor_shares_its_memory(dtype: torch.dtype) -> None:
    tensor = torch.arange(6).reshape(2, 3).to(dtype)
    matrix = Matrix.from_tensor(tensor)
    assert matrix.address == tensor.data_ptr()
    assert torch.equal(weights_of(matrix), tensor.float())


def test_matrix_from_strided_tensor_is_refused() -> None:
    with pytest.raises(ValueError, match="contiguous"):
        Matrix.from_tensor(torch.zeros(4, 4)[:, :2])


def test_slot_matrices_lie_where_the_layout_says() -> None:
    layout = expert_layout(WeightFormat.Q8_G32, 40, 24)
    with mmap.mmap(-1, layout.record_bytes) as room:
        slot = Slot.from_buffer(memoryview(room))
        parts = slot.matrices(layout.parts)
        assert list(parts) == list(ExpertPart)
        assert parts[ExpertPart.DOWN].rows == 40
        for part, matrix in parts.items():
            assert matrix.address == slot.address + layout[part].offset_bytes
            assert matrix.address % 64 == 0
        del slot, parts, matrix


def test_kv_pages_extend_and_truncate_keep_lists_in_step() -> None:
    pages = KvPages(4, 2, 3)
    pages.extend([(torch.zeros(4, 2, 3), torch.zeros(4, 2, 3)) for _ in range(3)])
    assert pages.capacity_tokens == 12
    pages.truncate(1)
    assert pages.capacity_tokens == 4
    assert pages.key_addresses == [pages.keys[0].data_ptr()]
    assert pages.value_addresses == [pages.values[0].data_ptr()]


@pytest.mark.parametrize(
    "page",
    [torch.zeros(4, 2, 5), torch.zeros(4, 2, 3, dtype=torch.float16), torch.zeros(4, 3, 2).mT],
)
def test_kv_pages_extend_with_wrong_page_is_refused(page: torch.Tensor) -> None:
    with pytest.raises(ValueError, match="page is"):
        KvPages(4, 2, 3).extend([(torch.zeros(4, 2, 3), page)])


@pytest.mark.parametrize("weight_format", sorted(PLAIN_FORMATS))
@pytest.mark.parametrize("has_bias", [False, True])
def test_reference_large_plain_matrix_is_widened_in_pieces(
    monkeypatch: pytest.MonkeyPatch, weight_format: WeightFormat, has_bias: bool
) -> None:
    data = torch.as_tensor(random_matrix(weight_format, 23, 12).data)
    layout = MatrixLayout(weight_format, 23, 12, 0, data.numel())
    matrix, x = Matrix.from_buffer(layout, data), random_rows(3, 12)
    bias = random_rows(23, seed=1) if has_bias else None
    expected = ReferenceKernels().linear(x, matrix, bias)
    monkeypatch.setattr("runtime.kernels.reference.PIECE_NUMBERS", 60)

    found = ReferenceKernels().linear(x, matrix, bias)

    torch.testing.assert_close(found, expected)
    rows = torch.tensor([22, 0])
    assert torch.equal(ReferenceKernels().embed(matrix, rows), weights_of(matrix)[rows])
