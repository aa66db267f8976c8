"""A published pair of figures beside what the model of `make bench-vram` says of that PC.

The program keeps the least recently used experts of each layer on the card, uploads at most two
missed ones a layer and step, and computes decoding alone so; its figures are of answers of 200
tokens. Two things are asked. Given the hits and uploads that its own counters told, does the cost
model give its rates? And does replayed routing of the same model give them? The kept traces are
each of one topic, the publication's replay is of prompts of many kinds, one after another in one
cache: so the topics take turns here, an answer each.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from card_models import MODELS
from card_rivals import LruUploads, whole_layers
from reporting import row

from runtime.simulate.card import CardMachine, LayerCosts
from runtime.simulate.card_run import CardTiming, Steps, hits_of, run_choice, time_hits
from runtime.simulate.trace import Trace

MACHINE = CardMachine(
    name="12 GB card (RTX 5070), PCIe 5, Ryzen 9 7950X",
    ram_per_s=2.86e6 / 47e-6 / 0.875,
    link_per_s=1e15,
    card_per_s=672e9,
    copy_s=0.0,
    begin_s=142e-6,
    is_overlapped=False,
)
"""The PC and its program: an expert of 2.86 MB takes the processor 47 us, before or after the card
computes its own, and everything waits 142 us for each upload."""
RECORD = 2_860_000
LAYERS, EXPERTS, TOP_K = 48, 128, 8
ANSWER_TOKENS = 200
MAX_UPLOADS = 2
"""Of a layer and step, in that program."""
BAND = 0.15


@dataclasses.dataclass(frozen=True)
class Told:
    """What that program's counters and clock told of one way to run it."""

    what: str
    hits: float
    """Part of the look-ups."""
    uploads: float
    """Of a token."""
    per_s: float


TOLD = (
    Told("all experts on the processor", 0.0, 0.0, 45.0),
    Told("66 slots, one upload a layer", 0.849, 21.1, 105.7),
    Told("66 slots, two uploads, begun early", 0.910, 23.6, 104.0),
    Told("66 slots, uploads outrun the link", 0.234, 86.4, 33.1),
)
REPLAYED = Told("72 slots, their own replay's hits (of 66 slots)", 0.933, 20.46, 113.9)
"""Of the pair no hits are told; their replay's are of two uploads a layer and step too."""
BY_SLOTS = {66: 104.0, 72: 113.9}
"""Tokens per second with so many slots a layer; the second is one half of the pair."""
CPU_LAYERS, BY_LAYERS = 22, 81.7
"""The other half: the experts of so many layers are left to the processor."""


def costs_of() -> LayerCosts:
    """Return what a layer costs there."""
    return LayerCosts.of(MACHINE, dataclasses.replace(MODELS["qwen3"], record=RECORD))


def rate_of(hits: float, uploads: float, costs: LayerCosts) -> float:
    """Return tokens per second with told hits and uploads, spread evenly over layers and steps.

    A layer without a miss saves the way to the processor and back, so the mean of whole numbers of
    misses counts: their share is that of look-ups that miss independently.
    """
    misses = np.arange(TOP_K + 1)
    shares = np.array([_binomial(number, 1 - hits) for number in range(TOP_K + 1)])
    layer_s = float((shares * costs.split(TOP_K - misses, misses)).sum())
    return 1 / (LAYERS * layer_s + costs.token_s + uploads * costs.begin_s)


def _binomial(number: int, part: float) -> float:
    """Return how probable so many of a layer's look-ups are that each come with a probability."""
    ways = np.prod([(TOP_K - each) / (each + 1) for each in range(number)], initial=1.0)
    return float(ways * part**number * (1 - part) ** (TOP_K - number))


def in_turns(traces: Sequence[Trace], num_tokens: int) -> Trace:
    """Return answers of all traces, in turns: from each sequence its first tokens."""
    first = traces[0]
    parts = []
    for number in range(min(len(trace.sequence_tokens) for trace in traces)):
        for trace in traces:
            begin = sum(trace.sequence_tokens[:number])
            end = begin + min(ANSWER_TOKENS, trace.sequence_tokens[number])
            parts.append(trace.ids[begin:end])
    whole = dataclasses.replace(
        first,
        name="topics in turns",
        ids=np.concatenate(parts),
        scores=None,
        hints=None,
        sequence_tokens=tuple(len(part) for part in parts),
    )
    return whole.part(num_tokens)


def replayed(trace: Trace, slots: int, costs: LayerCosts, scale: float) -> CardTiming:
    """Run that program's choice over a trace; the first third fills its cache."""
    rival = LruUploads(
        trace.num_layers, trace.num_experts, slots, memory_steps=0, max_per_layer=MAX_UPLOADS
    )
    costs = dataclasses.replace(costs, token_s=costs.token_s * scale)
    return run_choice(Steps.of(trace, prompt_part=0.0, timed_part=2 / 3), rival, costs)


def published(traces: Sequence[Trace], num_tokens: int) -> list[dict[str, Any]]:
    """Return a line for everything that was told, from traces of the same model."""
    return [_judged(what, ours, peer) for what, ours, peer in _lines(traces, num_tokens)]


def _lines(traces: Sequence[Trace], num_tokens: int) -> Iterator[tuple[str, float, float]]:
    """Yield what is compared, what the model says and what was told."""
    costs, mixed = costs_of(), in_turns(traces, num_tokens)
    scale = mixed.num_layers / LAYERS
    for told in (*TOLD, REPLAYED):
        what = f"{told.what}: {told.hits:.1%} hits and {told.uploads} uploads a token as told"
        yield what, rate_of(told.hits, told.uploads, costs), told.per_s
    for slots, per_s in BY_SLOTS.items():
        timing = replayed(mixed, slots, costs, scale)
        uploads = timing.uploads / timing.num_tokens / scale
        what = (
            f"{slots} slots, replayed, topics in turns: "
            f"{timing.hit_ratio:.1%} hits, {uploads:.1f} uploads a token"
        )
        yield what, scale / timing.token_s, per_s
    left = whole_layers(mixed, 1 - CPU_LAYERS / LAYERS)
    scaled = dataclasses.replace(costs, token_s=costs.token_s * scale)
    timing = time_hits(Steps.of(mixed, prompt_part=0.0), hits_of(mixed, left), scaled)
    yield f"{CPU_LAYERS} layers on the processor", scale / timing.token_s, BY_LAYERS


def _judged(what: str, ours: float, peer: float) -> dict[str, Any]:
    """Return a line, reached if the model is as near as it has to be."""
    return row(
        what=f"published: {what}",
        ours=round(ours, 1),
        peer=peer,
        target=f"within {BAND:.0%}",
        is_reached=abs(ours / peer - 1) <= BAND,
    )
