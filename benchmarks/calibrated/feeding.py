"""Feeding tokens to a folder in the parts of our own engine, and what its routers chose."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from runtime.engine.base import CancelToken
from runtime.generate.loading import LoadedParts, Tools, load_parts
from runtime.generate.recording import end_recording, record_routing
from runtime.kernels.dispatch import choose_kernels
from runtime.protocol.plan import PlacementPlan
from runtime.simulate.trace import Trace
from runtime.simulate.trace_files import read_trace
from runtime.telemetry.recorder import Counters

_MAX_FILL_S = 600


@contextlib.contextmanager
def loaded(plan: PlacementPlan, counters: Counters) -> Iterator[LoadedParts]:
    """Load a plan for the time of a block, without the engine that answers in text."""
    tools = Tools.alone(choose_kernels(), counters)
    parts = load_parts(plan, tools, lambda *_: None, CancelToken())
    try:
        assert parts.experts.wait_filled(_MAX_FILL_S)
        yield parts
    finally:
        parts.close()


def feed(parts: LoadedParts, ids: Sequence[int], *, is_prompt: bool = False) -> torch.Tensor:
    """Put tokens through the model one by one, or all at once; return the last one's logits."""
    hidden = torch.empty(0)
    for piece in [list(ids)] if is_prompt else [[token] for token in ids]:
        parts.experts.begin_step()
        parts.kv.reserve(len(piece))
        hidden = parts.model.forward(piece, parts.kv.num_tokens, parts.kv.layers)
        parts.kv.commit(piece)
    return parts.model.logits(hidden[-1:])[0]


def routed(
    plan: PlacementPlan, ids: Sequence[int], folder: Path, *, is_prompt: bool = False
) -> tuple[Trace, int]:
    """Return what routers chose for tokens, recorded in a folder, and what token follows them."""
    with loaded(plan, Counters()) as parts:
        record_routing(parts, folder)
        likeliest = int(feed(parts, ids, is_prompt=is_prompt).argmax())
        end_recording(parts)
    return read_trace(folder), likeliest
