"""A profile made to measure gives a plan with three tiers of the stated parts."""

from pathlib import Path

from runtime.hardware.machine import describe_machine
from runtime.hardware.profile import MACHINE_VARIABLE
from runtime.plan.planner import plan_model
from runtime.protocol.values import Budgets, Tier
from tests.support.card_profile import write_card_profile
from tests.support.checkpoint_folders import TinyModel, write_checkpoint
from tests.support.plan_cases import facts_of


def test_card_profile_gives_three_tiers(tmp_path: Path) -> None:
    model = TinyModel(num_layers=4, num_experts=24, top_k=4)
    folder = write_checkpoint(tmp_path / "model", model)
    path = write_card_profile(tmp_path / "machine.json", folder)
    machine = describe_machine([folder], {MACHINE_VARIABLE: str(path)}, kernels="native-avx2")
    plan = plan_model(facts_of(folder), machine, Budgets())[0]
    assert plan.problem is None
    assert plan.device == "simulated:0"
    num_all = 4 * 24
    counts = {share.tier: share.num_experts for share in plan.tiers}
    assert counts[Tier.VRAM] == round(num_all / 10)
    assert counts[Tier.RAM] == num_all // 3
    assert counts[Tier.DRIVE] == num_all - counts[Tier.VRAM] - counts[Tier.RAM]
