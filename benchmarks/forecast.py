"""`make bench-forecast`: what a plan said of the decode rate, beside what an answer reached.

For the demo, and for a model of random weights in the shape of Qwen3-30B's layers, at RAM for all
experts, for half and for a quarter of them. The drive is held to a fixed rate by a machine profile,
and each model is seen for the first time: its profile folder is empty and nothing of its routing
is known. Beside what was told stands what the cost model says for the misses that there were, so
that errors of hits and of costs are told apart. `--only demo` leaves the larger model out;
`--again` adds a second plan after each first answer, which then knows it; `--dry` keeps no result.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reporting import load_averages, row, write_result

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

DRIVE_GB_PER_S = 0.4
SHARES = (1.0, 0.5, 0.25)
MAX_APART = 0.15
NUM_TOKENS = 128
WARM_TOKENS = 24
CONTEXT_TOKENS = 384
_PROMPT = "Write a long story about a larder, a cat and a storm."


@dataclasses.dataclass(frozen=True)
class Case:
    """One model at one budget: rates told and reached, and the hits of both."""

    model: str
    share: float
    basis: str
    told: float
    reached: float
    by_real_misses: float
    told_hits: float
    real_hits: float

    @property
    def apart(self) -> float:
        """How far the answer lay from what was told, as part of that."""
        return self.reached / self.told - 1


@contextmanager
def held_drive(folder: Path) -> Iterator[None]:
    """Hold reads of weights back for everything that starts inside."""
    profile = folder / "machine.json"
    profile.write_text(json.dumps({"drive": {"most_gb_per_s": DRIVE_GB_PER_S}}))
    before = os.environ.get("LARDER_MACHINE")
    os.environ["LARDER_MACHINE"] = str(profile)
    try:
        yield
    finally:
        os.environ.pop("LARDER_MACHINE")
        if before is not None:
            os.environ["LARDER_MACHINE"] = before


def measured(name: str, folder: Path, share: float, home: Path, *, again: bool) -> list[Case]:
    """The first answer of a model at a budget, and with ``again`` what is told after it."""
    from runtime.engine.base import CancelToken
    from runtime.generate.diary import modelled_rate
    from runtime.generate.engine import TieredEngine
    from runtime.hardware.past_runs import PastRuns
    from runtime.protocol.chat import ChatMessage, Role, SamplingSettings
    from runtime.protocol.messages import GenerationFinished
    from runtime.protocol.values import Budgets
    from runtime.service.local_planning import PAST_RUNS, LocalPlanning
    from runtime.service.prepared_places import PreparedPlaces

    shutil.rmtree(home, ignore_errors=True)
    rates_path = home / "cache" / "rates.json"
    planning = LocalPlanning(PreparedPlaces(home / "data"), rates_path)
    whole = planning.plan(str(folder), Budgets(), CONTEXT_TOKENS).plans[0]
    experts = sum(item.bytes for item in whole.tiers)
    ram_bytes = max(whole.min_ram_bytes, int(whole.all_ram_bytes - (1 - share) * experts))
    cases = []
    for _ in range(1 + again):
        plan = planning.plan(str(folder), Budgets(ram_bytes=ram_bytes), CONTEXT_TOKENS).plans[0]
        forecast = plan.forecast
        assert forecast is not None, plan.problem
        engine = TieredEngine(rates_path=rates_path)
        engine.past_runs = PastRuns(rates_path.with_name(PAST_RUNS))
        engine.load(plan, lambda *_: None, CancelToken())
        engine.wait_filled(300)
        question = [ChatMessage(role=Role.USER, text=_PROMPT)]
        stats = None
        for num_tokens in (WARM_TOKENS, NUM_TOKENS):
            sampling = SamplingSettings(
                temperature=0.8, seed=num_tokens, max_tokens=num_tokens, repetition_penalty=1.2
            )
            for event in engine.start(1, question, sampling, CancelToken()):
                if isinstance(event, GenerationFinished):
                    stats = event.stats
        engine.close()
        assert stats is not None
        if stats.generated_tokens < NUM_TOKENS // 2:
            sys.exit(f"{name} wrote {stats.generated_tokens} tokens only")
        report = planning.inspect(str(folder))
        lookups = report.num_moe_layers * report.top_k
        misses = stats.decode_expert_misses / (stats.generated_tokens - 1)
        cases.append(
            Case(
                model=name,
                share=share,
                basis=f"{forecast.basis}, hits {forecast.hits_basis}",
                told=forecast.decode_tokens_per_s,
                reached=stats.decode_tokens_per_s,
                by_real_misses=forecast.speed_ratio * modelled_rate(forecast, stats, lookups),
                told_hits=forecast.hit_ratio,
                real_hits=1 - misses / lookups,
            )
        )
    return cases


def told_of(case: Case) -> str:
    """The line that a person reads."""
    return (
        f"{case.model} at {case.share:.0%}: told {case.told:.2f} tokens/s ({case.basis}),"
        f" reached {case.reached:.2f} ({case.apart:+.0%}); for the real misses"
        f" {case.by_real_misses:.2f}; hits {case.told_hits:.3f}, really {case.real_hits:.3f}"
    )


def larger_model(folder: Path) -> Path:
    """A random model of two of Qwen3-30B's layers: 2.4 GB of experts.

    Its routing is what random weights make of it, not that of any trained model.
    """
    from tests.support.checkpoint_folders import TinyModel, write_checkpoint

    return write_checkpoint(
        folder,
        TinyModel(
            hidden_size=2048,
            num_layers=2,
            num_heads=32,
            num_kv_heads=4,
            head_dim=128,
            num_experts=128,
            top_k=8,
            expert_width=768,
        ),
    )


def main() -> int:
    """Measure, print, write `benchmarks/results/forecast.json`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=("demo", "larger"))
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--dry", action="store_true", help="write no result")
    options = parser.parse_args()
    demo = Path(os.environ.get("LARDER_DEMO_DIR", ROOT / "build" / "demo")) / "larder-demo"
    cases: list[Case] = []
    with tempfile.TemporaryDirectory(prefix="forecast-") as name:
        folder = Path(name)
        with held_drive(folder):
            models = {"demo": demo}
            if options.only != "demo":
                models["larger"] = larger_model(folder / "larger")
            for model, place in models.items():
                if options.only in {None, model}:
                    for share in SHARES:
                        found = measured(model, place, share, folder / "home", again=options.again)
                        print(*map(told_of, found), sep="\n", flush=True)
                        cases += found
    rows = [
        row(
            what=f"{case.model} at {case.share:.0%}, {case.basis}: reached by told",
            ours=round(case.reached, 3),
            ratio=round(case.reached / case.told, 3),
            target=f"within {MAX_APART:.0%}",
            is_reached=abs(case.apart) <= MAX_APART,
        )
        for case in cases
    ]
    if not options.dry:
        write_result("forecast", rows, load_averages=load_averages())
    return 0


if __name__ == "__main__":
    sys.exit(main())
