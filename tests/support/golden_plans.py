"""Golden plans: published models on home PCs, written so that a person can review them.

``python -m tests.support.golden_plans`` writes them anew into ``tests/golden/plans``.
"""

from pathlib import Path

from runtime.plan.planner import plan_model
from runtime.protocol.plan import PlacementPlan, ReasonCode
from runtime.protocol.values import Budgets, WeightFormat
from tests.support.home_machines import HOMES, Home
from tests.support.plan_cases import GIB
from tests.support.published_facts import published_facts

PLANS = Path(__file__).parents[1] / "golden" / "plans"
MODELS = {
    "ibm-granite--granite-3.1-1b-a400m-instruct": (WeightFormat.BF16, 0),
    "openai--gpt-oss-20b": (WeightFormat.MXFP4, 0),
    "Qwen--Qwen3-30B-A3B": (WeightFormat.BF16, 0),
    "mistralai--Mixtral-8x7B-v0.1": (WeightFormat.BF16, 0),
    "zai-org--GLM-4.5-Air": (WeightFormat.BF16, 0),
    "openai--gpt-oss-120b": (WeightFormat.MXFP4, 0),
    "Qwen--Qwen3-235B-A22B": (WeightFormat.BF16, 0),
    "deepseek-ai--DeepSeek-V3": (WeightFormat.BF16, 8),
}
"""Their configs, and how their experts are stored."""
_TOLD_ELSEWHERE = {
    ReasonCode.NOTHING_WRITTEN,
    ReasonCode.WRITES_ONCE,
    ReasonCode.ANSWERS_AS_PUBLISHED,
    ReasonCode.ANSWERS_NEARLY_AS_PUBLISHED,
    ReasonCode.ANSWERS_DIFFER_LITTLE,
    ReasonCode.ANSWERS_DIFFER,
    ReasonCode.ANSWERS_DIFFER_MUCH,
    ReasonCode.WEIGHTS_ARE_WIDENED,
}
"""The same on every PC."""


def plans_of(home: Home) -> dict[str, list[PlacementPlan]]:
    """Return the plans of all models on one PC."""
    machine = home.machine()
    return {
        name: plan_model(published_facts(name, *stored), machine, Budgets())
        for name, stored in MODELS.items()
    }


def text_of(home: Home) -> str:
    """Return the plans of one PC as its golden file has them."""
    lines = [f"# {home.about}"]
    for name, plans in plans_of(home).items():
        lines += ["", name, *(_line(plan) for plan in plans)]
        because = [reason.code for plan in plans for reason in plan.recommended_because]
        lines.append(f"  recommended: {', '.join(because) or 'none'}")
    return "\n".join([*lines, ""])


def _line(plan: PlacementPlan) -> str:
    mark = "*" if plan.recommended_because else " "
    name = f"{plan.choice or '-':<11} {plan.kind:<9}"
    if plan.problem is not None:
        needed = plan.min_ram_bytes / GIB
        return f"{mark} {name} {plan.problem.code}: needs {needed:.1f} GiB of RAM"
    forecast = plan.forecast
    assert forecast is not None
    tiers = ", ".join(
        f"{share.tier} {share.num_experts} ({share.bytes / GIB:.1f} GiB)" for share in plan.tiers
    )
    rates = (
        f"{forecast.decode_tokens_per_s:.2f} tokens/s"
        f" ({forecast.decode_tokens_per_s_low:.2f} to {forecast.decode_tokens_per_s_high:.2f}),"
        f" prompt {forecast.prompt_tokens_per_s:.0f}, hits {forecast.hit_ratio:.3f}"
    )
    memory = f"RAM {plan.ram_bytes / GIB:.1f} GiB, VRAM {plan.vram_bytes / GIB:.1f} GiB"
    why = ", ".join(reason.code for reason in plan.reasons if reason.code not in _TOLD_ELSEWHERE)
    return (
        f"{mark} {name} {tiers}; {memory}; context {plan.context_tokens}; {rates}"
        f"\n              {why}"
    )


def main() -> None:
    """Write all golden files."""
    PLANS.mkdir(exist_ok=True)
    for name, home in HOMES.items():
        (PLANS / f"{name}.txt").write_text(text_of(home))


if __name__ == "__main__":
    main()
