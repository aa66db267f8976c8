"""Matrices, expert slots and KV pages with random contents, and the kernels of this machine."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from runtime.kernels.formats import pack
from runtime.kernels.kv import KvPages
from runtime.kernels.matrix import Matrix, Slot
from runtime.kernels.native import NativeKernels
from runtime.native.loader import load_native
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import ExpertLayout, MatrixLayout, matrix_bytes

INSTRUCTION_SETS = ("avx512", "avx2", "portable")


@contextmanager
def native_kernels(instruction_set: str, num_threads: int = 2) -> Iterator[NativeKernels]:
    """Native kernels of an instruction set; the process' choice is put back afterwards."""
    module = load_native()
    assert module is not None, "the extension is not built: run make setup"
    before, threads_before = module.instruction_set(), module.num_threads()
    assert module.select_instruction_set(instruction_set)
    module.set_num_threads(num_threads)
    try:
        yield NativeKernels(module)
    finally:
        module.select_instruction_set(before)
        module.set_num_threads(threads_before)


def usable_instruction_sets() -> tuple[str, ...]:
    """Those that this processor can run, the portable one always among them."""
    module = load_native()
    if module is None:
        return ("portable",)
    before = module.instruction_set()
    usable = tuple(name for name in INSTRUCTION_SETS if module.select_instruction_set(name))
    module.select_instruction_set(before)
    return usable


def random_matrix(weight_format: WeightFormat, rows: int, columns: int, seed: int = 0) -> Matrix:
    """A matrix of normally distributed weights."""
    weights = np.random.default_rng(seed).standard_normal((rows, columns), dtype=np.float32)
    num_bytes = matrix_bytes(weight_format, rows, columns)
    layout = MatrixLayout(weight_format, rows, columns, 0, num_bytes)
    return Matrix.from_buffer(layout, pack(weight_format, weights))


def random_slots(layout: ExpertLayout, num_experts: int, seed: int = 0) -> list[tuple[int, Slot]]:
    """Slots with experts 0, 1, ... of normally distributed weights."""
    random = np.random.default_rng(seed)
    slots = []
    for number in range(num_experts):
        record = np.zeros(layout.record_bytes, np.uint8)
        for part in layout.parts.values():
            weights = random.standard_normal((part.rows, part.columns), dtype=np.float32)
            end = part.offset_bytes + part.num_bytes
            record[part.offset_bytes : end] = pack(part.format, weights * np.float32(0.2))
        slots.append((number, Slot.from_buffer(record)))
    return slots


def random_rows(*shape: int, seed: int = 0) -> torch.Tensor:
    """A tensor of normally distributed values."""
    values = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    return torch.from_numpy(values)


def random_pages(
    num_tokens: int, page_tokens: int, num_kv_heads: int, head_dim: int, seed: int = 0
) -> KvPages:
    """Pages that hold ``num_tokens`` random keys and values, NaN in the rows behind them."""
    pages = KvPages(page_tokens, num_kv_heads, head_dim)
    num_pages = -(-num_tokens // page_tokens)
    shape = (num_pages * page_tokens, num_kv_heads, head_dim)
    both = random_rows(2, *shape, seed=seed)
    both[:, num_tokens:] = torch.nan
    keys, values = (part.split(page_tokens) for part in both)
    pages.extend([(k.contiguous(), v.contiguous()) for k, v in zip(keys, values, strict=True)])
    return pages
