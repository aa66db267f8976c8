"""The engine with a device: the same answers at every budget, counted where they were found."""

import json
from pathlib import Path

import msgspec
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtime.device.base import Device
from runtime.device.torch_device import TorchDevice
from runtime.engine.base import CancelToken
from runtime.errors import LarderError
from runtime.generate.engine import TieredEngine
from runtime.hardware.profile import MACHINE_VARIABLE
from runtime.inspect.folder import inspect_folder
from runtime.kernels.reference import ReferenceKernels
from runtime.protocol.errors import ErrorCode
from runtime.protocol.plan import MemoryPart, PlacementPlan
from runtime.protocol.telemetry import NoteCode
from runtime.protocol.values import Tier
from runtime.telemetry.expert_tally import IN_RAM, IN_VRAM
from tests.support.engine_runs import GREEDY, Run, answer, ignore_load_progress, user
from tests.support.hand_made_plans import device_plan, exact_plan
from tests.support.tiny_checkpoints import tiny_checkpoint
from tests.unit.generate.conftest import OpenEngine
from tests.unit.generate.test_placing import Replies

QUESTION = [user("What is the capital of France?")]


@pytest.fixture(autouse=True)
def simulated_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine profile with one fast simulated card."""
    path = tmp_path / "machine.json"
    path.write_text(json.dumps({"devices": [{"total_gib": 1, "link_gb_per_s": 1000}]}))
    monkeypatch.setenv(MACHINE_VARIABLE, str(path))


@pytest.fixture
def expected_ids(open_engine: OpenEngine, qwen2_folder: Path) -> list[int]:
    """What the processor alone answers."""
    return answer(open_engine(exact_plan(qwen2_folder)), QUESTION).token_ids


@pytest.mark.parametrize(("ram_slots", "vram_slots"), [(3, 0), (1, 2), (3, 3), (6, 6), (1, 6)])
def test_device_any_budget_answers_as_the_processor_alone(
    open_engine: OpenEngine,
    qwen2_folder: Path,
    expected_ids: list[int],
    ram_slots: int,
    vram_slots: int,
) -> None:
    engine = open_engine(device_plan(qwen2_folder, ram_slots, vram_slots))

    run = answer(engine, QUESTION)
    vram, ram, drive = run.stats.tiers

    assert run.token_ids == expected_ids
    assert (vram.tier, ram.tier, drive.tier) == (Tier.VRAM, Tier.RAM, Tier.DRIVE)
    assert vram.misses == ram.hits + ram.misses
    assert ram.misses == drive.hits
    assert not vram.hits or vram_slots
    assert run.stats.seconds["device"] > 0
    assert (drive.hits > 0) == (run.stats.drive_bytes_read > 0)
    if vram_slots and not vram.hits:
        assert has_hits_later(engine, expected_ids)
    assert engine._parts is not None
    engine._parts.experts.check()


def has_hits_later(engine: TieredEngine, expected_ids: list[int]) -> bool:
    """Whether a later answer finds experts on the device: uploads are not waited for."""
    for _ in range(10):
        again = answer(engine, QUESTION)
        assert again.token_ids == expected_ids
        if again.stats.tiers[0].hits:
            return True
    return False


def test_device_second_answer_finds_hot_experts_there(
    open_engine: OpenEngine, qwen2_folder: Path
) -> None:
    engine = open_engine(device_plan(qwen2_folder, 6, 6))
    for _ in range(3):
        answer(engine, QUESTION)
    engine.sample(0.1)

    answer(engine, QUESTION)

    sample = engine.sample(0.1)
    vram, ram, drive = sample.tiers
    assert vram.hits > 10 * (ram.hits + drive.hits)
    assert sample.experts is not None
    assert set(sample.experts.tier) <= {IN_VRAM, IN_RAM}
    assert sample.experts.tier.count(IN_VRAM) == engine._parts.experts.num_on_device  # type: ignore[union-attr]


def test_device_memory_is_counted_to_its_budget_and_given_back(
    open_engine: OpenEngine, qwen2_folder: Path
) -> None:
    plan = device_plan(qwen2_folder, 3, 4)
    engine = open_engine(plan)
    sample = engine.sample(0.1)

    assert sample.vram_by_kind == {kind.value: size for kind, size in plan.vram_parts.items()}
    assert {kind: size for kind, size in sample.ram_by_kind.items() if size} == {
        kind.value: size for kind, size in plan.ram_parts.items()
    }
    assert sample.link_bytes == 0
    assert engine._parts is not None
    device, ledger = engine._parts.device, engine._parts.ledger
    assert device is not None
    assert device.num_bytes_copied >= 0.9 * plan.vram_parts[MemoryPart.DENSE]
    assert device.num_host_bytes >= plan.vram_bytes - plan.vram_parts[MemoryPart.WORK]
    engine.close()
    assert device.ledger.held_bytes == ledger.held_bytes == device.num_host_bytes == 0


def test_device_uploads_are_counted_on_the_link(
    open_engine: OpenEngine, qwen2_folder: Path
) -> None:
    engine = open_engine(device_plan(qwen2_folder, 6, 2))
    engine.sample(0.1)

    answer(engine, QUESTION)
    engine.apply()

    assert engine.sample(0.1).link_bytes > 0


def test_device_that_is_not_there_is_named(open_engine: OpenEngine, qwen2_folder: Path) -> None:
    with pytest.raises(LarderError) as refused:
        open_engine(device_plan(qwen2_folder, 3, 3, device="simulated:7"))

    assert refused.value.code is ErrorCode.VRAM_NOT_THERE
    assert refused.value.parameters == {"device": "simulated:7"}


def test_device_budget_below_the_need_refused(open_engine: OpenEngine, qwen2_folder: Path) -> None:
    plan = device_plan(qwen2_folder, 3, 3, chunk_tokens=1)
    budgets = msgspec.structs.replace(
        plan.budgets, vram_bytes={plan.device: plan.vram_bytes - 4096}
    )

    with pytest.raises(LarderError) as refused:
        open_engine(msgspec.structs.replace(plan, budgets=budgets))

    assert refused.value.code is ErrorCode.RAM_BUDGET_TOO_SMALL


MOST_SLOTS = 8
"""As many as the family with the most experts has; one with fewer has all of them from there on."""
PLACES = st.one_of(
    st.tuples(st.integers(1, MOST_SLOTS), st.none()),
    st.tuples(st.integers(1, MOST_SLOTS), st.integers(0, MOST_SLOTS)),
)


def plan_of(folder: Path, place: tuple[int, int | None]) -> PlacementPlan:
    spec = inspect_folder(str(folder)).spec
    assert spec is not None
    ram_slots, vram_slots = (
        None if slots is None else min(slots, spec.num_experts) for slots in place
    )
    assert ram_slots is not None
    if vram_slots is None:
        return exact_plan(folder, ram_slots, chunk_tokens=8)
    return device_plan(folder, ram_slots, vram_slots, chunk_tokens=8)


@pytest.fixture(params=["qwen2_moe", "qwen3_moe", "mixtral"])
def family_folder(request: pytest.FixtureRequest, tiny_root: Path) -> Path:
    """A tiny checkpoint of each of the first three families."""
    return tiny_checkpoint(tiny_root, str(request.param))


@pytest.fixture
def ids_of_family(open_engine: OpenEngine, family_folder: Path) -> list[int]:
    """What the processor alone answers for the family."""
    token_ids = answer(open_engine(exact_plan(family_folder)), QUESTION).token_ids
    assert len(token_ids) > 1
    return token_ids


@pytest.fixture
def lasting_engine(open_engine: OpenEngine, family_folder: Path) -> TieredEngine:
    """One engine for all examples of a property."""
    return open_engine(plan_of(family_folder, (3, 3)))


@given(first=PLACES, changes=st.dictionaries(st.integers(0, 30), PLACES, max_size=8))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_device_any_live_changes_of_both_budgets_same_tokens(
    lasting_engine: TieredEngine,
    family_folder: Path,
    ids_of_family: list[int],
    first: tuple[int, int | None],
    changes: dict[int, tuple[int, int | None]],
) -> None:
    """Also to the device and away from it, in the middle of an answer."""
    engine, replies = lasting_engine, Replies()
    engine.propose(plan_of(family_folder, first), replies)
    engine.apply()
    assert engine._parts is not None
    engine._parts.kv.truncate(0)
    run = Run([])

    for step, event in enumerate(engine.start(1, QUESTION, GREEDY, CancelToken())):
        run.events.append(event)
        if step in changes:
            engine.propose(plan_of(family_folder, changes[step]), replies)
    engine.apply()

    assert run.token_ids == ids_of_family
    assert all(code is None for code in replies.codes)
    assert engine.wait_filled(60)
    engine.apply()
    last = replies.outcomes[-1][0]
    experts = engine._parts.experts
    experts.check()
    assert sum(experts.slots_per_layer) == sum(last.slots_per_layer)
    assert experts.num_resident == sum(last.slots_per_layer)
    sample = engine.sample(0.1)
    assert sum(sample.ram_by_kind.values()) == last.ram_bytes
    assert sum(sample.vram_by_kind.values()) == last.vram_bytes


def test_device_changed_budgets_are_told_by_tier(
    open_engine: OpenEngine, qwen2_folder: Path
) -> None:
    engine, replies = open_engine(device_plan(qwen2_folder, 3, 3)), Replies()
    engine.sample(0.1)

    engine.propose(device_plan(qwen2_folder, 3, 5), replies)
    engine.apply()

    notes = engine.sample(0.1).notes
    assert [(note.code, note.parameters["tier"]) for note in notes] == [
        (NoteCode.BUDGET_CHANGED, "vram")
    ]


def test_device_too_large_a_move_leaves_everything_as_it_was(
    open_engine: OpenEngine, qwen2_folder: Path, expected_ids: list[int]
) -> None:
    plan = exact_plan(qwen2_folder, 4)
    engine, replies = open_engine(plan), Replies()
    other = device_plan(qwen2_folder, 4, 3)
    budgets = msgspec.structs.replace(other.budgets, vram_bytes={other.device: 4096})

    engine.propose(msgspec.structs.replace(other, budgets=budgets), replies)
    engine.apply()

    assert replies.codes == [ErrorCode.RAM_BUDGET_TOO_SMALL]
    assert engine.wait_filled(60)
    sample = engine.sample(0.1)
    assert sum(sample.ram_by_kind.values()) == plan.ram_bytes
    assert sample.vram_by_kind == {}
    assert answer(engine, QUESTION).token_ids == expected_ids


@pytest.mark.parametrize("vram_slots", [0, 2, 6])
def test_device_of_torch_answers_as_the_reference_alone(
    qwen2_folder: Path, monkeypatch: pytest.MonkeyPatch, vram_slots: int
) -> None:
    """Torch's processor stands in for an accelerator, so that its path is run everywhere."""

    def open_torch(device: str, budget_bytes: int) -> Device:
        return TorchDevice(device, budget_bytes, torch.device("cpu"))

    monkeypatch.setattr("runtime.generate.plan_terms.open_device", open_torch)
    runs = []
    for plan in (exact_plan(qwen2_folder), device_plan(qwen2_folder, 3, vram_slots, "torch:0")):
        engine = TieredEngine(ReferenceKernels())
        engine.load(plan, ignore_load_progress, CancelToken())
        runs.append(answer(engine, QUESTION))
        engine.close()

    alone, on_device = runs
    assert on_device.token_ids == alone.token_ids
    assert (on_device.stats.tiers[0].hits > 0) == (vram_slots > 0)
