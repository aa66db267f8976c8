"""`make bench-ram_tier`: the demo model with RAM for a part of its routed bytes.

For each part and policy: hits, drive bytes and tokens a second, while tokens are generated. The
policies take turns, so that other programs on the machine hinder each alike; the rates are medians.
`lru` is the policy of earlier versions, with the same reads beside the computation. With RAM for a
fifth there is also what a person meets: the choice that the planner recommends then, whose copy is
written for the measurement.
"""

from __future__ import annotations

import dataclasses
import statistics
import sys
import tempfile
from pathlib import Path

import msgspec
from priority import first_in_scheduler
from reporting import load_averages, row, write_result

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from runtime.engine.base import CancelToken  # noqa: E402
from runtime.generate.engine import TieredEngine  # noqa: E402
from runtime.inspect.folder import inspect_folder  # noqa: E402
from runtime.policy.catalogue import DEFAULT_POLICY  # noqa: E402
from runtime.policy.split import even_split  # noqa: E402
from runtime.prepare.prepare import prepare_model  # noqa: E402
from runtime.protocol.chat import SamplingSettings  # noqa: E402
from runtime.protocol.plan import PlacementPlan  # noqa: E402
from runtime.protocol.values import Budgets, Tier  # noqa: E402
from runtime.service.local_planning import LocalPlanning  # noqa: E402
from runtime.service.prepared_places import PreparedPlaces  # noqa: E402
from runtime.spec.footprint import experts_bytes  # noqa: E402
from runtime.spec.ram_slots import Records, ram_experts_bytes, ram_slots_within  # noqa: E402
from runtime.spec.tensors import expert_layout  # noqa: E402
from tests.support.engine_runs import answer, ignore_load_progress, user  # noqa: E402
from tests.support.hand_made_plans import exact_plan  # noqa: E402

DEMO = ROOT / "build" / "demo" / "larder-demo"
SHARES = {"a fifth": 1 / 5, "a third": 1 / 3, "half": 1 / 2, "all": 1.0}
POLICIES = ("lru", DEFAULT_POLICY)
NUM_ROUNDS = 3
NUM_TOKENS = 48
CONTEXT_TOKENS = 1024
TARGET = 10.0
QUESTION = "Write a long story about a cook and a cellar."


@dataclasses.dataclass(frozen=True)
class Turn:
    """What one answer came to."""

    tokens_per_s: float
    hit_ratio: float
    wait_share: float
    drive_mb_per_token: float


def main() -> None:
    """Measure and write the result."""
    rows = []
    for name, share in SHARES.items():
        plan = plan_of(share)
        turns: dict[str, list[Turn]] = {policy: [] for policy in POLICIES}
        with first_in_scheduler() as is_first:
            for _ in range(NUM_ROUNDS):
                for policy in POLICIES:
                    turns[policy].append(measure(plan, policy))
        for policy, found in turns.items():
            rate = statistics.median(turn.tokens_per_s for turn in found)
            hits = statistics.median(turn.hit_ratio for turn in found)
            is_judged = share == SHARES["a fifth"] and policy == DEFAULT_POLICY
            what = f"{name} of the routed bytes in RAM, {policy}"
            rows += [
                row(what=f"{what}: tokens/s", ours=round(rate, 2),
                    target=f"at least {TARGET:.0f}" if is_judged else "",
                    is_reached=rate >= TARGET if is_judged else None),
                row(what=f"{what}: share of hits", ours=round(hits, 3)),
                row(what=f"{what}: MB read a token",
                    ours=round(statistics.median(t.drive_mb_per_token for t in found), 1)),
            ]  # fmt: skip
            waits = statistics.median(turn.wait_share for turn in found)
            print(f"{what}: {rate:.1f} tokens/s, {hits:.1%} hits, {waits:.0%} of the time waiting")
    rows += recommended_rows(SHARES["a fifth"])
    told = {"is_first_in_scheduler": is_first, "load_averages": load_averages()}
    print(write_result("ram_tier", rows, **told))


def plan_of(share: float) -> PlacementPlan:
    """Return a plan whose experts take a share of all routed bytes, staging and policy included."""
    inspection = inspect_folder(str(DEMO))
    report, spec = inspection.report, inspection.spec
    assert spec is not None
    assert report.stored_format is not None
    layout = expert_layout(report.stored_format, spec.hidden_size, spec.expert_width)
    num_layers = len(spec.moe_layers)
    all_bytes = num_layers * spec.num_experts * layout.record_bytes
    whole = exact_plan(DEMO, context_tokens=CONTEXT_TOKENS)
    if share == 1:
        return whole
    records = Records.alike(layout.record_bytes, spec)
    num_slots = ram_slots_within(spec, records, int(share * all_bytes))
    slots = list(even_split(num_layers, num_slots, spec.num_experts))
    ram_bytes = (
        whole.ram_bytes
        - ram_experts_bytes(spec, records, whole.slots_per_layer)
        + ram_experts_bytes(spec, records, slots)
    )
    assert experts_bytes(layout, slots) < all_bytes
    return msgspec.structs.replace(
        whole,
        slots_per_layer=slots,
        ram_bytes=ram_bytes,
        budgets=msgspec.structs.replace(whole.budgets, ram_bytes=ram_bytes),
    )


def recommended_rows(share: float) -> list[dict[str, object]]:
    """Return the line of what is recommended with RAM for a share of the published experts."""
    with tempfile.TemporaryDirectory(prefix="ram-tier-") as place:
        planning = LocalPlanning(PreparedPlaces(Path(place)), Path(place) / "rates.json")
        whole = planning.plan(str(DEMO), Budgets(), CONTEXT_TOKENS).plans[0]
        experts_of_all = sum(item.bytes for item in whole.tiers)
        ram_bytes = whole.all_ram_bytes - int((1 - share) * experts_of_all)
        reply = planning.plan(str(DEMO), Budgets(ram_bytes=ram_bytes), CONTEXT_TOKENS)
        plan = next(plan for plan in reply.plans if plan.kind is reply.recommended)
        if plan.needs_prepare:
            folder = Path(place) / "copy"
            prepare_model(inspect_folder(str(DEMO)), plan.expert_format, str(folder))
            plan = msgspec.structs.replace(plan, store_folder=str(folder), needs_prepare=False)
        with first_in_scheduler():
            found = [measure(plan, DEFAULT_POLICY) for _ in range(NUM_ROUNDS)]
    rate = statistics.median(turn.tokens_per_s for turn in found)
    hits = statistics.median(turn.hit_ratio for turn in found)
    what = f"a fifth of the routed bytes in RAM, as recommended ({plan.expert_format.value})"
    print(f"{what}: {rate:.1f} tokens/s, {hits:.1%} hits")
    return [
        row(what=f"{what}: tokens/s", ours=round(rate, 2), target=f"at least {TARGET:.0f}",
            is_reached=rate >= TARGET),
        row(what=f"{what}: share of hits", ours=round(hits, 3)),
    ]  # fmt: skip


def measure(plan: PlacementPlan, policy: str) -> Turn:
    """Load, warm up with one answer, and measure the next."""
    engine = TieredEngine(policy=policy)
    engine.load(plan, ignore_load_progress, CancelToken())
    assert engine.wait_filled(600)
    settings = SamplingSettings(temperature=0, max_tokens=NUM_TOKENS)
    answer(engine, [user("How do I bake bread?")], settings)
    stats = answer(engine, [user(QUESTION)], settings).stats
    engine.close()
    hits = {count.tier: count.hits for count in stats.tiers}
    return Turn(
        stats.decode_tokens_per_s,
        hits[Tier.RAM] / sum(hits.values()),
        stats.seconds["drive_wait"] / (stats.prefill_s + stats.decode_s),
        stats.drive_bytes_read / stats.generated_tokens / 1e6,
    )


if __name__ == "__main__":
    main()
