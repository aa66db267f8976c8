"""Long prompts borrow the room of some experts, read less, and change no answer."""

import json
from pathlib import Path

import pytest

from runtime.errors import LarderError
from runtime.generate.engine import TieredEngine
from runtime.generate.loading import LoadedParts
from runtime.generate.long_prompts import Loan, loan_for, room_for_prompt
from runtime.hardware.profile import MACHINE_VARIABLE
from runtime.protocol.chat import SamplingSettings
from runtime.protocol.errors import ErrorCode
from runtime.protocol.plan import MemoryPart
from runtime.spec.ram_slots import even_slots
from tests.support.engine_runs import CancelAtCheck, answer, user
from tests.support.hand_made_plans import device_plan, exact_plan
from tests.unit.generate.conftest import OpenEngine

CHUNK_TOKENS = 4
NUM_SLOTS = 4
QUESTION = [user("What does the larder hold, and who has been there? " * 3)]
FEW_TOKENS = SamplingSettings(temperature=0, max_tokens=6)


def parts_of(engine: TieredEngine) -> LoadedParts:
    assert engine._parts is not None
    return engine._parts


def state_of(engine: TieredEngine) -> tuple[dict[MemoryPart, int], int, int]:
    parts = parts_of(engine)
    parts.experts.check()
    num_slots = sum(parts.experts.slots_per_layer)
    return parts.ledger.by_kind(), num_slots, parts.home.chunk_tokens


def without_loans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime.generate.long_prompts.loan_for", lambda *_: None)


@pytest.mark.parametrize("most", [8, 2048])
def test_a_long_prompt_goes_through_in_fewer_chunks_and_reads_less_for_the_same_answer(
    open_engine: OpenEngine, qwen2_folder: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    plan = exact_plan(qwen2_folder, NUM_SLOTS, chunk_tokens=CHUNK_TOKENS)
    monkeypatch.setattr("runtime.generate.long_prompts.MAX_CHUNK_TOKENS", most)
    with monkeypatch.context() as patch:
        without_loans(patch)
        usual = answer(open_engine(plan), QUESTION, FEW_TOKENS)
    engine = open_engine(plan)
    before = state_of(engine)

    large = answer(engine, QUESTION, FEW_TOKENS)

    assert len(usual.prefill) == -(-usual.stats.prompt_tokens // CHUNK_TOKENS)
    assert len(large.prefill) < len(usual.prefill)
    assert len(large.prefill) >= -(-large.stats.prompt_tokens // most)
    assert large.token_ids == usual.token_ids
    assert large.stats.drive_bytes_read < usual.stats.drive_bytes_read
    assert state_of(engine) == before
    assert parts_of(engine).ledger.peak_bytes <= plan.ram_bytes


def test_experts_give_way_while_a_prompt_is_computed(
    open_engine: OpenEngine, qwen2_folder: Path
) -> None:
    engine = open_engine(exact_plan(qwen2_folder, NUM_SLOTS, chunk_tokens=CHUNK_TOKENS))
    parts, before = parts_of(engine), state_of(engine)
    loan = loan_for(parts, 64)
    assert loan is not None
    assert loan.chunk_tokens > CHUNK_TOKENS
    assert sum(loan.slots_per_layer) < before[1]
    with room_for_prompt(parts, 64):
        held, num_slots, chunk_tokens = state_of(engine)
        assert held[MemoryPart.WORK] > before[0][MemoryPart.WORK]
        assert held[MemoryPart.EXPERTS] < before[0][MemoryPart.EXPERTS]
        assert (num_slots, chunk_tokens) == (sum(loan.slots_per_layer), loan.chunk_tokens)
    assert state_of(engine) == before


def test_nothing_is_lent_where_nothing_is_gained(
    open_engine: OpenEngine, qwen2_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = parts_of(open_engine(exact_plan(qwen2_folder, NUM_SLOTS, chunk_tokens=CHUNK_TOKENS)))
    assert loan_for(some, CHUNK_TOKENS) is None
    everything = parts_of(open_engine(exact_plan(qwen2_folder, chunk_tokens=CHUNK_TOKENS)))
    assert loan_for(everything, 64) is None
    few_absent = parts_of(open_engine(exact_plan(qwen2_folder, 5, chunk_tokens=16)))
    assert loan_for(few_absent, 40) is None
    profile = tmp_path / "machine.json"
    profile.write_text(json.dumps({"devices": [{"total_gib": 1, "link_gb_per_s": 1000}]}))
    monkeypatch.setenv(MACHINE_VARIABLE, str(profile))
    plan = device_plan(qwen2_folder, NUM_SLOTS, 1, chunk_tokens=CHUNK_TOKENS)
    assert loan_for(parts_of(open_engine(plan)), 64) is None


def test_a_budget_that_changes_meanwhile_ends_the_loan(
    open_engine: OpenEngine, qwen2_folder: Path
) -> None:
    plan = exact_plan(qwen2_folder, NUM_SLOTS, chunk_tokens=CHUNK_TOKENS)
    smaller = exact_plan(qwen2_folder, NUM_SLOTS - 2, chunk_tokens=CHUNK_TOKENS)
    usual = state_of(open_engine(smaller))
    engine = open_engine(plan)
    with room_for_prompt(parts_of(engine), 64):
        done: list[object] = []
        engine.propose(smaller, lambda *outcome: done.append(outcome))
        engine.apply()
        assert done
        assert state_of(engine) == usual
    assert state_of(engine) == usual


def test_a_cancelled_prompt_gives_everything_back(
    open_engine: OpenEngine, qwen2_folder: Path
) -> None:
    engine = open_engine(exact_plan(qwen2_folder, NUM_SLOTS, chunk_tokens=CHUNK_TOKENS))
    before = state_of(engine)
    events = list(engine.start(1, QUESTION, FEW_TOKENS, CancelAtCheck(2)))
    assert type(events[-1]).__name__ == "GenerationCancelled"
    assert state_of(engine) == before


@pytest.mark.expects_log("runtime.generate.long_prompts", "WARNING")
def test_slots_that_do_not_come_back_are_told_and_the_answer_goes_on(
    open_engine: OpenEngine,
    qwen2_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = open_engine(exact_plan(qwen2_folder, NUM_SLOTS, chunk_tokens=CHUNK_TOKENS))
    parts, (held, num_slots, _) = parts_of(engine), state_of(engine)
    fewer = tuple(even_slots(num_slots - 2, len(parts.experts.slots_per_layer)))
    loan = Loan(CHUNK_TOKENS, fewer)
    monkeypatch.setattr("runtime.generate.long_prompts.loan_for", lambda *_: loan)
    whole = parts.experts.resize

    def refuse(slots: list[int], limit_bytes: int) -> None:
        if sum(slots) == num_slots:
            raise LarderError(ErrorCode.OUT_OF_MEMORY, needed_bytes=1)
        whole(slots, limit_bytes)

    monkeypatch.setattr(parts.experts, "resize", refuse)
    run = answer(engine, QUESTION, FEW_TOKENS)
    assert len(run.token_ids) == FEW_TOKENS.max_tokens
    assert state_of(engine)[1] == num_slots - 2
    assert held[MemoryPart.WORK] == state_of(engine)[0][MemoryPart.WORK]
