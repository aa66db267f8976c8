"""What every expert store promises, checked on published files and on prepared copies alike."""

import mmap
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runtime.errors import LarderError
from runtime.inspect.folder import inspect_folder
from runtime.inspect.inspection import Inspection
from runtime.prepare.prepare import prepare_model
from runtime.protocol.errors import ErrorCode
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import PAGE_BYTES, ExpertId, ExpertPart
from runtime.store.base import ExpertStore
from runtime.store.checkpoint import CheckpointStore
from runtime.store.open import open_store
from runtime.store.prepared import PreparedStore
from tests.support.checkpoint_folders import Tensor, TinyModel, tiny_tensors, write_checkpoint

MODELS = {
    "qwen3-bf16": TinyModel(),
    "mixtral-f16-one-file": TinyModel(model_type="mixtral", dtype="F16", num_shards=0),
    "qwen2-f32-odd": TinyModel(
        model_type="qwen2_moe", dtype="F32", expert_width=40, num_experts=3, num_shards=7
    ),
}
_LETTERS = {ExpertPart.GATE: "w1", ExpertPart.DOWN: "w2", ExpertPart.UP: "w3"}


class Case:
    """One store with the bytes it has to give."""

    def __init__(self, store: ExpertStore, inspection: Inspection, model: TinyModel) -> None:
        self.store = store
        self.experts = sorted(inspection.experts)
        self.published = tiny_tensors(model)
        self.model = model

    def matrix(self, expert: ExpertId, part: ExpertPart) -> Tensor:
        if self.model.model_type == "mixtral":
            block = f"block_sparse_moe.experts.{expert.expert}.{_LETTERS[part]}"
        else:
            block = f"mlp.experts.{expert.expert}.{part}_proj"
        return self.published[f"model.layers.{expert.layer}.{block}.weight"]

    def check(self, expert: ExpertId, buffer: bytearray) -> None:
        for part in ExpertPart:
            place = self.store.layout[part]
            _, shape, data = self.matrix(expert, part)
            assert (place.rows, place.columns) == shape
            assert buffer[place.offset_bytes : place.offset_bytes + place.num_bytes] == data

    def read(self, expert: ExpertId) -> bytearray:
        buffer = bytearray(self.store.layout.record_bytes + 100)
        self.store.read_expert(expert, memoryview(buffer))
        assert buffer[self.store.layout.record_bytes :] == bytes(100)
        return buffer


@pytest.fixture(params=["published", "prepared"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["direct", "buffered"])
def prefers_direct(request: pytest.FixtureRequest) -> bool:
    return str(request.param) == "direct"


@pytest.fixture(params=MODELS)
def case(
    request: pytest.FixtureRequest, kind: str, prefers_direct: bool, tmp_path: Path
) -> Iterator[Case]:
    model = MODELS[str(request.param)]
    inspection = inspect_folder(str(write_checkpoint(tmp_path / "m", model)))
    store_folder = ""
    if kind == "prepared":
        plain = WeightFormat(model.dtype.lower())
        store_folder = prepare_model(inspection, plain, str(tmp_path / "copy")).folder
    store = open_store(inspection, store_folder, prefers_direct=prefers_direct)
    assert store.is_direct <= prefers_direct
    assert isinstance(store, PreparedStore if kind == "prepared" else CheckpointStore)
    yield Case(store, inspection, model)
    store.close()


def test_store_layout_is_paged_and_typed(case: Case) -> None:
    layout = case.store.layout
    assert layout.record_bytes % PAGE_BYTES == 0
    assert {place.format for place in layout.parts.values()} == {
        WeightFormat(case.model.dtype.lower())
    }


def test_store_read_expert_gives_the_published_bytes(case: Case) -> None:
    for _ in range(2):
        for expert in case.experts:
            case.check(expert, case.read(expert))


def test_store_read_tensor_gives_the_published_bytes(case: Case) -> None:
    dense = {name for name in case.published if ".experts." not in name}
    assert case.store.dense_tensors.keys() == dense
    for name, entry in case.store.dense_tensors.items():
        dtype, shape, data = case.published[name]
        assert (entry.shape, entry.format) == (shape, WeightFormat(dtype.lower()))
        buffer = bytearray(entry.num_bytes)
        case.store.read_tensor(entry, memoryview(buffer))
        assert buffer == data


def test_store_tensor_pieces_give_the_published_bytes(case: Case) -> None:
    room = memoryview(bytearray(1000))
    for name, entry in case.store.dense_tensors.items():
        pieces = [bytes(piece) for piece in case.store.tensor_pieces(entry, room)]
        assert all(len(piece) == 1000 for piece in pieces[:-1])
        assert b"".join(pieces) == case.published[name][2]


def test_store_reads_into_page_aligned_slots(case: Case) -> None:
    record_bytes = case.store.layout.record_bytes
    with mmap.mmap(-1, 2 * record_bytes) as mapping, memoryview(mapping) as slots:
        for expert in case.experts:
            case.store.read_expert(expert, slots[record_bytes:])
            case.check(expert, bytearray(slots[record_bytes:]))
        assert bytes(slots[:record_bytes]) == bytes(record_bytes)


def test_store_reads_into_part_of_a_buffer(case: Case) -> None:
    expert = case.experts[-1]
    buffer = bytearray(3 * PAGE_BYTES + case.store.layout.record_bytes)
    view = memoryview(buffer)[PAGE_BYTES : PAGE_BYTES + case.store.layout.record_bytes]
    case.store.read_expert(expert, view)
    case.check(expert, bytearray(view))
    assert buffer[:PAGE_BYTES] == bytes(PAGE_BYTES)


def test_store_counts_what_it_reads(case: Case) -> None:
    assert case.store.num_bytes_read == 0
    case.read(case.experts[0])
    weights = sum(len(case.matrix(case.experts[0], part)[2]) for part in ExpertPart)
    assert weights <= case.store.num_bytes_read <= weights + 3 * (65536 + 2 * PAGE_BYTES)
    before = case.store.num_bytes_read
    case.read(case.experts[1])
    assert case.store.num_bytes_read >= before + weights


def test_store_read_by_many_threads_gives_the_same_bytes(case: Case) -> None:
    gate = threading.Barrier(4)

    def read_all(step: int) -> None:
        gate.wait(10)
        for expert in case.experts[step:] + case.experts[:step]:
            case.check(expert, case.read(expert))

    with ThreadPoolExecutor(4) as pool:
        for task in [pool.submit(read_all, step) for step in range(4)]:
            task.result()


def test_store_closed_twice_refuses_to_read(case: Case) -> None:
    entry = next(iter(case.store.dense_tensors.values()))
    case.store.close()
    case.store.close()
    reads: list[Callable[[], object]] = [
        lambda: case.read(case.experts[0]),
        lambda: case.store.read_tensor(entry, memoryview(bytearray(entry.num_bytes))),
    ]
    for read in reads:
        with pytest.raises(LarderError) as caught:
            read()
        assert caught.value.code is ErrorCode.DRIVE_READ_FAILED


def test_store_file_cut_while_open_names_file_and_offset(case: Case) -> None:
    expert = case.experts[-1]
    for entry in case.store.dense_tensors.values():
        Path(entry.file).write_bytes(b"")
    for path in {Path(entry.file).parent for entry in case.store.dense_tensors.values()}:
        for file in path.glob("*.safetensors"):
            file.write_bytes(b"")
    with pytest.raises(LarderError) as caught:
        case.read(expert)
    assert caught.value.code is ErrorCode.DRIVE_READ_FAILED
    assert Path(str(caught.value.parameters["file"])).suffix == ".safetensors"
    assert int(caught.value.parameters["offset_bytes"]) > 0
