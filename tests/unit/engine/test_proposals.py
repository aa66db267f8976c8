"""Proposals: the newest is carried out, all are told, whatever the change does."""

from pathlib import Path

import msgspec
import pytest

from runtime.engine.base import CancelToken, Proposals
from runtime.engine.scripted import ScriptedEngine
from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode
from runtime.protocol.model import LoadedModel
from runtime.protocol.plan import PlacementPlan
from tests.support.scripted import FAST, some_plan

Told = list[tuple[PlacementPlan, LoadedModel | LarderError]]


def plans(folder: Path, count: int) -> list[PlacementPlan]:
    return [msgspec.structs.replace(some_plan(folder), ram_bytes=n) for n in range(count)]


def model_under(plan: PlacementPlan) -> LoadedModel:
    engine = ScriptedEngine(FAST)
    return engine.load(plan, lambda *_: None, CancelToken())


def test_proposals_without_any_change_nothing() -> None:
    changed: list[PlacementPlan] = []

    def change(plan: PlacementPlan) -> LoadedModel:
        changed.append(plan)
        return model_under(plan)

    proposals = Proposals()
    assert not proposals.is_waiting
    proposals.carry_out(change)
    assert changed == []


def test_proposals_in_a_row_carry_out_the_newest_and_tell_all_once(tmp_path: Path) -> None:
    proposals = Proposals()
    told: Told = []
    wanted = plans(tmp_path, 3)
    for plan in wanted:
        proposals.put(plan, lambda *outcome: told.append(outcome))
    assert proposals.is_waiting
    proposals.carry_out(model_under)
    proposals.carry_out(model_under)
    assert len(told) == 3
    assert {plan.ram_bytes for plan, _ in told} == {2}
    assert not proposals.is_waiting


def test_proposals_whose_change_fails_tell_the_error(tmp_path: Path) -> None:
    proposals = Proposals()
    told: Told = []
    (plan,) = plans(tmp_path, 1)
    error = LarderError(ErrorCode.RAM_NOT_FREE, free_bytes=1, needed_bytes=2)

    def fail(_: PlacementPlan) -> LoadedModel:
        raise error

    proposals.put(plan, lambda *outcome: told.append(outcome))
    proposals.carry_out(fail)
    assert told == [(plan, error)]


def test_proposals_whose_change_has_a_bug_tell_it_and_raise(tmp_path: Path) -> None:
    proposals = Proposals()
    told: Told = []

    def fail(_: PlacementPlan) -> LoadedModel:
        raise ZeroDivisionError

    proposals.put(plans(tmp_path, 1)[0], lambda *outcome: told.append(outcome))
    with pytest.raises(ZeroDivisionError):
        proposals.carry_out(fail)
    ((_, outcome),) = told
    assert isinstance(outcome, LarderError)
    assert outcome.code is ErrorCode.INTERNAL


def test_proposals_forgotten_are_not_told(tmp_path: Path) -> None:
    proposals = Proposals()
    told: Told = []
    proposals.put(plans(tmp_path, 1)[0], lambda *outcome: told.append(outcome))
    proposals.forget()
    proposals.carry_out(model_under)
    assert told == []
