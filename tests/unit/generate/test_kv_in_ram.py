"""Keys and values of some layers in RAM beside a card: the same tokens, counted where they lie."""

import json
from pathlib import Path

import msgspec
import pytest
import torch

from runtime.device.base import Device
from runtime.device.simulated import SimulatedDevice
from runtime.device.torch_device import TorchDevice
from runtime.engine.base import CancelToken
from runtime.errors import LarderError
from runtime.generate.engine import TieredEngine
from runtime.generate.kv_cache import KvCache
from runtime.hardware.profile import MACHINE_VARIABLE
from runtime.kernels.reference import ReferenceKernels
from runtime.memory.ledger import Ledger
from runtime.plan.planner import plan_model
from runtime.protocol.errors import ErrorCode
from runtime.protocol.machine import DeviceReport, Measured
from runtime.protocol.plan import MemoryPart
from runtime.protocol.values import Budgets
from runtime.spec.footprint import KV_PAGE_TOKENS, kv_layer_bytes
from tests.support.engine_runs import answer, ignore_load_progress, user
from tests.support.hand_made_plans import device_plan, exact_plan
from tests.support.plan_cases import GIB, facts_of, machine
from tests.support.tiny_checkpoints import tiny_checkpoint
from tests.unit.generate.conftest import OpenEngine
from tests.unit.generate.test_kv_cache import SPEC
from tests.unit.generate.test_placing import Replies

CANCEL = CancelToken()
QUESTION = [user("What is the capital of France?")]
CONTEXT_TOKENS = 3 * KV_PAGE_TOKENS
SIZES = kv_layer_bytes(SPEC, CONTEXT_TOKENS)


@pytest.fixture(autouse=True)
def simulated_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine profile with one fast simulated card."""
    path = tmp_path / "machine.json"
    path.write_text(json.dumps({"devices": [{"total_gib": 1, "link_gb_per_s": 1000}]}))
    monkeypatch.setenv(MACHINE_VARIABLE, str(path))


@pytest.mark.parametrize("in_ram", [(0,), (1,), (0, 1, 2)])
def test_kv_in_ram_same_tokens_and_counted_where_it_lies(
    open_engine: OpenEngine, qwen2_folder: Path, in_ram: tuple[int, ...]
) -> None:
    expected_ids = answer(open_engine(exact_plan(qwen2_folder)), QUESTION).token_ids
    plan = device_plan(qwen2_folder, 3, 2, ram_kv_layers=in_ram)
    engine = open_engine(plan)
    sample = engine.sample(0.1)

    run = answer(engine, QUESTION)

    assert run.token_ids == expected_ids
    assert sample.vram_by_kind == {kind.value: size for kind, size in plan.vram_parts.items()}
    held = {kind: size for kind, size in sample.ram_by_kind.items() if size}
    assert held == {kind.value: size for kind, size in plan.ram_parts.items()}
    parts = engine._parts
    assert parts is not None
    parts.kv.check()
    # What the processor has mixed for a row goes back over the link.
    rows = run.stats.prompt_tokens + run.stats.generated_tokens - 1
    attention = parts.spec.attention[0]
    mixed_bytes = 4 * attention.num_heads * attention.head_dim  # type: ignore[union-attr]
    assert engine.sample(0.1).link_bytes >= rows * len(in_ram) * mixed_bytes


@pytest.mark.parametrize("name", ["gpt_oss", "deepseek_v2"])
def test_kv_in_ram_with_windows_and_latent_rows_same_tokens(
    open_engine: OpenEngine, tiny_root: Path, name: str
) -> None:
    folder = tiny_checkpoint(tiny_root, name)
    expected_ids = answer(open_engine(exact_plan(folder)), QUESTION).token_ids

    run = answer(open_engine(device_plan(folder, 3, 2, ram_kv_layers=(0,))), QUESTION)

    assert run.token_ids == expected_ids


def test_kv_in_ram_beside_a_card_of_torch_answers_as_the_reference_alone(
    qwen2_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_torch(device: str, budget_bytes: int) -> Device:
        return TorchDevice(device, budget_bytes, torch.device("cpu"))

    monkeypatch.setattr("runtime.generate.plan_terms.open_device", open_torch)
    split = device_plan(qwen2_folder, 3, 2, "torch:0", ram_kv_layers=(1,))
    runs = []
    for plan in (exact_plan(qwen2_folder), split):
        engine = TieredEngine(ReferenceKernels())
        engine.load(plan, ignore_load_progress, CancelToken())
        runs.append(answer(engine, QUESTION).token_ids)
        engine.close()

    assert runs[0] == runs[1]


def test_kv_moves_between_tokens_and_back_with_the_conversation(
    open_engine: OpenEngine, qwen2_folder: Path
) -> None:
    talk = [*QUESTION, user("And of Italy?")]
    whole, split = (
        device_plan(qwen2_folder, 3, slots, ram_kv_layers=kv)
        for slots, kv in ((2, ()), (3, (0, 1)))
    )
    steady = open_engine(whole)
    expected = [answer(steady, each).token_ids for each in (QUESTION, talk)]
    engine, replies = open_engine(whole), Replies()

    found = [answer(engine, QUESTION).token_ids]
    for plan in (split, whole, split):
        engine.propose(plan, replies)
        engine.apply()
        parts = engine._parts
        assert parts is not None
        assert parts.kv.ram_layers == tuple(plan.ram_kv_layers)
        assert parts.device is not None
        kinds = parts.device.ledger.by_kind()
        assert kinds[MemoryPart.KV_CACHE] == plan.vram_parts[MemoryPart.KV_CACHE]
        assert kinds[MemoryPart.EXPERTS] == plan.vram_parts[MemoryPart.EXPERTS]
        parts.kv.check()
        parts.experts.check()
    run = answer(engine, talk)
    found.append(run.token_ids)

    assert replies.codes == [None] * 3
    assert found == expected
    assert run.stats.reused_tokens > 0


def test_kv_that_ram_has_no_room_for_stays_on_the_card(
    open_engine: OpenEngine, qwen2_folder: Path
) -> None:
    whole = device_plan(qwen2_folder, 3, 2)
    split = device_plan(qwen2_folder, 3, 3, ram_kv_layers=(0,))
    budgets = msgspec.structs.replace(split.budgets, ram_bytes=whole.ram_bytes)
    engine, replies = open_engine(whole), Replies()
    expected_ids = answer(engine, QUESTION).token_ids

    engine.propose(msgspec.structs.replace(split, budgets=budgets), replies)
    engine.apply()

    assert replies.codes == [ErrorCode.RAM_BUDGET_TOO_SMALL]
    assert engine._parts is not None
    assert engine._parts.kv.ram_layers == ()
    assert answer(engine, QUESTION).token_ids == expected_ids


def test_kv_move_that_fails_half_way_leaves_all_as_it_was() -> None:
    ledger = Ledger(SIZES[0])
    device = SimulatedDevice("simulated:0", "card", sum(SIZES), 1e12)
    cache = KvCache(ledger, SPEC, CONTEXT_TOKENS, device)
    cache.reserve(5)
    for layer, pages in enumerate(cache.layers):
        pages.keys[0].fill_(layer + 1)
        pages.values[0].fill_(-layer - 1)
    cache.commit([3] * 5)

    # Of two layers there is room for one.
    with pytest.raises(LarderError):
        cache.move((0, 1))

    assert cache.ram_layers == ()
    assert ledger.held_bytes == 0
    assert device.ledger.held_bytes == sum(SIZES)
    cache.move((1,))
    assert cache.ram_layers == (1,)
    assert ledger.held_bytes == SIZES[1]
    for layer, pages in enumerate(cache.layers):
        assert (pages.keys[0] == layer + 1).all()
        assert (pages.values[0] == -layer - 1).all()
    cache.check()
    cache.close()
    device.close()
    assert ledger.held_bytes == device.ledger.held_bytes == 0


def test_kv_move_without_a_device_is_none() -> None:
    cache = KvCache(Ledger(sum(SIZES)), SPEC, CONTEXT_TOKENS)

    cache.move(())

    assert cache.ram_layers == ()
    cache.close()


@pytest.mark.parametrize("name", ["gpt_oss", "qwen3_moe"])
def test_plan_with_keys_and_values_in_ram_is_loaded_as_it_says(
    tiny_root: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The planner's own split, of a card whose budget holds no context, in every byte."""

    def open_torch(device: str, budget_bytes: int) -> Device:
        return TorchDevice(device, budget_bytes, torch.device("cpu"))

    monkeypatch.setattr("runtime.generate.plan_terms.open_device", open_torch)
    known = facts_of(tiny_checkpoint(tiny_root, name))
    card = DeviceReport(
        device="cuda:0",
        name="Some Card",
        total_bytes=GIB,
        free_bytes=GIB,
        read_bytes_per_s=Measured(value=400e9, method="measured"),
        is_used=True,
    )
    pc = machine(devices=(card,))
    least = plan_model(known, pc, Budgets(), 256)[0].min_vram_bytes
    plan = plan_model(known, pc, Budgets(vram_bytes={"cuda:0": least}), 256)[0]
    assert len(plan.ram_kv_layers) == known.spec.num_layers
    engines = [TieredEngine(ReferenceKernels()) for _ in range(2)]
    engines[0].load(plan_model(known, machine(), Budgets(), 256)[0], ignore_load_progress, CANCEL)
    engines[1].load(plan, ignore_load_progress, CANCEL)

    sample = engines[1].sample(0.1)
    alone, split = (answer(engine, QUESTION).token_ids for engine in engines)

    assert split == alone
    for told, parts in (
        (sample.ram_by_kind, plan.ram_parts),
        (sample.vram_by_kind, plan.vram_parts),
    ):
        held = {kind: size for kind, size in told.items() if size}
        assert held == {kind.value: size for kind, size in parts.items() if size}
    for engine in engines:
        engine.close()
