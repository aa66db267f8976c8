"""``larderctl replay``: what policies of the expert cache would have hit on recorded routing."""

import argparse
from collections.abc import Sequence

from runtime.cli.failure import print_json
from runtime.cli.replay_sizes import invalid, record_bytes_of, total_slots
from runtime.cli.replay_timing import print_timings, timing_row
from runtime.cli.screen import safe_text
from runtime.hardware.machine import describe_machine
from runtime.policy.catalogue import DEFAULT_POLICY, POLICIES
from runtime.simulate.gap import BASE, BOUND, Judgement, judge
from runtime.simulate.guesses import with_guesses
from runtime.simulate.hygiene import complaints
from runtime.simulate.machine import MachineCosts, costs_of
from runtime.simulate.records import LayerBytes, sizes_of
from runtime.simulate.replay import Entry
from runtime.simulate.timing import Load, Timing, time_replay
from runtime.simulate.trace import Trace
from runtime.simulate.trace_files import read_trace

_ROW_BYTES = 8192
"""Of a hidden state of 2048 numbers."""
_SHOWN = (BASE, DEFAULT_POLICY, BOUND)


def replay(options: argparse.Namespace) -> int:
    """Judge the chosen policies on each trace and print a table."""
    for name in ("tokens", "layer_stride", "layer_bytes"):
        value = getattr(options, name)
        least = 0 if name == "layer_bytes" else 1
        if value is not None and value < least:
            raise invalid(name.replace("_", "-"), str(value), f"a number from {least}")
    costs = None if options.machine is None else _costs(options)
    found: list[dict[str, object]] = []
    for folder in options.traces:
        whole = read_trace(folder)
        record_bytes = record_bytes_of(options.record_bytes, whole, options.layer_stride)
        trace = whole.part(options.tokens, options.layer_stride)
        for text in options.slots or ("12.5%", "25%", "50%"):
            judged = _judge(trace, text, record_bytes, options)
            timed = [] if costs is None else _time(trace, judged, costs, record_bytes, options)
            rows = [_row(item, text) for item in judged]
            for row, timing in zip(rows, timed, strict=False):
                row["timing"] = timing_row(timing)
            found += rows
            if not options.json:
                _print_table(trace, text, judged)
                print_timings(timed)
        if not options.json:
            for complaint in complaints(trace):
                print(f"Doubtful: {complaint}.")
    if options.json:
        print_json({"replays": found})
    return 0


def _judge(
    trace: Trace, slots: str, record_bytes: Sequence[LayerBytes], options: argparse.Namespace
) -> list[Judgement]:
    names = options.policy or _SHOWN
    for name in names:
        if name not in POLICIES:
            raise invalid("policy", name, f"one of {', '.join(POLICIES)}")
    kinds = [POLICIES[name] for name in names]
    entry = Entry(options.entry)
    total = total_slots(trace, slots, entry, sizes_of(trace, record_bytes))
    return judge(trace, kinds, total, entry, record_bytes)


def _costs(options: argparse.Namespace) -> MachineCosts:
    """Return the costs of the PC that the profile pretends; it is named in the environment."""
    if options.entry != Entry.OPTIONAL:
        raise invalid("entry", options.entry, f"{Entry.OPTIONAL} with --machine")
    folder = str(options.traces[0])
    return costs_of(describe_machine([folder]), folder)


def _time(
    trace: Trace,
    judged: Sequence[Judgement],
    costs: MachineCosts,
    record_bytes: Sequence[LayerBytes],
    options: argparse.Namespace,
) -> list[Timing]:
    """Let the time of the judged policies pass."""
    load = Load(record_bytes=record_bytes, layer_bytes=options.layer_bytes, row_bytes=_ROW_BYTES)
    if options.hints and trace.hints is None:
        if options.layer_stride != 1:
            raise invalid("hints", f"layer stride {options.layer_stride}", "all layers")
        trace = with_guesses(trace)
    return [
        time_replay(
            trace,
            POLICIES[item.replay.policy],
            item.replay.slots,
            costs,
            load,
            follows_hints=options.hints,
        )
        for item in judged
    ]


def _row(judged: Judgement, slots: str) -> dict[str, object]:
    """Return what is printed as JSON."""
    result = judged.replay
    return {
        "trace": result.trace,
        "policy": result.policy,
        "entry": str(result.entry),
        "slots": slots,
        "total_slots": sum(result.slots),
        "hits": result.hits,
        "misses": result.misses,
        "entered": result.entered,
        "hit_bytes": result.hit_bytes,
        "miss_bytes": result.miss_bytes,
        "hit_ratio": result.hit_ratio,
        "gap_closed_ratio": judged.gap_closed_ratio,
    }


def _print_table(trace: Trace, slots: str, judged: Sequence[Judgement]) -> None:
    of_all = f"{slots} of {trace.num_experts} experts in {trace.num_layers} layers"
    print(f"{safe_text(trace.name)}, {of_all}")
    print(f"  {'policy':20}{'hits':>9}{'gap closed':>12}{'misses/token':>14}{'entries/token':>15}")
    for item in judged:
        result = item.replay
        print(
            f"  {result.policy:20}{100 * result.hit_ratio:>8.2f}%"
            f"{100 * item.gap_closed_ratio:>11.1f}%"
            f"{result.misses / trace.num_tokens:>14.2f}{result.entered / trace.num_tokens:>15.2f}"
        )
