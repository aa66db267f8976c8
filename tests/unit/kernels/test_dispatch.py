"""The choice of kernels, and what native kernels refuse."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from runtime.errors import LarderError
from runtime.hardware.profile import MACHINE_VARIABLE
from runtime.kernels import dispatch
from runtime.kernels.base import ExpertBiases, ExpertStyle
from runtime.kernels.dispatch import KERNELS_VARIABLE, choose_kernels, usable_cores
from runtime.kernels.native import NativeKernels
from runtime.kernels.native_arguments import ACTIVATION_CODES
from runtime.native.formats import FORMAT_CODES
from runtime.native.loader import load_native
from runtime.protocol.errors import ErrorCode
from runtime.protocol.values import WeightFormat
from runtime.spec.blocks import SILU, ActivationKind
from runtime.spec.tensors import GROUP_SIZE, ROW_BLOCK, SPAN, expert_layout, matrix_bytes
from tests.support.kernel_inputs import (
    native_kernels,
    random_matrix,
    random_pages,
    random_rows,
    random_slots,
)


@pytest.fixture(autouse=True)
def _choice_put_back(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(KERNELS_VARIABLE, raising=False)
    with native_kernels("portable"):
        yield


def test_choose_kernels_with_extension_returns_native_on_all_cores() -> None:
    module = load_native()
    assert module is not None
    assert choose_kernels().name.startswith("native-")
    assert module.num_threads() == usable_cores()
    choose_kernels(3)
    assert module.num_threads() == 3


def test_choose_kernels_without_extension_returns_reference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dispatch, "load_native", lambda: None)
    kernels = choose_kernels()
    assert kernels.name == "reference"
    assert not kernels.is_row_invariant


@pytest.mark.parametrize("name", ["reference", "native-portable"])
def test_choose_kernels_named_by_environment_returns_them(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(KERNELS_VARIABLE, name)
    assert choose_kernels().name == name


@pytest.mark.parametrize("has_extension", [True, False])
def test_choose_kernels_named_but_impossible_is_refused(
    monkeypatch: pytest.MonkeyPatch, *, has_extension: bool
) -> None:
    monkeypatch.setenv(KERNELS_VARIABLE, "native-avx9" if has_extension else "native-avx2")
    if not has_extension:
        monkeypatch.setattr(dispatch, "load_native", lambda: None)
    with pytest.raises(LarderError) as caught:
        choose_kernels()
    assert caught.value.code is ErrorCode.SETTING_INVALID
    assert caught.value.parameters["name"] == KERNELS_VARIABLE


def test_extension_sizes_equal_the_layout() -> None:
    module = load_native()
    assert module is not None
    assert module.GROUP_SIZE == GROUP_SIZE
    assert module.ROW_BLOCK == ROW_BLOCK
    assert matrix_bytes(WeightFormat.Q8_G32, ROW_BLOCK, GROUP_SIZE) == module.Q8_GROUP_BYTES
    assert matrix_bytes(WeightFormat.Q4_G32, ROW_BLOCK, GROUP_SIZE) == module.Q4_GROUP_BYTES
    assert matrix_bytes(WeightFormat.MXFP4, ROW_BLOCK, GROUP_SIZE) == module.MXFP4_GROUP_BYTES
    assert matrix_bytes(WeightFormat.Q4A_G32, ROW_BLOCK, GROUP_SIZE) == module.Q4A_GROUP_BYTES
    assert matrix_bytes(WeightFormat.Q6_G32, ROW_BLOCK, GROUP_SIZE) == module.Q6_GROUP_BYTES
    assert matrix_bytes(WeightFormat.Q3_G16, ROW_BLOCK, GROUP_SIZE) == module.Q3_GROUP_BYTES
    assert matrix_bytes(WeightFormat.Q2_G16, ROW_BLOCK, GROUP_SIZE) == module.Q2_GROUP_BYTES
    assert matrix_bytes(WeightFormat.Q4K_G32, ROW_BLOCK, SPAN) == module.Q4K_SPAN_BYTES
    assert matrix_bytes(WeightFormat.Q5K_G32, ROW_BLOCK, SPAN) == module.Q5K_SPAN_BYTES
    assert matrix_bytes(WeightFormat.Q6K_G16, ROW_BLOCK, SPAN) == module.Q6K_SPAN_BYTES
    assert matrix_bytes(WeightFormat.Q3K_G16, ROW_BLOCK, SPAN) == module.Q3K_SPAN_BYTES
    assert matrix_bytes(WeightFormat.Q2K_G16, ROW_BLOCK, SPAN) == module.Q2K_SPAN_BYTES
    assert set(FORMAT_CODES) == set(WeightFormat)
    assert set(ACTIVATION_CODES) == set(ActivationKind)


def test_native_kernels_wrong_shapes_are_refused() -> None:
    kernels, module = choose_kernels(), load_native()
    assert isinstance(kernels, NativeKernels)
    assert module is not None
    matrix, layout = random_matrix(WeightFormat.F32, 8, 8), expert_layout(WeightFormat.F32, 8, 8)
    slots, pages = random_slots(layout, 1), random_pages(10, 4, 2, 8)
    x, ids = random_rows(2, 8), torch.zeros(2, 1, dtype=torch.int32)
    with pytest.raises(ValueError, match="columns"):
        kernels.linear(random_rows(2, 9), matrix)
    with pytest.raises(ValueError, match="contiguous"):
        kernels.linear(random_rows(8, 8).T, matrix)
    with pytest.raises(ValueError, match="contiguous"):
        kernels.linear(x.double(), matrix)
    with pytest.raises(ValueError, match="width"):
        kernels.gated(x, matrix, random_matrix(WeightFormat.F32, 9, 8), matrix)
    with pytest.raises(ValueError, match="int32"):
        kernels.experts(x, layout, slots, ids.long(), torch.ones(2, 1), x.clone())
    with pytest.raises(ValueError, match="hidden"):
        kernels.experts(x, layout, slots, ids, torch.ones(2, 1), random_rows(2, 9))
    with pytest.raises(ValueError, match="negative"):
        kernels.experts(x, layout, [(-1, slots[0][1])], ids, torch.ones(2, 1), x.clone())
    for rows, width, hidden in ((1, 9, 8), (1, 8, 9), (2, 8, 8)):
        biases = ExpertBiases((0,), *(torch.zeros(rows, size) for size in (width, width, hidden)))
        with pytest.raises(ValueError, match="biases"):
            kernels.experts(
                x, layout, slots, ids, torch.ones(2, 1), x.clone(), ExpertStyle(SILU, biases)
            )
    with pytest.raises(ValueError, match="sinks"):
        kernels.attention(random_rows(2, 2, 8), pages, 0, scale=1.0, sinks=torch.zeros(3))
    with pytest.raises(ValueError, match="beyond the pages"):
        kernels.attention(random_rows(2, 2, 8), pages, 11, scale=1.0)
    with pytest.raises(ValueError, match="do not divide"):
        kernels.attention(random_rows(2, 3, 8), pages, 0, scale=1.0)
    with pytest.raises(ValueError, match="top-k"):
        kernels.route(x, 9, is_normalised=True)


def test_choose_kernels_takes_threads_and_instructions_of_the_machine_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = load_native()
    assert module is not None
    path = tmp_path / "machine.json"
    path.write_text('{"num_threads": 3, "instruction_set": "portable"}')
    monkeypatch.setenv(MACHINE_VARIABLE, str(path))
    assert choose_kernels().name == "native-portable"
    assert module.num_threads() == 3
    assert choose_kernels(2).name == "native-portable"
    assert module.num_threads() == 2
    monkeypatch.setattr(dispatch, "load_native", Lacking)
    with pytest.raises(LarderError) as refused:
        choose_kernels()
    assert refused.value.code is ErrorCode.MACHINE_FILE_INVALID
    told = refused.value.parameters
    assert (told["file"], told["place"]) == (str(path), "instruction_set")


class Lacking:
    """An extension without any set of instructions that is asked for."""

    def select_instruction_set(self, name: str) -> bool:
        return not name
