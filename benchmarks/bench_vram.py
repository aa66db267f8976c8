"""`make bench-vram`: what choosing a card's experts is worth, on pretended PCs and real routing.

Runs the engine's own choice (`runtime/policy/device_choice.py`) and its rivals over the kept
traces on three pretended PCs (`card_models.py`), with a third and two thirds of the experts on the
card. The first quarter of each sequence is its prompt; the first half of a trace only warms the
caches. Uploads take the link, the processor's time to begin them, and its RAM while they pass.
Writes `benchmarks/results/vram.json`. `--ablation` prints what each part of the choice brings.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from card_models import MACHINES, model_of, topics_of  # noqa: E402
from card_published import published  # noqa: E402
from card_rivals import Counts, LruUploads, lru_hits, most_used, uses_of, whole_layers  # noqa: E402
from reporting import row, write_result  # noqa: E402

from runtime.policy.device_choice import DeviceChoice, UploadTerms  # noqa: E402
from runtime.simulate.card import CardMachine, LayerCosts  # noqa: E402
from runtime.simulate.card_run import (  # noqa: E402
    CardTiming,
    Choice,
    Flags,
    Steps,
    hits_of,
    run_choice,
    time_hits,
)
from runtime.simulate.trace import Trace  # noqa: E402
from runtime.simulate.trace_files import HEADER, read_trace  # noqa: E402

SHARES = {"a third": 1 / 3, "two thirds": 2 / 3}
TARGETS = {
    "another topic's profile": (1.5, 1.5),
    "whole layers": (1.5, 1.5),
    "this topic's profile": (1.0, 1.0),
    "copying instead of computing": (1.4, 1.1),
}
"""Times of rivals by ours that are to be reached, for each of the shares."""
WORST = 0.98


@dataclasses.dataclass(frozen=True)
class Case:
    """A trace with so many experts of it on the card."""

    steps: Steps
    slots: int
    others: Sequence[Trace]
    """Traces of the same model about something else."""
    share: float
    lru: Counts
    scale: float
    """Layers that are left by those of the model, where some are left out."""

    @property
    def trace(self) -> Trace:
        """The trace."""
        return self.steps.trace

    def costs(self, machine: CardMachine) -> LayerCosts:
        """Return what a layer costs on a machine, the token's part scaled to the layers left."""
        costs = LayerCosts.of(machine, model_of(self.trace))
        return dataclasses.replace(costs, token_s=costs.token_s * self.scale)

    def ours(self, machine: CardMachine, terms: UploadTerms | None = None) -> CardTiming:
        """Run the engine's choice."""
        return run_choice(self.steps, self.choice(terms), self.costs(machine))

    def choice(self, terms: UploadTerms | None = None) -> DeviceChoice:
        """Return the engine's choice before the first step."""
        trace = self.trace
        return DeviceChoice([self.slots] * trace.num_layers, trace.num_experts, terms)

    def rivals(self, machine: CardMachine) -> dict[str, float]:
        """Return seconds of a token of each rival."""
        trace, costs = self.trace, self.costs(machine)
        half = trace.num_tokens // 2

        def still(residents: Flags) -> float:
            return time_hits(self.steps, hits_of(trace, residents), costs).token_s

        elsewhere = [still(most_used(uses_of(other), self.slots)) for other in self.others]
        copied = time_hits(self.steps, self.lru, costs, is_copied=True)
        return {
            "another topic's profile": statistics.fmean(elsewhere),
            "whole layers": still(whole_layers(trace, self.share)),
            "this topic's profile": still(most_used(uses_of(trace, half), self.slots)),
            "copying instead of computing": copied.token_s,
            "what this topic will need most": still(most_used(uses_of(trace), self.slots)),
        }


def _traces() -> list[Trace]:
    """Return all topics of all kept traces."""
    folders = sorted(path.parent for path in (ROOT / "resources" / "traces").glob(f"*/{HEADER}"))
    return [topic for folder in folders for topic in topics_of(read_trace(folder))]


def _is_qwen3(trace: Trace) -> bool:
    """Whether a trace is of the model of the published figures."""
    return trace.name.startswith("qwen3")


def cases(share: float, max_tokens: int, layer_stride: int) -> list[Case]:
    """Return all topics of all kept traces."""
    traces, found = _traces(), []
    for whole in traces:
        trace = whole.part(max_tokens, layer_stride)
        others = [
            each.part(max_tokens, layer_stride)
            for each in traces
            if each.origin.model == whole.origin.model and each.name != whole.name
        ]
        slots = int(trace.num_experts * share)
        scale = trace.num_layers / whole.num_layers
        lru = lru_hits(trace, slots)
        found.append(Case(Steps.of(trace), slots, others, share, lru, scale))
    return found


def measure(max_tokens: int, layer_stride: int) -> None:
    """Compare with all rivals and write the result."""
    rows: list[dict[str, Any]] = []
    details: list[dict[str, Any]] = []
    for number, (name, share) in enumerate(SHARES.items()):
        ratios: dict[str, dict[str, list[float]]] = {}
        for case in cases(share, max_tokens, layer_stride):
            for machine in MACHINES:
                ours = case.ours(machine)
                by_rival = {
                    rival: seconds / ours.token_s for rival, seconds in case.rivals(machine).items()
                }
                for rival, ratio in by_rival.items():
                    ratios.setdefault(rival, {}).setdefault(machine.name, []).append(ratio)
                details.append(
                    {
                        "trace": case.trace.name,
                        "share": name,
                        "machine": machine.name,
                        "token_ms": round(ours.token_s * 1e3 / case.scale, 3),
                        "hit_ratio": round(ours.hit_ratio, 4),
                        "uploads_per_token": round(ours.uploads / ours.num_tokens / case.scale, 2),
                        "rivals_by_ours": {
                            rival: round(ratio, 3) for rival, ratio in by_rival.items()
                        },
                    }
                )
                print(name, case.trace.name, machine.name, details[-1], flush=True)
        rows += _rows(name, number, ratios)
    rows += published(
        [trace.part(layer_stride=layer_stride) for trace in _traces() if _is_qwen3(trace)],
        max_tokens,
    )
    for each in rows:
        print(each["what"], each["ours"], each["target"], each["is_reached"])
    sample = {"tokens": max_tokens, "layer_stride": layer_stride}
    print(write_result("vram", rows, sample=sample, details=details))


def _rows(
    name: str, number: int, ratios: dict[str, dict[str, list[float]]]
) -> list[dict[str, Any]]:
    """Return the lines of a share: the mean over everything, that of each PC, and the worst."""
    rows = []
    for rival, by_machine in ratios.items():
        every = [ratio for found in by_machine.values() for ratio in found]
        target = TARGETS[rival][number] if rival in TARGETS else None
        mean = statistics.geometric_mean(every)
        rows.append(
            row(
                what=f"{name}: {rival}, time by ours, geometric mean",
                ours=round(mean, 3),
                target="" if target is None else f"at least {target}",
                is_reached=None if target is None else mean >= target,
            )
        )
        rows += [
            row(
                what=f"{name}: {rival}, {machine}",
                ours=round(statistics.geometric_mean(found), 3),
            )
            for machine, found in by_machine.items()
        ]
        is_judged = target is not None
        rows.append(
            row(
                what=f"{name}: {rival}, the worst of all traces and PCs",
                ours=round(min(every), 3),
                target=f"at least {WORST}" if is_judged else "",
                is_reached=min(every) >= WORST if is_judged else None,
            )
        )
    return rows


def ablation(max_tokens: int, layer_stride: int) -> None:
    """Print what each part of the choice brings: milliseconds a token, hits, uploads a token."""
    alone = UploadTerms(is_shared=False, follows_prompts=False)
    even = UploadTerms(is_shared=False)
    unprompted = UploadTerms(follows_prompts=False)
    kinds: dict[str, Callable[[Case, LayerCosts], CardTiming]] = {
        "static, this topic's profile": lambda case, costs: time_hits(
            case.steps,
            hits_of(
                case.trace, most_used(uses_of(case.trace, case.trace.num_tokens // 2), case.slots)
            ),
            costs,
        ),
        "LRU, every miss uploaded": _of_lru(0, 1 << 10),
        "LRU, at most 2 uploads": _of_lru(0, 2),
        "the same, seen twice in 32 steps": _of_lru(32, 2),
        "gain, even slots, prompts unheard": _of_terms(alone),
        "gain, even slots, prompts heard": _of_terms(even),
        "gain, slots exchanged, prompts unheard": _of_terms(unprompted),
        "0 uploads after the warm half": _without_uploads,
        "1 upload": _of_terms(UploadTerms(max_per_layer=1)),
        "2 uploads (the default)": _of_terms(UploadTerms()),
        "4 uploads": _of_terms(UploadTerms(max_per_layer=4)),
    }
    print(
        "| choice | "
        + " | ".join(f"{name}, {each.name}" for name in SHARES for each in MACHINES)
        + " |"
    )
    print("|---|" + "---|" * (len(SHARES) * len(MACHINES)))
    by_share = {name: cases(share, max_tokens, layer_stride) for name, share in SHARES.items()}
    for kind, run in kinds.items():
        cells = []
        for found in by_share.values():
            for machine in MACHINES:
                timings = [(case, run(case, case.costs(machine))) for case in found]
                ms = statistics.geometric_mean([t.token_s * 1e3 / c.scale for c, t in timings])
                hit = statistics.fmean([t.hit_ratio for _, t in timings])
                ups = statistics.fmean([t.uploads / t.num_tokens / c.scale for c, t in timings])
                cells.append(f"{ms:.2f} ms, {100 * hit:.1f} %, {ups:.1f}")
        print(f"| {kind} | " + " | ".join(cells) + " |", flush=True)


def _of_terms(terms: UploadTerms) -> Callable[[Case, LayerCosts], CardTiming]:
    """Return a run of the engine's choice with other terms."""
    return lambda case, costs: run_choice(case.steps, case.choice(terms), costs)


def _of_lru(memory_steps: int, max_per_layer: int) -> Callable[[Case, LayerCosts], CardTiming]:
    """Return a run of the least recently used ones."""

    def run(case: Case, costs: LayerCosts) -> CardTiming:
        trace = case.trace
        rival: Choice = LruUploads(
            trace.num_layers,
            trace.num_experts,
            case.slots,
            memory_steps=memory_steps,
            max_per_layer=max_per_layer,
        )
        return run_choice(case.steps, rival, costs)

    return run


def _without_uploads(case: Case, costs: LayerCosts) -> CardTiming:
    """Run the choice over the warm half, and let what lies there then stay."""
    choice = case.choice()
    run_choice(Steps.of(case.trace.part(case.trace.num_tokens // 2)), choice, costs)
    return time_hits(case.steps, hits_of(case.trace, choice.residents), costs)


def main() -> None:
    """Measure, or print the ablation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=2000, help="take the first tokens")
    parser.add_argument("--layers", type=int, default=1, help="take every so many-th layer")
    parser.add_argument("--ablation", action="store_true", help="print what each part brings")
    options = parser.parse_args()
    (ablation if options.ablation else measure)(options.tokens, options.layers)


if __name__ == "__main__":
    main()
