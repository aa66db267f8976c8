"""What the card benchmark pretends: machines, models and topics, with the sources of each figure.

Rates: double-channel memory gives 66-78 % of its theoretical rate when read plainly (0.72 taken),
and good 4-bit kernels 80-95 % of that (0.875). Page-locked copies reach about 12, 25 and
32-50 GB/s over PCIe 3, 4 and 5 with 16 lanes; one of 3 MB took 87 us, which is 10 us and 40 GB/s.
Kernels on a card and what a layer costs beside its bytes (75 % and 15 us) are chosen so that a
published fit comes out: 4.18 ms a token of Qwen3-30B-A3B in 4.8 bits, all on a card of 672 GB/s.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from runtime.simulate.card import CardMachine, ModelBytes
from runtime.simulate.trace import Trace

MACHINES = (
    CardMachine(
        name="8 GB card, PCIe 3, DDR4-2666", ram_per_s=30.7e9, link_per_s=12e9, card_per_s=448e9
    ),
    CardMachine(
        name="12 GB card, PCIe 4, DDR4-3600", ram_per_s=41.5e9, link_per_s=25e9, card_per_s=360e9
    ),
    CardMachine(
        name="16 GB card, PCIe 5, DDR5-6000", ram_per_s=69e9, link_per_s=40e9, card_per_s=896e9
    ),
)
"""Cards: RTX 2080 (448 GB/s), RTX 3060 (360) and RTX 5070 Ti (896)."""
MODELS = {
    "qwen3": ModelBytes(record=2_654_208, layer=11_500_000, token=175_000_000),
    "gpt": ModelBytes(record=13_219_200, layer=14_900_000, token=326_000_000),
    "deepseek": ModelBytes(record=4_866_048, layer=17_500_000, token=156_000_000),
}
"""Qwen3-30B-A3B and DeepSeek-V2-Lite in 4.5 bits, experts of gpt-oss-20b in MXFP4, by the beginning
of the trace's name. A layer is attention, router and shared experts; a token the output matrix
(and DeepSeek's one dense layer)."""
ABOUT_NUMBERS = (
    0, 2, 9, 11, 12, 14, 18, 28, 29, 31, 36, 37, 38, 40, 44, 46, 47, 56, 59, 60, 61, 68
)  # fmt: skip
"""Answers of the gpt-oss trace about mathematics, physics, chemistry, computers and engineering;
the others are about law, history, medicine, business and society."""


def model_of(trace: Trace) -> ModelBytes:
    """Return the bytes of the model of a trace."""
    return MODELS[trace.name.split("-")[0]]


def topics_of(trace: Trace) -> list[Trace]:
    """Return a trace as it is, or the answers of different topics apart."""
    if not trace.name.startswith("gpt-oss"):
        return [trace]
    others = [n for n in range(len(trace.sequence_tokens)) if n not in ABOUT_NUMBERS]
    return [
        _sequences(trace, ABOUT_NUMBERS, "numbers"),
        _sequences(trace, others, "people"),
    ]


def _sequences(trace: Trace, chosen: Sequence[int], topic: str) -> Trace:
    """Return some sequences of a trace."""
    starts = np.cumsum((0, *trace.sequence_tokens))
    rows = np.concatenate([np.arange(starts[n], starts[n + 1]) for n in chosen])
    return dataclasses.replace(
        trace,
        name=trace.name.removesuffix("answers") + topic,
        ids=trace.ids[rows],
        scores=None,
        sequence_tokens=tuple(trace.sequence_tokens[n] for n in chosen),
    )
