"""Weights that are no numbers, and folders with code in them, on the way to an answer."""

import contextlib
import os
import re
import shutil
from pathlib import Path

import pytest

from runtime.errors import LarderError, report_of
from runtime.inspect.folder import inspect_folder
from runtime.kernels.base import Kernels
from runtime.protocol.errors import ErrorCode
from runtime.protocol.sentences import sentence
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import ExpertId, ExpertPart, TensorEntry
from runtime.store.prepared import PreparedStore
from tests.support.code_traps import make_trap
from tests.support.engine_runs import answer, user
from tests.support.hand_made_plans import exact_plan, prepared_plan
from tests.unit.generate.conftest import OpenEngine

NAN = {
    WeightFormat.F32: b"\x00\x00\xc0\x7f",
    WeightFormat.F16: b"\x00\x7e",
    WeightFormat.BF16: b"\xc0\x7f",
}


def spoil(entry: TensorEntry) -> None:
    """Put something that is no number into the middle of a tensor's file."""
    number = NAN[entry.format]
    with Path(entry.file).open("r+b") as file:
        file.seek(entry.offset_bytes + entry.num_bytes // 2 // len(number) * len(number))
        file.write(number)


@pytest.fixture
def folder(qwen2_folder: Path, tmp_path: Path) -> Path:
    return shutil.copytree(qwen2_folder, tmp_path / "model")


@pytest.mark.parametrize("name", ["model.norm.weight", "model.embed_tokens.weight"])
def test_load_of_a_dense_tensor_that_is_no_number_names_it(
    folder: Path, open_engine: OpenEngine, name: str
) -> None:
    entry = inspect_folder(str(folder)).tensors[name]
    spoil(entry)

    with pytest.raises(LarderError) as refused:
        open_engine(exact_plan(folder))

    assert refused.value.code is ErrorCode.WEIGHTS_NOT_FINITE
    text = sentence(report_of(refused.value))
    assert f"The matrix {name} in {entry.file} holds" in text


def test_prepare_of_an_expert_that_is_no_number_names_it(folder: Path, tmp_path: Path) -> None:
    parts = next(iter(inspect_folder(str(folder)).experts.values()))
    entry = parts[ExpertPart.DOWN]
    spoil(entry)

    with pytest.raises(LarderError) as refused:
        prepared_plan(folder, tmp_path / "copy", WeightFormat.Q8_G32)

    assert refused.value.code is ErrorCode.WEIGHTS_NOT_FINITE
    assert f"{entry.name} in {entry.file} holds" in sentence(report_of(refused.value))
    assert "layer 0, expert 0" in refused.value.detail


def test_answer_of_experts_that_are_no_numbers_is_an_error_and_no_nonsense(
    folder: Path, open_engine: OpenEngine
) -> None:
    for parts in inspect_folder(str(folder)).experts.values():
        for entry in parts.values():
            spoil(entry)
    engine = open_engine(exact_plan(folder))

    for _ in range(2):
        with pytest.raises(LarderError) as refused:
            answer(engine, [user("Hello")])
        assert refused.value.code is ErrorCode.WEIGHTS_NOT_FINITE


def flip_a_bit_of_each_record(copy: Path) -> None:
    """Flip one bit in the middle of every expert of a prepared copy; a second time mends it."""
    with contextlib.closing(PreparedStore(copy)) as store:
        for layer in range(4):
            for number in range(64):
                with contextlib.suppress(KeyError):
                    file, offset_bytes = store.place_of(ExpertId(layer, number))
                    with Path(file).open("r+b") as records:
                        records.seek(offset_bytes + store.layout.record_bytes // 2)
                        byte = records.read(1)[0]
                        records.seek(-1, os.SEEK_CUR)
                        records.write(bytes([byte ^ 1]))


def test_load_of_a_copy_with_flipped_bits_names_an_expert_and_works_once_it_is_mended(
    folder: Path, tmp_path: Path, open_engine: OpenEngine
) -> None:
    plan = prepared_plan(folder, tmp_path / "copy", WeightFormat.Q8_G32)
    expected = answer(open_engine(plan), [user("Hello")]).token_ids
    flip_a_bit_of_each_record(tmp_path / "copy")

    with pytest.raises(LarderError) as refused:
        open_engine(plan)

    assert refused.value.code is ErrorCode.STORE_DAMAGED
    assert re.search(r"\(layer \d, expert \d+\)", sentence(report_of(refused.value)))
    flip_a_bit_of_each_record(tmp_path / "copy")
    assert answer(open_engine(plan), [user("Hello")]).token_ids == expected


def test_model_with_code_in_its_folder_answers_without_running_it(
    kernels: Kernels, open_engine: OpenEngine, tmp_path: Path
) -> None:
    sign = tmp_path / "sign"
    trap = make_trap(tmp_path / "trap", sign)
    plans = [exact_plan(trap), prepared_plan(trap, tmp_path / "copy", WeightFormat.Q8_G32)]

    for plan in plans:
        assert answer(open_engine(plan), [user("Hello")]).token_ids

    assert not sign.exists()
    assert not list((tmp_path / "copy").glob("*.py"))
    assert not list((tmp_path / "copy").glob("*.bin"))
