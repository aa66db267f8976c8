"""`make bench-forecast`: what a plan said of the decode rate, beside what an answer reached.

For the demo, and for a copy in four bits of eight layers of Qwen3-30B that repeat a recorded
routing (docs/calibrated-models.md), at RAM for all experts, for half and for a quarter of them. The
drive is held to a fixed rate by a machine profile, and each model is seen for the first time: its
profile folder is empty and nothing of its own routing is known. Beside what was told stands what
the cost model says for the misses that there were, so that errors of hits and of costs are told
apart.

The calibrated model is written into build/forecast and used again. With `--only` one model the
result keeps what it says of the other; `--again` adds a second plan after each first answer, which
then knows it; `--dry` writes no result.
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
CONTEXT_TOKENS = 384
EXACT_BITS = 16
NUM_LAYERS, VOCABULARY = 8, 32_000
MODELS = ("demo", "calibrated")
SHAPE, TRACE = "qwen3-30b-a3b", "qwen3-30b-a3b-general"


@dataclasses.dataclass(frozen=True)
class Chat:
    """What a model is asked: an answer that warms it up, then one that is measured."""

    warm: str
    measured: str
    warm_tokens: int
    num_tokens: int
    temperature: float
    repetition_penalty: float


STORY = "Write a long story about a larder, a cat and a storm."
TALK = Chat(STORY, STORY, 24, 128, temperature=0.8, repetition_penalty=1.2)


@dataclasses.dataclass(frozen=True)
class Model:
    """A model, its prepared copies and its chat."""

    folder: Path
    data: Path
    """Where copies lie."""
    chat: Chat
    context_tokens: int = CONTEXT_TOKENS
    bits: int = 16
    """16: as published."""
    takes_guesses: bool = True
    """Of a calibrated model every guess of the next layer would be right, as of no real one."""


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


def measured(name: str, model: Model, share: float, home: Path, *, again: bool) -> list[Case]:
    """The first answer of a model at a budget, and with ``again`` what is told after it."""
    from runtime.engine.base import CancelToken
    from runtime.generate.diary import modelled_rate
    from runtime.generate.engine import TieredEngine
    from runtime.hardware.past_runs import PastRuns
    from runtime.protocol.chat import ChatMessage, Role, SamplingSettings
    from runtime.protocol.messages import GenerationFinished
    from runtime.protocol.plan import PlacementPlan, PlanKind
    from runtime.protocol.values import Budgets
    from runtime.residency.trial import HintMode
    from runtime.service.local_planning import PAST_RUNS, LocalPlanning
    from runtime.service.prepared_places import PreparedPlaces

    shutil.rmtree(home, ignore_errors=True)
    rates_path = home / "cache" / "rates.json"
    planning = LocalPlanning(PreparedPlaces(model.data), rates_path)
    folder, chat = str(model.folder), model.chat
    kind = PlanKind.EXACT if model.bits == EXACT_BITS else PlanKind.FOUR_BIT

    def plan_with(budgets: Budgets) -> PlacementPlan:
        plans = planning.plan(folder, budgets, model.context_tokens).plans
        return next(plan for plan in plans if plan.kind is kind)

    whole = plan_with(Budgets())
    experts = sum(item.bytes for item in whole.tiers)
    ram_bytes = max(whole.min_ram_bytes, int(whole.all_ram_bytes - (1 - share) * experts))
    cases = []
    for _ in range(1 + again):
        plan = plan_with(Budgets(ram_bytes=ram_bytes))
        forecast = plan.forecast
        assert forecast is not None, plan.problem
        engine = TieredEngine(rates_path=rates_path)
        engine.past_runs = PastRuns(rates_path.with_name(PAST_RUNS))
        if not model.takes_guesses:
            engine.hints = HintMode.NEVER
        engine.load(plan, lambda *_: None, CancelToken())
        engine.wait_filled(300)
        stats = None
        for text, num_tokens in (
            (chat.warm, chat.warm_tokens),
            (chat.measured, chat.num_tokens),
        ):
            question = [ChatMessage(role=Role.USER, text=text)]
            sampling = SamplingSettings(
                temperature=chat.temperature,
                seed=num_tokens,
                max_tokens=num_tokens,
                repetition_penalty=chat.repetition_penalty,
            )
            for event in engine.start(1, question, sampling, CancelToken()):
                if isinstance(event, GenerationFinished):
                    stats = event.stats
        engine.close()
        assert stats is not None
        if stats.generated_tokens < chat.num_tokens // 2:
            sys.exit(f"{name} wrote {stats.generated_tokens} tokens only")
        report = planning.inspect(folder)
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


def calibrated_model(place: Path) -> Model:
    """Eight layers of Qwen3-30B that route as recorded, written once, and their copy."""
    from benchmarks.calibrated.hugging_face import write_folder
    from benchmarks.calibrated.model import CalibratedModel
    from benchmarks.calibrated.shapes import SHAPES
    from benchmarks.calibrated.tokenizer import text_of
    from runtime.inspect.folder import inspect_folder
    from runtime.prepare.prepare import prepare_model
    from runtime.protocol.values import WeightFormat
    from runtime.service.prepared_places import PreparedPlaces

    folder, data = place / "model", place / "data"
    shape = dataclasses.replace(SHAPES[SHAPE].changed(NUM_LAYERS, VOCABULARY), trace=TRACE)
    if not (folder / "model.safetensors.index.json").exists():
        write_folder(folder, CalibratedModel(shape))
    copy = str(Path(PreparedPlaces(data).usual) / "copy")
    prepare_model(inspect_folder(str(folder)), WeightFormat.Q4A_G32, copy)
    # The sequence goes on behind what it is asked with, through two of its pieces.
    chat = Chat(
        text_of(list(range(24))),
        text_of(list(range(200, 224))),
        warm_tokens=48,
        num_tokens=192,
        temperature=0.0,
        repetition_penalty=1.0,
    )
    return Model(folder, data, chat, context_tokens=512, bits=4, takes_guesses=False)


def _kept_rows(only: str | None) -> list[dict[str, object]]:
    """Return the rows of the other model, measured before."""
    path = ROOT / "benchmarks" / "results" / "forecast.json"
    if only is None or not path.exists():
        return []
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    others = set(MODELS) - {only}
    return [each for each in rows if each["what"].partition(" at ")[0] in others]


def main() -> int:
    """Measure, print, write `benchmarks/results/forecast.json`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=MODELS)
    parser.add_argument("--share", type=float, action="append", help="of the experts; several")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--dry", action="store_true", help="write no result")
    options = parser.parse_args()
    demo = Path(os.environ.get("LARDER_DEMO_DIR", ROOT / "build" / "demo")) / "larder-demo"
    cases: list[Case] = []
    with tempfile.TemporaryDirectory(prefix="forecast-") as place:
        folder = Path(place)
        with held_drive(folder):
            models = {"demo": Model(demo, folder / "data", TALK)}
            if options.only != "demo":
                models["calibrated"] = calibrated_model(ROOT / "build" / "forecast")
            for name, model in models.items():
                if options.only in {None, name}:
                    for share in options.share or SHARES:
                        found = measured(name, model, share, folder / "home", again=options.again)
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
        kept = _kept_rows(options.only)
        rows = [*kept, *rows] if options.only == MODELS[-1] else [*rows, *kept]
        write_result("forecast", rows, load_averages=load_averages())
    return 0


if __name__ == "__main__":
    sys.exit(main())
