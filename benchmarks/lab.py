"""`make lab`, which is `make bench-lab`: the policies of the expert cache on real routing.

Writes `benchmarks/results/lab.json`, the tables of `docs/replay.md` and its curves,
`docs/images/replay-*.svg`. Layers and tokens are subsampled, so that it takes minutes; `--layers 1
--tokens 100000` takes everything. `--speed` writes `lab_speed.json`, what a decision costs, and
nothing else. `--choose` searches the default's parameters, leaving out each model in turn.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import itertools
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from curves import Curve, chart
from reporting import load_averages, row, write_result

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.calibrated.likeness import MAX_POINTS, points_apart  # noqa: E402
from runtime.policy.catalogue import DEFAULT_POLICY, POLICIES, LayerFacts, PolicyKind  # noqa: E402
from runtime.policy.expected import Expectation, ExpectedUsePolicy  # noqa: E402
from runtime.policy.split import even_split  # noqa: E402
from runtime.simulate.gap import BASE, BOUND, Judgement, judge, slots_of_share  # noqa: E402
from runtime.simulate.replay import Entry, replay  # noqa: E402
from runtime.simulate.synthetic import likeness_of, synthesize  # noqa: E402
from runtime.simulate.trace import Trace  # noqa: E402
from runtime.simulate.trace_files import HEADER, read_trace  # noqa: E402

SHARES = (0.125, 0.25, 0.5)
CURVE_SHARES = (0.0625, 0.125, 0.1875, 0.25, 0.375, 0.5, 0.75)
TARGET_GAP = 0.30
CHOSEN_ON_TOKENS = 1500
SPEED_TOKENS = 600
MADE_UP_TOKENS = 6000
TARGET_POINTS = -0.5
FOLDERS = ROOT / "resources" / "traces"
PICTURES = ROOT / "docs" / "images"
PAGE = ROOT / "docs" / "replay.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
HEADINGS = {
    Entry.OPTIONAL: "A missed expert may stay outside",
    Entry.REQUIRED: "Every missed expert takes a slot",
}


def traces(layer_stride: int, max_tokens: int) -> list[Trace]:
    """Return the kept traces, subsampled."""
    folders = sorted(path.parent for path in FOLDERS.glob(f"*/{HEADER}"))
    return [read_trace(folder).part(max_tokens, layer_stride) for folder in folders]


def table(found: dict[str, list[list[Judgement]]], names: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a table: the gap closed by each policy at each share, per trace."""
    yield "| trace | " + " | ".join(names) + " |"
    yield "|---|" + "---|" * len(names)
    sums = [0.0] * len(names)
    for name, by_share in found.items():
        cells = []
        for index in range(len(names)):
            closed = [100 * judged[index].gap_closed_ratio for judged in by_share]
            sums[index] += sum(closed) / len(closed)
            cells.append(" / ".join(f"{value:.0f}" for value in closed))
        yield f"| {name} | " + " | ".join(cells) + " |"
    yield "| **mean** | " + " | ".join(f"{total / len(found):.1f}" for total in sums) + " |"


def hits(found: dict[str, list[list[Judgement]]], index: int) -> Iterator[str]:
    """Yield the lines of a table of hit rates: base, the default, bound."""
    yield f"| trace | lru | {DEFAULT_POLICY} | clairvoyant |"
    yield "|---|---|---|---|"
    for name, by_share in found.items():
        columns = [
            [judged[index].base.hit_ratio for judged in by_share],
            [judged[index].replay.hit_ratio for judged in by_share],
            [judged[index].bound.hit_ratio for judged in by_share],
        ]
        cells = [" / ".join(f"{100 * value:.1f}" for value in column) for column in columns]
        yield f"| {name} | " + " | ".join(cells) + " |"


def measure(all_traces: Sequence[Trace]) -> None:
    """Judge all policies; write results and tables."""
    lines, rows = [BEGIN], []
    for entry in Entry:
        names = [name for name in POLICIES if entry is Entry.OPTIONAL or name != "none"]
        found: dict[str, list[list[Judgement]]] = {}
        for trace in all_traces:
            kinds = [POLICIES[name] for name in names]
            shares = [
                share for share in SHARES
                if entry is Entry.OPTIONAL or int(trace.num_experts * share) >= trace.top_k
            ]  # fmt: skip
            found[trace.name] = [
                judge(trace, kinds, slots_of_share(trace, share), entry) for share in shares
            ]
            print(entry, trace.name, flush=True)
        lines += [
            "",
            f"**{HEADINGS[entry]}**: percent of the gap closed.",
            "",
            *table(found, names),
        ]
        default = names.index(DEFAULT_POLICY)
        if entry is Entry.OPTIONAL:
            lines += ["", "Hit rates in percent.", "", *hits(found, default)]
        judged = [cell[default] for by_share in found.values() for cell in by_share]
        gap = sum(item.gap_closed_ratio for item in judged) / len(judged)
        points = min(item.points_above_base for item in judged)
        rows += [
            row(what=f"{DEFAULT_POLICY}, {entry}: mean share of the gap in missed bytes closed",
                ours=round(gap, 3), target=f"at least {TARGET_GAP}", is_reached=gap >= TARGET_GAP),
            row(what=f"{DEFAULT_POLICY}, {entry}: points above even LRU where least",
                ours=round(points, 2), target=f"at least {TARGET_POINTS}",
                is_reached=points >= TARGET_POINTS),
        ]  # fmt: skip
    rows += [*held_out(), *made_up(all_traces)]
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    PAGE.write_text(before + "\n".join([*lines, "", END]) + after, encoding="utf-8")
    sample = [
        f"{item.name}: {item.num_tokens} tokens, {item.num_layers} layers" for item in all_traces
    ]
    print(write_result("lab", rows, sample=sample))


def draw(all_traces: Sequence[Trace]) -> None:
    """Draw what LRU, the default and the bound hit at each share of slots, for each trace."""
    names = (BASE, DEFAULT_POLICY, BOUND)
    for trace in all_traces:
        points: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
        for share in CURVE_SHARES:
            kinds = [POLICIES[name] for name in names]
            for judged in judge(trace, kinds, slots_of_share(trace, share)):
                hits_percent = 100 * judged.replay.hit_ratio
                points[judged.replay.policy].append((100 * share, hits_percent))
        curves = [Curve(name, points[name]) for name in names]
        title = f"{trace.name}: hits by share of experts in slots"
        path = PICTURES / f"replay-{trace.name}.svg"
        text = chart(title, "percent of the experts have a slot", "percent of needs hit", curves)
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT), flush=True)


def speed() -> list[dict[str, object]]:
    """Return what a decision of the default costs where all layers of a model are replayed."""
    trace = read_trace(FOLDERS / "qwen3-30b-a3b-code").part(SPEED_TOKENS)
    number = trace.num_tokens * trace.num_layers
    rows = []
    for name, share in itertools.product((DEFAULT_POLICY, BASE), SHARES):
        slots = even_split(trace.num_layers, slots_of_share(trace, share), trace.num_experts)
        started_s = time.process_time()
        replay(trace, POLICIES[name], slots)
        taken_s = time.process_time() - started_s
        what = f"{name}, {share:.1%} of {trace.name}: CPU seconds for a million decisions"
        rows.append(row(what=what, ours=round(taken_s / number * 1e6, 1)))
    return rows


def held_out() -> list[dict[str, object]]:
    """Return what the default does on layers and tokens that its numbers were not chosen on."""
    closed, above = [], []
    for folder in sorted(path.parent for path in FOLDERS.glob(f"*/{HEADER}")):
        whole = read_trace(folder)
        layers = [layer for layer in range(whole.num_layers) if layer % 6][::5]
        later = dataclasses.replace(
            whole,
            sequence_tokens=(whole.num_tokens - CHOSEN_ON_TOKENS,),
            ids=whole.ids[CHOSEN_ON_TOKENS:],
            scores=None,
        )
        trace = later.part(CHOSEN_ON_TOKENS).only_layers(layers)
        for share in CURVE_SHARES:
            (judged,) = judge(trace, [POLICIES[DEFAULT_POLICY]], slots_of_share(trace, share))
            above.append(judged.points_above_base)
            if share in SHARES:
                closed.append(judged.gap_closed_ratio)
    what = f"{DEFAULT_POLICY}, optional, on other layers and later tokens"
    return [
        row(what=f"{what}: mean share of the gap closed", ours=round(mean(closed), 3),
            target=f"at least {TARGET_GAP}", is_reached=mean(closed) >= TARGET_GAP),
        row(what=f"{what}, 6.25 to 75 %: points above even LRU where least",
            ours=round(min(above), 2), target=f"at least {TARGET_POINTS}",
            is_reached=min(above) >= TARGET_POINTS),
    ]  # fmt: skip


def made_up(all_traces: Sequence[Trace]) -> Iterator[dict[str, object]]:
    """Yield how far a made-up trace is from the one it imitates."""
    for trace in all_traces:
        whole = read_trace(FOLDERS / trace.name)
        whole = whole.part(MADE_UP_TOKENS).only_layers(range(1, whole.num_layers, 6))
        apart = points_apart(synthesize(likeness_of(whole), MADE_UP_TOKENS, seed=1), whole)
        farthest = max(map(abs, apart.values()))
        yield row(what=f"made up like {trace.name}: farthest of {len(apart)} marks, points",
                  ours=round(farthest, 2), target=f"within {MAX_POINTS:.0f}",
                  is_reached=farthest <= MAX_POINTS)  # fmt: skip


def choose(all_traces: Sequence[Trace]) -> None:
    """Print, for each model left out, the parameters that the others choose and what they give."""
    grid = [
        Expectation(decays=(0.5, 0.9, slow), follower_weight=weight, follower_rate=rate)
        for slow, weight, rate in itertools.product((0.98, 0.99), (1.0, 2.0, 4.0), (0.03, 0.06))
    ]
    scores: list[dict[str, list[float]]] = []
    for expectation in grid:
        make = functools.partial(make_trial, expectation)
        kind = PolicyKind("trial", "", make, is_shared=True)
        by_model: dict[str, list[float]] = {}
        for trace in all_traces:
            for share in SHARES:
                (judged,) = judge(trace, [kind], slots_of_share(trace, share))
                by_model.setdefault(trace.origin.model, []).append(judged.gap_closed_ratio)
        scores.append(by_model)
        print(expectation, {model: round(mean(values), 3) for model, values in by_model.items()})
    for left_out in scores[0]:
        others = [
            mean([mean(values) for model, values in by_model.items() if model != left_out])
            for by_model in scores
        ]
        best = others.index(max(others))
        print(f"{left_out}: {mean(scores[best][left_out]):.3f} with {grid[best]}")


def make_trial(expectation: Expectation, slots: int, facts: LayerFacts) -> ExpectedUsePolicy:
    """Make the default policy with other parameters."""
    return ExpectedUsePolicy(slots, facts.num_experts, expectation)


def mean(values: Sequence[float]) -> float:
    """Return the mean."""
    return sum(values) / len(values)


def main() -> None:
    """Measure, or choose parameters."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=6, help="take every so many-th layer")
    parser.add_argument("--tokens", type=int, default=1500, help="take the first tokens")
    parser.add_argument("--plots", action="store_true", help="draw the curves and nothing else")
    parser.add_argument("--speed", action="store_true", help="time decisions and nothing else")
    parser.add_argument("--choose", action="store_true", help="search the default's parameters")
    options = parser.parse_args()
    if options.speed:
        print(write_result("lab_speed", speed(), load_averages=load_averages()))
        return
    all_traces = traces(options.layers, options.tokens)
    if options.choose:
        choose(all_traces)
    else:
        if not options.plots:
            measure(all_traces)
        draw(all_traces)


if __name__ == "__main__":
    main()
