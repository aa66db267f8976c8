"""Other budgets for a loaded model: planned anew, taken at the next step, each wish closed once."""

import dataclasses
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest

from runtime.errors import LarderError, report_of
from runtime.protocol.errors import ErrorCode, ErrorReport
from runtime.protocol.messages import (
    BudgetsSet,
    CommandFailed,
    GenerationCancelled,
    LoadModel,
    PlanModel,
    SetBudgets,
    TokensGenerated,
)
from runtime.protocol.model import ModelReport, PreparedCopy
from runtime.protocol.plan import PlacementPlan, PlanKind
from runtime.protocol.values import Budgets, Tier, WeightFormat
from runtime.service.budget_changes import plan_anew
from runtime.service.planning import Planned
from runtime.service.scripted import ScriptedPlanning
from runtime.service.scripted_plans import DEVICE
from tests.support.scripted import (
    ENDLESS,
    FAST,
    ScriptedService,
    ask,
    closing_events,
    some_plan,
)


def set_ram(scripted: ScriptedService, request_id: int, ram_bytes: int | None) -> None:
    scripted.service.handle(SetBudgets(request_id=request_id, budgets=Budgets(ram_bytes=ram_bytes)))


def was_set(scripted: ScriptedService, request_id: int) -> BudgetsSet:
    closing = scripted.wait_until_closed(request_id)
    assert isinstance(closing, BudgetsSet)
    return closing


def failure(scripted: ScriptedService, request_id: int) -> ErrorCode:
    closing = scripted.wait_until_closed(request_id)
    assert isinstance(closing, CommandFailed)
    return closing.error.code


def num_in_ram(plan: PlacementPlan) -> int:
    return next(share.num_experts for share in plan.tiers if share.tier is Tier.RAM)


def test_budgets_without_a_model_are_refused() -> None:
    scripted = ScriptedService()
    set_ram(scripted, 1, None)
    assert failure(scripted, 1) is ErrorCode.NO_MODEL_LOADED
    assert scripted.service.close()


def test_budgets_while_loading_are_refused_as_busy(tmp_path: Path) -> None:
    scripted = ScriptedService(dataclasses.replace(FAST, load_s=600.0))
    scripted.service.handle(LoadModel(request_id=1, plan=some_plan(tmp_path)))
    set_ram(scripted, 2, None)
    assert failure(scripted, 2) is ErrorCode.ENGINE_BUSY
    assert scripted.service.close()


def test_budgets_of_a_resting_model_move_its_experts(tmp_path: Path) -> None:
    scripted = ScriptedService()
    before = scripted.load(1, tmp_path).model
    plan = some_plan(tmp_path)
    set_ram(scripted, 2, plan.min_ram_bytes)
    after = was_set(scripted, 2)
    assert after.model.tiers == after.plan.tiers != before.tiers
    assert num_in_ram(after.plan) < num_in_ram(plan)
    assert after.plan.kind is plan.kind
    assert after.plan.store_folder == plan.store_folder
    assert after.plan.context_tokens == plan.context_tokens
    assert after.model.budget_bytes <= plan.min_ram_bytes
    assert scripted.service.close()


def test_budgets_of_a_device_move_experts_to_it_and_away(tmp_path: Path) -> None:
    scripted = ScriptedService()
    assert scripted.load(1, tmp_path).model.tiers[0].tier is Tier.VRAM
    for request_id, vram_bytes in ((2, 0), (3, 1 << 30)):
        scripted.service.handle(
            SetBudgets(request_id=request_id, budgets=Budgets(vram_bytes={DEVICE: vram_bytes}))
        )
        plan = was_set(scripted, request_id).plan
        assert plan.vram_bytes <= vram_bytes
        assert (plan.device == DEVICE) is bool(plan.vram_bytes) is bool(vram_bytes)
    assert scripted.service.close()


def test_budgets_during_an_answer_are_set_before_it_ends(tmp_path: Path) -> None:
    scripted = ScriptedService(ENDLESS)
    scripted.load(1, tmp_path, ENDLESS)
    plan = some_plan(tmp_path, ENDLESS)
    scripted.service.handle(ask(2))
    scripted.wait_for(TokensGenerated)
    set_ram(scripted, 3, plan.min_ram_bytes)
    assert num_in_ram(was_set(scripted, 3).plan) < num_in_ram(plan)
    assert closing_events(scripted.drain(), 2) == []
    scripted.wait_for(TokensGenerated)
    assert scripted.service.close()
    assert isinstance(scripted.wait_until_closed(2), GenerationCancelled)


def test_budgets_below_the_minimum_are_refused_and_change_nothing(tmp_path: Path) -> None:
    scripted = ScriptedService()
    scripted.load(1, tmp_path)
    plan = some_plan(tmp_path)
    set_ram(scripted, 2, plan.min_ram_bytes - 1)
    assert failure(scripted, 2) is ErrorCode.RAM_BUDGET_TOO_SMALL
    set_ram(scripted, 3, None)
    assert was_set(scripted, 3).plan == plan
    assert scripted.service.close()


class HeldPlanning(ScriptedPlanning):
    """Planning that waits for a gate, so that wishes can gather behind the first."""

    def __init__(self) -> None:
        super().__init__(FAST)
        self.is_reached = threading.Event()
        self.gate = threading.Event()
        self.budgets: list[Budgets] = []
        self.held: list[Mapping[str, int] | None] = []
        self.after: Callable[[], None] = lambda: None

    def plan(
        self,
        folder: str,
        budgets: Budgets,
        context_tokens: int,
        held_vram: Mapping[str, int] | None = None,
        kind: PlanKind | None = None,
    ) -> Planned:
        self.budgets.append(budgets)
        self.held.append(held_vram)
        self.is_reached.set()
        assert self.gate.wait(10.0)
        self.after()
        return super().plan(folder, budgets, context_tokens, held_vram, kind)


def test_budgets_in_a_row_are_planned_for_the_newest_possible_and_all_close(tmp_path: Path) -> None:
    planning = HeldPlanning()
    scripted = ScriptedService(planning=planning)
    scripted.load(1, tmp_path)
    least = some_plan(tmp_path).min_ram_bytes
    set_ram(scripted, 2, least)
    assert planning.is_reached.wait(10.0)
    for request_id in range(3, 40):
        set_ram(scripted, request_id, least + (request_id << 22))
    set_ram(scripted, 40, 1)
    planning.gate.set()
    assert failure(scripted, 40) is ErrorCode.RAM_BUDGET_TOO_SMALL
    newest = was_set(scripted, 39).plan
    for request_id in range(3, 39):
        assert was_set(scripted, request_id).plan == newest
    assert num_in_ram(was_set(scripted, 2).plan) <= num_in_ram(newest)
    assert [budgets.ram_bytes for budgets in planning.budgets] == [least, 1, least + (39 << 22)]
    assert scripted.service.close()


def test_plans_beside_a_loaded_model_count_what_it_holds_as_free(tmp_path: Path) -> None:
    planning = HeldPlanning()
    planning.gate.set()
    scripted = ScriptedService(planning=planning)
    question = PlanModel(request_id=1, folder=str(tmp_path))
    scripted.service.handle(question)
    scripted.wait_until_closed(1)
    scripted.load(2, tmp_path)
    scripted.service.handle(msgspec.structs.replace(question, request_id=3))
    scripted.wait_until_closed(3)
    set_ram(scripted, 4, None)
    scripted.wait_until_closed(4)
    held = {DEVICE: some_plan(tmp_path).vram_bytes}
    assert planning.held == [{}, held, held]
    assert scripted.service.close()


@pytest.mark.expects_log("runtime.service.log", "ERROR")
def test_budgets_with_a_bug_in_planning_close_each_wish(tmp_path: Path) -> None:
    planning = HeldPlanning()
    scripted = ScriptedService(planning=planning)
    scripted.load(1, tmp_path)

    def fail() -> None:
        raise ZeroDivisionError

    planning.after = fail
    planning.gate.set()
    for request_id in range(2, 6):
        set_ram(scripted, request_id, None)
    for request_id in range(2, 6):
        assert failure(scripted, request_id) is ErrorCode.INTERNAL
    assert scripted.service.close()


class TwoCopies(ScriptedPlanning):
    """Planning with two prepared copies in one format."""

    copies = ("/copies/one", "/copies/two")

    def __init__(self) -> None:
        super().__init__(FAST)

    def inspect(self, folder: str) -> ModelReport:
        copies = [
            PreparedCopy(folder=copy, expert_format=WeightFormat.Q8_G32, size_bytes=1)
            for copy in self.copies
        ]
        return msgspec.structs.replace(super().inspect(folder), prepared=copies)


def test_plan_anew_of_a_copy_keeps_the_copy_that_is_loaded(tmp_path: Path) -> None:
    planning = TwoCopies()
    plans = planning.plan(str(tmp_path), Budgets(), 0).plans
    plan = next(each for each in plans if each.kind is PlanKind.EIGHT_BIT)
    for folder in planning.copies:
        loaded = msgspec.structs.replace(plan, store_folder=folder)
        again = plan_anew(planning, loaded, Budgets(ram_bytes=plan.min_ram_bytes))
        assert isinstance(again, PlacementPlan)
        assert again.store_folder == folder


def test_plan_anew_of_a_copy_that_went_is_refused(tmp_path: Path) -> None:
    plans = TwoCopies().plan(str(tmp_path), Budgets(), 0).plans
    plan = next(each for each in plans if each.kind is PlanKind.EIGHT_BIT)
    with pytest.raises(LarderError) as raised:
        plan_anew(ScriptedPlanning(FAST), plan, Budgets())
    assert raised.value.code is ErrorCode.PLAN_OUTDATED


def test_plan_anew_of_a_model_that_changed_is_refused(tmp_path: Path) -> None:
    plan = msgspec.structs.replace(some_plan(tmp_path), model_fingerprint="other")
    with pytest.raises(LarderError) as raised:
        plan_anew(ScriptedPlanning(FAST), plan, Budgets())
    assert raised.value.code is ErrorCode.PLAN_OUTDATED


def test_plan_anew_of_a_model_that_went_is_its_problem(tmp_path: Path) -> None:
    plan = msgspec.structs.replace(some_plan(tmp_path), model_folder=str(tmp_path / "gone"))
    problem = plan_anew(ScriptedPlanning(FAST), plan, Budgets())
    assert isinstance(problem, ErrorReport)
    assert problem.code is ErrorCode.FOLDER_NOT_FOUND


class CardHolds(ScriptedPlanning):
    """Planning of a model that RAM by itself holds no more."""

    least = 1 << 29

    def plan(
        self,
        folder: str,
        budgets: Budgets,
        context_tokens: int,
        held_vram: Mapping[str, int] | None = None,
        kind: PlanKind | None = None,
    ) -> Planned:
        planned = super().plan(folder, budgets, context_tokens, held_vram, kind)
        if budgets.vram_bytes.get(DEVICE, self.least) >= self.least:
            return planned
        problem = report_of(
            LarderError(ErrorCode.VRAM_BUDGET_TOO_SMALL, device=DEVICE, needed_bytes=self.least)
        )
        plans = [msgspec.structs.replace(each, problem=problem) for each in planned.plans]
        return dataclasses.replace(planned, plans=plans)


def test_budgets_that_give_up_a_card_which_ram_cannot_replace_keep_the_least_of_it(
    tmp_path: Path,
) -> None:
    scripted = ScriptedService(planning=CardHolds(FAST))
    scripted.load(1, tmp_path)
    scripted.service.handle(SetBudgets(request_id=2, budgets=Budgets(vram_bytes={DEVICE: 0})))
    plan = was_set(scripted, 2).plan
    assert plan.budgets.vram_bytes[DEVICE] == CardHolds.least
    assert 0 < plan.vram_bytes <= CardHolds.least
    assert scripted.service.close()
