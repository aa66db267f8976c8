"""Folders made to break the reader: whatever the bytes, inspecting ends soon with a report."""

import contextlib
import dataclasses
import functools
import json
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.inspect.folder import inspect_folder
from runtime.inspect.inspection import Inspection
from runtime.inspect.shards import MAX_SHARDS
from runtime.inspect.weights import MAX_TOLD
from runtime.protocol.model import ModelReport
from runtime.protocol.sentences import sentence
from tests.support.broken_folders import FILE_CASES, SHARD_CASES, TEXT_CASES, Broken
from tests.support.checkpoint_folders import (
    TinyModel,
    shard_name,
    tiny_config,
    write_checkpoint,
    write_raw_safetensors,
)
from tests.support.folder_damage import nested

MAX_SECONDS = 1.0
MAX_MEMORY_BYTES = 64 << 20
MAX_GROWN_BYTES = 1 << 30
MODEL = TinyModel(num_layers=1, num_experts=2, num_shards=2)
SHARD = shard_name(1, 2)
INDEX = "model.safetensors.index.json"

often = settings(max_examples=max(1, settings().max_examples * 2 // 5))
"""Each example writes and reads a whole folder."""

edge_numbers = st.sampled_from(
    [0, 1, -1, 7, 2**31, 2**32, 2**53, 2**62, 2**63, 2**64, 10**30, 1e308, float("inf"), 0.5]
)
scalars = st.none() | st.booleans() | edge_numbers | st.integers() | st.text(max_size=20)
json_values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4)
    ),
    max_leaves=10,
)
"""Anything that JSON can say, edges of number types among it."""


@functools.cache
def good_files() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as place:
        folder = write_checkpoint(Path(place) / "m", MODEL)
        return {file.name: file.read_bytes() for file in folder.iterdir()}


def inspect_bounded(change: Callable[[Path], object]) -> Inspection:
    """Inspect a good folder after a change, within time and memory, and send the report."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, content in good_files().items():
            (folder / name).write_bytes(content)
        change(folder)
        tracemalloc.start()
        start_s = time.process_time()
        try:
            inspection = inspect_folder(place)
        finally:
            seconds = time.process_time() - start_s
            _, peak_bytes = tracemalloc.get_traced_memory()
            tracemalloc.stop()
    assert seconds < MAX_SECONDS
    assert peak_bytes < MAX_MEMORY_BYTES
    sent = msgspec.json.encode(inspection.report)
    assert msgspec.json.decode(sent, type=ModelReport) == inspection.report
    assert inspection.report.is_runnable or inspection.report.problems[0].parameters
    check_extents(inspection)
    return inspection


def check_extents(inspection: Inspection) -> None:
    """Fail unless every entry that came out has the bytes its shape says."""
    experts = [entry for parts in inspection.experts.values() for entry in parts.values()]
    for entry in [*inspection.tensors.values(), *experts]:
        count = 1
        for size in entry.shape:
            count *= size
        assert entry.num_bytes == 2 * count
        assert entry.offset_bytes >= 8


def good_header() -> dict[str, object]:
    content = good_files()[SHARD]
    length = int.from_bytes(content[:8], "little")
    header: dict[str, object] = json.loads(content[8 : 8 + length])
    return header


def good_data() -> bytes:
    content = good_files()[SHARD]
    return content[8 + int.from_bytes(content[:8], "little") :]


def test_unchanged_folder_is_runnable() -> None:
    assert inspect_bounded(lambda folder: None).report.is_runnable


@often
@given(st.data())
def test_header_with_changed_fields_gives_a_report(data: st.DataObject) -> None:
    header = good_header()
    for name in data.draw(st.lists(st.sampled_from(sorted(header)), min_size=1, max_size=3)):
        fields = header[name]
        assert isinstance(fields, dict)
        key = data.draw(st.sampled_from(["dtype", "shape", "data_offsets", "", None]))
        if key is None:
            header[name] = data.draw(json_values)
        else:
            header[name] = {**fields, key: data.draw(json_values)}
        if not isinstance(header[name], dict):
            break
    text = json.dumps(header).encode()
    inspect_bounded(lambda folder: write_raw_safetensors(folder / SHARD, text, good_data()))


@often
@given(st.data())
def test_header_with_shifted_extents_never_gives_wrong_bytes(data: st.DataObject) -> None:
    header = good_header()
    name = data.draw(st.sampled_from(sorted(set(header) - {"__metadata__"})))
    fields = header[name]
    assert isinstance(fields, dict)
    begin, end = fields["data_offsets"]
    shifts = st.sampled_from([-4096, -2, -1, 0, 1, 2, 64, 4096, 2**40, 2**62])
    changed = [begin + data.draw(shifts), end + data.draw(shifts)]
    header[name] = {**fields, "data_offsets": changed}
    text = json.dumps(header).encode()
    inspection = inspect_bounded(
        lambda folder: write_raw_safetensors(folder / SHARD, text, good_data())
    )
    assert inspection.report.is_runnable == (changed == [begin, end])


@often
@given(
    st.integers(0, 2**64 - 1) | st.sampled_from([0, 2**31, 2**63, 100_000_000, 100_000_001]),
    st.binary(max_size=200),
)
def test_shard_of_any_length_and_bytes_gives_a_report(length: int, content: bytes) -> None:
    data = length.to_bytes(8, "little") + content
    inspection = inspect_bounded(lambda folder: (folder / SHARD).write_bytes(data))
    assert not inspection.report.is_runnable


@often
@given(st.data())
def test_shard_with_flipped_header_bytes_gives_a_report(data: st.DataObject) -> None:
    content = bytearray(good_files()[SHARD])
    length = int.from_bytes(content[:8], "little")
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, 7 + length))] = data.draw(st.integers(0, 255))
    inspect_bounded(lambda folder: (folder / SHARD).write_bytes(content))


@often
@given(st.integers(0, 100))
def test_shard_cut_anywhere_is_never_runnable(percent: int) -> None:
    content = good_files()[SHARD]
    kept = min(len(content) * percent // 100, len(content) - 1)
    inspection = inspect_bounded(lambda folder: (folder / SHARD).write_bytes(content[:kept]))
    assert not inspection.report.is_runnable


@often
@given(st.data())
def test_config_with_changed_fields_gives_a_report(data: st.DataObject) -> None:
    config = tiny_config(MODEL)
    known = [
        *config,
        *("rope_scaling", "rope_parameters", "quantization_config", "layer_types", "qkv_bias"),
        *("mlp_only_layers", "decoder_sparse_step", "sliding_window", "use_sliding_window"),
        *("head_dim", "partial_rotary_factor", "num_local_experts", "attention_bias"),
    ]
    for name in data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=4)):
        config[name] = data.draw(json_values)
    text = json.dumps(config)
    inspect_bounded(lambda folder: (folder / "config.json").write_text(text))


@often
@given(st.sampled_from(["qwen2_moe", "qwen3_moe", "mixtral"]), st.data())
def test_config_of_giant_sizes_is_not_believed(model_type: str, data: st.DataObject) -> None:
    config = tiny_config(dataclasses.replace(MODEL, model_type=model_type))
    sizes = sorted(name for name, value in config.items() if type(value) is int)
    for name in data.draw(st.lists(st.sampled_from(sizes), min_size=1, max_size=6)):
        config[name] = data.draw(st.sampled_from([1023, 1024, 65535, 65536, 2**20, 2**31, 2**40]))
    text = json.dumps(config)
    inspect_bounded(lambda folder: (folder / "config.json").write_text(text))


@often
@given(
    st.sampled_from(
        ["config.json", "generation_config.json", "tokenizer_config.json", "tokenizer.json", INDEX]
    ),
    st.binary(max_size=300) | json_values.map(lambda value: json.dumps(value).encode()),
)
def test_small_file_of_any_bytes_gives_a_report(name: str, content: bytes) -> None:
    inspect_bounded(lambda folder: (folder / name).write_bytes(content))


shard_names = st.sampled_from([SHARD, shard_name(2, 2), "../x.safetensors", "/dev/zero", "a\0b"])


@often
@given(st.dictionaries(st.text(max_size=20), shard_names | json_values, max_size=5), st.booleans())
def test_index_of_any_map_gives_a_report(weight_map: dict[str, object], keeps: bool) -> None:
    index = json.loads(good_files()[INDEX])
    index["weight_map"] = {**(index["weight_map"] if keeps else {}), **weight_map}
    text = json.dumps(index)
    inspect_bounded(lambda folder: (folder / INDEX).write_text(text))


@often
@given(st.sampled_from([b"[", b'{"a":', b'[{"a":', b"[[],"]), st.integers(1000, 30_000))
def test_nesting_without_end_gives_a_report(opening: bytes, depth: int) -> None:
    def change(folder: Path) -> None:
        for name in ("config.json", "tokenizer_config.json", INDEX):
            (folder / name).write_bytes(opening * depth)

    inspection = inspect_bounded(change)
    assert len(inspection.report.problems) >= 3


@often
@given(st.integers(1, 2000), st.sampled_from(["config.json", "tokenizer_config.json", INDEX]))
def test_nesting_that_ends_gives_a_report(depth: int, name: str) -> None:
    def change(folder: Path) -> None:
        text = (folder / name).read_bytes().rstrip()[:-1]
        (folder / name).write_bytes(text + b',"deep":' + nested(depth) + b"}")

    inspect_bounded(change)


@often
@given(
    st.lists(st.sampled_from(SHARD_CASES + TEXT_CASES), min_size=1, max_size=4),
    st.sampled_from(FILE_CASES),
)
def test_several_kinds_of_damage_at_once_give_a_report(damages: list[Broken], last: Broken) -> None:
    def change(folder: Path) -> None:
        # A pipe comes last, because changing it again would block.
        for damage in (*damages, last):
            # One kind can take away what the next would change, or bury it too deeply.
            with contextlib.suppress(OSError, ValueError, KeyError, RecursionError):
                damage.change(folder)

    inspection = inspect_bounded(change)
    text = [sentence(problem) for problem in inspection.report.problems]
    assert not any("?" in each for each in text)


def test_header_of_lists_without_commas_stays_small() -> None:
    text = b'{"x":[' + b"[[[[[[[[]]]]]]]]," * 1_000_000 + b"0]}"
    inspection = inspect_bounded(
        lambda folder: write_raw_safetensors(folder / SHARD, text, good_data())
    )
    assert not inspection.report.is_runnable


def test_many_links_to_one_large_header_stay_small() -> None:
    resource = pytest.importorskip("resource")
    text = json.dumps({"__metadata__": {"words": "x" * 8_000_000}}).encode()

    def change(folder: Path) -> None:
        write_raw_safetensors(folder / "blob", text, b"")
        weight_map = {}
        for number in range(MAX_SHARDS):
            (folder / f"{number}.safetensors").symlink_to("blob")
            weight_map[str(number)] = f"{number}.safetensors"
        (folder / INDEX).write_text(json.dumps({"weight_map": weight_map}))

    with tempfile.TemporaryDirectory() as place:
        write_checkpoint(Path(place) / "m", MODEL)
        change(Path(place) / "m")
        held_bytes = psutil.Process().memory_info().vms
        limit = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (held_bytes + MAX_GROWN_BYTES, limit[1]))
        try:
            report = inspect_folder(str(Path(place) / "m")).report
        finally:
            resource.setrlimit(resource.RLIMIT_AS, limit)
    assert not report.is_runnable
    assert len(report.problems) <= MAX_TOLD + 1


def test_header_claiming_more_values_than_allowed_stays_small() -> None:
    text = b'{"x":[' + b"0," * 3_000_000 + b"0]}"
    inspection = inspect_bounded(
        lambda folder: write_raw_safetensors(folder / SHARD, text, good_data())
    )
    assert not inspection.report.is_runnable
