"""A mix of formats: chosen by a calibration, written, and run."""

import dataclasses
import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch

from runtime.cli.program import run_program
from runtime.engine.base import CancelToken
from runtime.errors import LarderError
from runtime.generate.calibrating import calibrate
from runtime.generate.loading import LoadedParts, Tools, load_parts
from runtime.inspect.folder import inspect_folder
from runtime.inspect.inspection import Inspection
from runtime.inspect.manifest import MANIFEST_NAME, read_manifest
from runtime.kernels.dispatch import choose_kernels
from runtime.kernels.formats import pack, unpack
from runtime.prepare.calibration import Calibration
from runtime.prepare.importance import CalibratedImportance
from runtime.prepare.mixing import measure_formats
from runtime.prepare.prepare import NeverStops, prepare_model
from runtime.protocol.errors import ErrorCode
from runtime.protocol.messages import PrepareModel, PreparePhase
from runtime.protocol.model import PreparedCopy
from runtime.protocol.plan import MemoryPart, PlacementPlan
from runtime.protocol.values import Budgets, WeightFormat
from runtime.service.prepare_child import ChildPreparer
from runtime.spec.footprint import policy_bytes
from runtime.spec.mix import MIX_FORMATS, Mix
from runtime.spec.tensors import ExpertId, ExpertPart
from runtime.store.checkpoint import CheckpointStore
from runtime.store.prepared import PreparedStore
from tests.support.hand_made_plans import exact_plan
from tests.support.loaded_logits import loaded_logits
from tests.support.spoilt_weights import spoilt_expert
from tests.support.tiny_checkpoints import tiny_checkpoint

_TEXT = "one two three four, the quick brown fox jumps over the lazy dog. " * 20
_IDS = [5, 9, 3, 7, 11, 2, 8, 6]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return tiny_checkpoint(tmp_path_factory.getbasetemp() / "tiny-checkpoints", "qwen2_moe")


@pytest.fixture(scope="module")
def found(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Calibration:
    plan = exact_plan(folder, context_tokens=192)
    path = tmp_path_factory.mktemp("calibration") / "kept.npz"
    return calibrate(plan, _TEXT, 96, path, lambda *_: None, CancelToken())


def _hand_made(inspection: Inspection) -> Mix:
    """Every format in turn, and so the dense matrices of the layers."""
    experts = {
        each: MIX_FORMATS[(each.layer + each.expert) % len(MIX_FORMATS)]
        for each in inspection.experts
    }
    dense = {
        name: MIX_FORMATS[place % len(MIX_FORMATS)]
        for place, name in enumerate(sorted(inspection.tensors))
        if name.endswith("_proj.weight")
    }
    return Mix(experts, dense)


def test_weights_that_are_no_numbers_are_named(folder: Path, found: Calibration) -> None:
    with spoilt_expert(folder, 1, 0, "down_proj") as (spoilt, place):
        inspection = inspect_folder(str(spoilt))
        with pytest.raises(LarderError) as refused:
            measure_formats(inspection, found, None, NeverStops())
    assert refused.value.code is ErrorCode.WEIGHTS_NOT_FINITE
    assert refused.value.parameters == {"place": place}


def test_often_used_experts_have_more_bits(folder: Path, found: Calibration) -> None:
    inspection = inspect_folder(str(folder))
    spec = inspection.spec
    assert spec is not None
    found.outputs[:] = 10.0 ** np.arange(spec.num_experts)
    measured = measure_formats(inspection, found, None, NeverStops())
    names = {part.name for part in measured.parts}
    assert "model.layers.0.self_attn.q_proj.weight" in names
    assert not any("mlp.gate" in str(name) or "norm" in str(name) for name in names)
    layer = spec.moe_layers[-1]
    parts = [
        part
        for part in measured.parts
        if isinstance(part.name, ExpertId) and part.name.layer == layer
    ]
    sizes = [sorted({one.num_bytes for one in part.choices}) for part in parts]
    # Room for two of them to be larger.
    budget = measured.fixed_bytes + sum(each[0] for each in sizes) + 2 * (sizes[0][1] - sizes[0][0])
    mix = dataclasses.replace(measured, parts=parts, unavoidable=0.0).mix(budget)
    taken = {name.expert: MIX_FORMATS.index(each) for name, each in mix.experts.items()}
    least = min(taken.values())
    more = [expert for expert, place in taken.items() if place > least]
    assert more == [spec.num_experts - 2, spec.num_experts - 1]
    with pytest.raises(LarderError) as refused:
        measured.mix(1000)
    assert refused.value.code is ErrorCode.SETTING_INVALID


def test_packing_heeds_what_a_text_showed(folder: Path, found: Calibration, tmp_path: Path) -> None:
    inspection = inspect_folder(str(folder))
    spec = inspection.spec
    assert spec is not None
    measured = measure_formats(inspection, found, None, NeverStops())
    plain = _hand_made(inspection)
    mix = dataclasses.replace(plain, importance=measured.importance)
    assert mix.importance is not None
    assert mix.identity != plain.identity
    other = dataclasses.replace(found, inputs=found.inputs + 1)
    assert CalibratedImportance(other, spec).identity != mix.importance.identity
    prepare_model(inspection, mix.most_common, str(tmp_path / "copy"), mix=mix)
    published = CheckpointStore(inspection)
    store = PreparedStore(tmp_path / "copy", inspection.report.fingerprint)
    before = bytearray(published.layout.record_bytes)
    record = bytearray(store.layout.record_bytes)
    num_heeded = 0
    for expert in inspection.experts:
        published.read_expert(expert, memoryview(before))
        store.read_expert(expert, memoryview(record))
        for part in ExpertPart:
            old, new = published.layout[part], store.layout_of(expert)[part]
            data = np.frombuffer(before, np.uint8, old.num_bytes, old.offset_bytes)
            weights = unpack(old.format, data, old.rows, old.columns)
            counts = mix.importance.of_expert(expert, part)
            assert counts.shape == (old.columns,)
            place = slice(new.offset_bytes, new.offset_bytes + new.num_bytes)
            packed = pack(new.format, weights, counts)
            assert bytes(packed) == record[place]
            num_heeded += bytes(packed) != bytes(pack(new.format, weights))
    assert num_heeded > len(inspection.experts)
    store.close()
    published.close()
    # An expert that no token chose counts all its columns nearly alike.
    found_too = dataclasses.replace(found, uses=np.zeros_like(found.uses))
    unused = CalibratedImportance(found_too, spec)
    first = ExpertId(spec.moe_layers[0], 0)
    assert np.ptp(unused.of_expert(first, ExpertPart.DOWN)) == 0
    assert unused.of_dense("model.embed_tokens.weight") is None


def test_records_and_dense_matrices_are_in_their_formats(folder: Path, tmp_path: Path) -> None:
    inspection = inspect_folder(str(folder))
    mix = _hand_made(inspection)
    copy = prepare_model(inspection, mix.most_common, str(tmp_path / "copy"), mix=mix)
    published = CheckpointStore(inspection)
    store = PreparedStore(tmp_path / "copy", inspection.report.fingerprint)
    before = bytearray(published.layout.record_bytes)
    record = bytearray(store.layout.record_bytes)
    total = 0
    for expert in inspection.experts:
        published.read_expert(expert, memoryview(before))
        store.read_expert(expert, memoryview(record))
        layout = store.layout_of(expert)
        total += layout.record_bytes
        for part in ExpertPart:
            old, new = published.layout[part], layout[part]
            assert new.format is mix.experts[expert]
            data = np.frombuffer(before, np.uint8, old.num_bytes, old.offset_bytes)
            weights = unpack(old.format, data, old.rows, old.columns)
            place = slice(new.offset_bytes, new.offset_bytes + new.num_bytes)
            assert bytes(pack(new.format, weights)) == record[place]
    assert copy.records_bytes == total
    assert max(copy.slot_bytes) == store.layout.record_bytes
    largest: dict[int, int] = {}
    for each in inspection.experts:
        num_bytes = store.layout_of(each).record_bytes
        largest[each.layer] = max(num_bytes, largest.get(each.layer, 0))
    assert copy.slot_bytes == [largest[layer] for layer in sorted(largest)]
    assert copy.mix_bits > 0
    for name, entry in store.dense_tensors.items():
        old_entry = inspection.tensors[name]
        assert entry.shape == old_entry.shape
        assert entry.format is mix.dense.get(name, old_entry.format)
        got = bytearray(entry.num_bytes)
        store.read_tensor(entry, memoryview(got))
        data = np.zeros(old_entry.num_bytes, np.uint8)
        published.read_tensor(old_entry, data.data)
        if name in mix.dense:
            data = pack(entry.format, unpack(old_entry.format, data, *entry.shape))
        assert bytes(got) == data.tobytes()
    store.close()
    published.close()
    # The same again is there already; another mix does not come into the same folder.
    assert prepare_model(inspection, mix.most_common, str(tmp_path / "copy"), mix=mix) == copy
    with pytest.raises(LarderError) as refused:
        prepare_model(inspection, mix.most_common, str(tmp_path / "copy"), mix=Mix(mix.experts, {}))
    assert refused.value.code is ErrorCode.COPY_PLACE_REFUSED


def test_a_manifest_whose_formats_do_not_fit_is_refused(folder: Path, tmp_path: Path) -> None:
    inspection = inspect_folder(str(folder))
    mix = _hand_made(inspection)
    prepare_model(inspection, mix.most_common, str(tmp_path / "copy"), mix=mix)
    path = tmp_path / "copy" / MANIFEST_NAME
    whole = json.loads(path.read_text())
    layer = next(iter(whole["formats"]))
    for formats in ({}, {layer: whole["formats"][layer][:-1]}, {layer: whole["formats"][layer]}):
        path.write_text(json.dumps({**whole, "formats": formats}))
        with pytest.raises(LarderError) as refused:
            read_manifest(tmp_path / "copy")
        assert refused.value.code is ErrorCode.STORE_INVALID


def _plan(folder: Path, copy: PreparedCopy, num_slots: int | None) -> PlacementPlan:
    plan = exact_plan(folder, num_slots, context_tokens=192)
    return msgspec.structs.replace(
        plan,
        store_folder=copy.folder,
        expert_format=copy.expert_format,
        is_exact=False,
        budgets=Budgets(ram_bytes=1 << 28),
    )


def _load(plan: PlacementPlan) -> LoadedParts:
    tools = Tools.alone(choose_kernels())
    parts = load_parts(plan, tools, lambda *_: None, CancelToken())
    assert parts.experts.wait_filled(60)
    return parts


def _logits(parts: LoadedParts) -> torch.Tensor:
    return loaded_logits(parts, _IDS)


def test_answers_of_a_mix_do_not_depend_on_what_is_resident(folder: Path, tmp_path: Path) -> None:
    inspection = inspect_folder(str(folder))
    spec = inspection.spec
    assert spec is not None
    mix = _hand_made(inspection)
    copy = prepare_model(inspection, mix.most_common, str(tmp_path / "copy"), mix=mix)
    whole = _load(_plan(folder, copy, None))
    try:
        # Every expert has a slot of its own size.
        held = whole.ledger.by_kind()
        policy = policy_bytes(len(spec.moe_layers), spec.num_experts)
        assert held[MemoryPart.EXPERTS] == copy.records_bytes + policy
        assert held[MemoryPart.DENSE] == copy.dense_ram_bytes
        expected = _logits(whole)
        limit = whole.ledger.limit_bytes
        # Fewer slots: all of the largest size of their layer, and the same answers; and back.
        fewer = (2,) * len(spec.moe_layers)
        whole.experts.resize(fewer, limit)
        assert torch.equal(_logits(whole), expected)
        whole.experts.resize((spec.num_experts,) * len(spec.moe_layers), limit)
        assert whole.experts.wait_filled(60)
        assert torch.equal(_logits(whole), expected)
        assert whole.ledger.by_kind() == held
    finally:
        whole.close()
    few = _load(_plan(folder, copy, 2))
    try:
        assert torch.equal(_logits(few), expected)
    finally:
        few.close()
    for threads in (1, 2):
        again = _load(_plan(folder, copy, 3))
        try:
            kernels = choose_kernels()
            set_threads = getattr(getattr(kernels, "module", None), "set_num_threads", None)
            if set_threads is not None:
                set_threads(threads)
            assert torch.equal(_logits(again), expected)
        finally:
            again.close()


def test_the_command_reads_a_text_first_and_writes_a_mix(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("LARDER_HOME", str(tmp_path))
    monkeypatch.setattr("runtime.cli.calibrating.USUAL_TOKENS", 96)
    size = inspect_folder(str(folder)).report.num_parameters / (1 << 30)
    assert run_program(["prepare", str(folder), "--mix", str(size), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    manifest = read_manifest(Path(told["folder"]))
    assert manifest.size_bytes < 1.1 * size * (1 << 30)
    assert len({each for formats in manifest.formats.values() for each in formats}) > 1
    assert run_program(["plan", str(folder), "--json"]) == 0
    plans = json.loads(capsys.readouterr().out)["plans"]
    mixed = next(plan for plan in plans if plan["kind"] == "mixed")
    assert mixed["store_folder"] == told["folder"]
    assert mixed["problem"] is None
    assert run_program(["prepare", str(folder), "--mix", "0.000001"]) == 2
    missing = str(tmp_path / "none.txt")
    assert run_program(["prepare", str(folder), "--mix", str(size), "--text", missing]) == 2
    assert "none.txt" in capsys.readouterr().err


def test_a_mix_ordered_by_the_window_reads_a_text_of_the_persons_and_tells_each_phase(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LARDER_HOME", str(tmp_path / "home"))
    text = tmp_path / "mine.txt"
    text.write_text(_TEXT)
    command = PrepareModel(
        request_id=1,
        folder=str(folder),
        expert_format=WeightFormat.Q4A_G32,
        mix_bytes=inspect_folder(str(folder)).report.num_parameters,
        calibration_text=str(text),
    )
    phases: list[PreparePhase] = []

    def note(done: int, total: int, _rate: float, phase: PreparePhase) -> None:
        assert 0 <= done <= total
        if phase not in phases:
            phases.append(phase)

    copy = ChildPreparer()(command, note, CancelToken())
    assert phases == list(PreparePhase)
    assert read_manifest(Path(copy.folder)).size_bytes < 1.1 * command.mix_bytes
