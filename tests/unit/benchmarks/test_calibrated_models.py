"""Calibrated models: both files hold the same weights, and the engine routes as was recorded."""

import dataclasses
import functools
import json
import tracemalloc
from pathlib import Path

import gguf
import numpy as np
import pytest
from tokenizers import Tokenizer

from benchmarks.calibrated.feeding import routed
from benchmarks.calibrated.gguf_file import write_gguf
from benchmarks.calibrated.hugging_face import write_folder
from benchmarks.calibrated.likeness import typical_part
from benchmarks.calibrated.model import CalibratedModel, Kind
from benchmarks.calibrated.shapes import SHAPES, Shape
from benchmarks.calibrated.tokenizer import text_of
from runtime.inspect.folder import inspect_folder
from runtime.kernels.formats import unpack
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import ExpertId, ExpertPart
from runtime.store.checkpoint import CheckpointStore
from tests.support.hand_made_plans import exact_plan, prepared_plan
from tests.support.traces import sticky_trace

NUM_TOKENS = 96
FED_TOKENS = 48
SMALL = {
    "hidden_size": 128,
    "head_dim": 32,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_experts_per_tok": 3,
    "vocab_size": 512,
}
EXPERTS = {"num_experts": 16, "moe_intermediate_size": 64, "intermediate_size": 96}
CHANGES = {
    "qwen3-30b-a3b": {**SMALL, **EXPERTS, "num_hidden_layers": 3},
    "gpt-oss-20b": {
        **SMALL, "num_local_experts": 16, "intermediate_size": 64, "num_hidden_layers": 3,
    },
    "deepseek-v2-lite": {
        **SMALL, "n_routed_experts": 16, "moe_intermediate_size": 64, "intermediate_size": 96,
        "num_key_value_heads": 4, "kv_lora_rank": 64, "qk_nope_head_dim": 32,
        "qk_rope_head_dim": 16, "v_head_dim": 32, "num_hidden_layers": 4,
    },
}  # fmt: skip
NAMES = tuple(CHANGES)


def small(name: str) -> Shape:
    shape = SHAPES[name]
    return dataclasses.replace(shape, config={**shape.config, **CHANGES[name]})


@functools.cache
def model_of(name: str) -> CalibratedModel:
    trace = sticky_trace(num_tokens=400, num_layers=6, num_experts=16, top_k=3)
    return CalibratedModel(small(name), trace, NUM_TOKENS)


@pytest.fixture(scope="module", params=NAMES)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model in both forms, named after its shape."""
    root = tmp_path_factory.mktemp("calibrated") / str(request.param)
    model = model_of(root.name)
    write_folder(root / "folder", model)
    write_gguf(root / "peer.gguf", model)
    return root


def test_both_files_hold_the_same_weights(written: Path) -> None:
    peer = {}
    for stored in gguf.GGUFReader(written / "peer.gguf").tensors:
        values = gguf.quants.dequantize(stored.data, stored.tensor_type)
        peer[stored.name] = values.reshape(tuple(int(size) for size in stored.shape[::-1]))
    inspection = inspect_folder(str(written / "folder"))
    assert inspection.report.is_runnable, inspection.report.problems
    store = CheckpointStore(inspection, prefers_direct=False, is_widened=True)
    compared = set()
    for tensor in model_of(written.name).tensors():
        if tensor.kind is Kind.EXPERT or not (tensor.name and tensor.gguf_name):
            continue
        entry = inspection.tensors[tensor.name]
        room = bytearray(entry.num_bytes)
        store.read_tensor(entry, memoryview(room))
        found = numbers(room, entry.format).reshape(entry.shape)
        np.testing.assert_array_equal(found, peer[tensor.gguf_name], tensor.name)
        compared.add(tensor.gguf_name)
    for layer in inspection.spec.moe_layers if inspection.spec else ():
        for expert in (0, 7, 15):
            record = bytearray(store.layout.record_bytes)
            store.read_expert(ExpertId(layer, expert), memoryview(record))
            for part, layout in store.layout.parts.items():
                data = record[layout.offset_bytes : layout.offset_bytes + layout.num_bytes]
                matrix = numbers(data, layout.format, layout.rows, layout.columns)
                name = f"blk.{layer}.ffn_{part.value}_exps.weight"
                np.testing.assert_array_equal(
                    matrix.reshape(layout.rows, layout.columns), peer[name][expert], name
                )
                compared.add(name)
    store.close()
    only_there = {name for name in peer if name.endswith(("gate_exps.bias", "up_exps.bias"))}
    assert compared == set(peer) - only_there
    assert {ExpertPart.GATE, ExpertPart.UP, ExpertPart.DOWN} == set(store.layout.parts)


def numbers(
    data: bytes | bytearray, weight_format: WeightFormat, rows: int = 1, columns: int = 0
) -> np.ndarray:
    found = np.frombuffer(data, np.uint8)
    count = columns or found.size // (4 if weight_format is WeightFormat.F32 else 2)
    return unpack(weight_format, found, rows, count)


def test_engine_routes_as_recorded_and_goes_on_with_the_sequence(
    written: Path, tmp_path: Path
) -> None:
    model = model_of(written.name)
    if model.is_mxfp4:
        plan = prepared_plan(written / "folder", tmp_path / "copy", WeightFormat.MXFP4)
    else:
        plan = exact_plan(written / "folder", num_slots=6)
    found, likeliest = routed(plan, model.sequence[:FED_TOKENS], tmp_path / "routing")
    expected = np.sort(model.routing.trace.ids[:FED_TOKENS], axis=2)
    np.testing.assert_array_equal(np.sort(found.ids, axis=2), expected)
    assert likeliest == FED_TOKENS


def test_prompt_routes_as_its_tokens_one_by_one(tmp_path: Path) -> None:
    model = model_of("qwen3-30b-a3b")
    write_folder(tmp_path / "folder", model)
    plan = exact_plan(tmp_path / "folder")
    found, likeliest = routed(plan, model.sequence, tmp_path / "routing", is_prompt=True)
    expected = np.sort(model.routing.trace.ids, axis=2)
    np.testing.assert_array_equal(np.sort(found.ids, axis=2), expected)
    assert likeliest == 0


def test_tokenizer_turns_text_into_the_sequence_and_knows_other_text(tmp_path: Path) -> None:
    write_folder(tmp_path, model_of("qwen3-30b-a3b"))
    tokenizer = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert tokenizer.encode(text_of([3, 95, 4])).ids == [3, 95, 4]
    assert tokenizer.decode([3, 95]) == " w0003 w0095"
    others = tokenizer.encode("Hé!").ids
    assert tokenizer.decode(others) == "Hé!"
    assert all(NUM_TOKENS <= token < NUM_TOKENS + 256 for token in others)
    config = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    assert config["eos_token_id"] == NUM_TOKENS + 256


def test_writing_holds_a_small_part_of_the_file(tmp_path: Path) -> None:
    shape = dataclasses.replace(
        small("qwen3-30b-a3b"),
        config={**small("qwen3-30b-a3b").config, "vocab_size": 40_000, "num_hidden_layers": 6},
    )
    trace = sticky_trace(num_tokens=200, num_layers=6, num_experts=16, top_k=3)
    model = CalibratedModel(shape, trace, NUM_TOKENS)
    tracemalloc.start()
    write_folder(tmp_path / "folder", model)
    write_gguf(tmp_path / "peer.gguf", model)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    folder_bytes = sum(path.stat().st_size for path in (tmp_path / "folder").iterdir())
    assert folder_bytes > 20_000_000
    assert peak_bytes < 14_000_000


def test_same_seed_makes_the_same_model_and_another_one_another() -> None:
    trace = sticky_trace(num_tokens=200, num_layers=3, num_experts=16, top_k=3)
    shape = small("qwen3-30b-a3b")
    one, two, other = (CalibratedModel(shape, trace, 64, seed) for seed in (5, 5, 6))
    tensor = next(each for each in one.tensors() if each.kind is Kind.EXPERT)
    matrices = [next(each.stripes(tensor)).levels for each in (one, two, other)]
    np.testing.assert_array_equal(matrices[0], matrices[1])
    assert (matrices[0] != matrices[2]).any()
    np.testing.assert_array_equal(one.routing.router(2), two.routing.router(2))


@pytest.mark.parametrize(
    ("num_tokens", "changes", "found"),
    [
        (129, {}, "129 tokens for a stream of 128 numbers"),
        (64, {"num_hidden_layers": 9}, "9 layers, and sticky has 3"),
        (64, {"num_experts": 8}, r"sticky has \(16, 3\)"),
    ],
)
def test_what_cannot_be_repeated_is_refused(
    num_tokens: int, changes: dict[str, int], found: str
) -> None:
    trace = sticky_trace(num_tokens=200, num_layers=3, num_experts=16, top_k=3)
    shape = small("qwen3-30b-a3b")
    changed = dataclasses.replace(shape, config={**shape.config, **changes})
    with pytest.raises(ValueError, match=found):
        CalibratedModel(changed, trace, num_tokens)


def test_part_of_a_trace_has_pieces_of_it_in_order() -> None:
    trace = sticky_trace(num_tokens=400, num_layers=6, top_k=4)
    part = typical_part(trace, 80)
    assert part.sequence_tokens == (80,)
    places = [int(np.flatnonzero((trace.ids == row).all(axis=(1, 2)))[0]) for row in part.ids]
    assert places == sorted(places)
    assert np.diff(places).tolist().count(1) >= 72
    with pytest.raises(ValueError, match="401 tokens, and sticky has 400"):
        typical_part(trace, 401)
