"""A profile made to measure gives a plan with three tiers of the stated parts."""

from pathlib import Path

from runtime.hardware.machine import describe_machine
from runtime.hardware.profile import MACHINE_VARIABLE
from runtime.inspect.folder import inspect_folder
from runtime.plan.planner import plan_model
from runtime.protocol.values import Budgets, Tier
from runtime.spec.facts import ModelFacts
from runtime.spec.footprint import dense_bytes
from tests.support.card_profile import write_card_profile
from tests.support.checkpoint_folders import TinyModel, write_checkpoint


def test_card_profile_gives_three_tiers(tmp_path: Path) -> None:
    model = TinyModel(num_layers=4, num_experts=24, top_k=4)
    folder = write_checkpoint(tmp_path / "model", model)
    path = write_card_profile(tmp_path / "machine.json", folder)
    machine = describe_machine([folder], {MACHINE_VARIABLE: str(path)}, kernels="native-avx2")
    inspection = inspect_folder(str(folder))
    assert inspection.spec is not None
    facts = ModelFacts(inspection.report, inspection.spec, dense_bytes(inspection.tensors.values()))
    plan = plan_model(facts, machine, Budgets())[0]
    assert plan.problem is None
    assert plan.device == "simulated:0"
    num_all = 4 * 24
    counts = {share.tier: share.num_experts for share in plan.tiers}
    assert counts[Tier.VRAM] == round(num_all / 10)
    assert counts[Tier.RAM] == num_all // 3
    assert counts[Tier.DRIVE] == num_all - counts[Tier.VRAM] - counts[Tier.RAM]
