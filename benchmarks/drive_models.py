"""The two models of `make bench-drive`, as files of our own kernels' format and as GGUF.

Both have the layers of Qwen3-30B-A3B, 8 of them, and 32 000 tokens. The random one routes as near
to uniformly as a random model can; of the calibrated one both sides have the very same weights, and
it routes its sequence as was recorded.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import numpy as np
import peer
from drive_process import EMBEDDING_SCALE, FORMAT, RECORDS, make_random
from model_shapes import QWEN3_30B, Bytes

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.calibrated.gguf_file import write_gguf  # noqa: E402
from benchmarks.calibrated.model import CalibratedModel, Kind, Tensor  # noqa: E402
from benchmarks.calibrated.shapes import SHAPES  # noqa: E402
from runtime.policy.catalogue import DEFAULT_POLICY, POLICIES  # noqa: E402
from runtime.policy.split import even_split  # noqa: E402
from runtime.simulate.replay import replay  # noqa: E402
from runtime.simulate.trace import Trace  # noqa: E402
from runtime.spec.tensors import ExpertPart, expert_layout  # noqa: E402

RANDOM, CALIBRATED = "random", "calibrated"
OURS, THEIRS = "ours", "peer.gguf"


@functools.cache
def calibrated_model() -> CalibratedModel:
    """Return the calibrated model."""
    shape = SHAPES["qwen3-30b-a3b"]
    return CalibratedModel(shape.changed(QWEN3_30B.num_layers, QWEN3_30B.vocabulary))


def make(folder: Path, routing: str) -> int:
    """Write both sides' files, where they are not there yet; return the bytes of the peer's."""
    ours, theirs = folder / OURS, folder / THEIRS
    ours.mkdir(parents=True, exist_ok=True)
    if routing == RANDOM:
        make_random(ours)
        if not theirs.exists():
            part = theirs.with_suffix(".part")
            peer.write_model(part, QWEN3_30B, "Q4_0", EMBEDDING_SCALE)
            part.replace(theirs)
    else:
        if not (ours / RECORDS).exists():
            _write_ours(ours, calibrated_model())
        if not theirs.exists():
            write_gguf(theirs, calibrated_model())
    return theirs.stat().st_size


def missed_in_replay(num_slots: int, first_tokens: int, num_tokens: int) -> int:
    """Return how many experts a replay of the sequence with the same policy and slots misses.

    Only those of ``num_tokens`` behind the first ones count.
    """
    trace = calibrated_model().routing.trace
    misses = (_misses(trace.part(n), num_slots) for n in (first_tokens, first_tokens + num_tokens))
    before, whole = misses
    return whole - before


def prompt_bytes(routing: str, prompt: list[int], chunk_tokens: int) -> int:
    """Return the bytes of the experts that a prompt uses, each once for every chunk and layer.

    The random model is taken to use all.
    """
    layout = expert_layout(FORMAT, QWEN3_30B.hidden, QWEN3_30B.width)
    number = 0
    for first in range(0, len(prompt), chunk_tokens):
        if routing == RANDOM:
            number += QWEN3_30B.num_layers * QWEN3_30B.num_experts
        else:
            chunk = calibrated_model().routing.trace.ids[first : first + chunk_tokens]
            number += sum(len(np.unique(chunk[:, layer])) for layer in range(chunk.shape[1]))
    return number * layout.record_bytes


def _misses(trace: Trace, num_slots: int) -> int:
    slots = even_split(trace.num_layers, num_slots, trace.num_experts)
    return replay(trace, POLICIES[DEFAULT_POLICY], list(slots)).misses


def _write_ours(folder: Path, model: CalibratedModel) -> None:
    """Write a calibrated model's records and dense matrices; the records last, as a whole."""
    layout = expert_layout(FORMAT, model.shape.hidden, model.shape.expert_width)
    part = folder / f"{RECORDS}.part"
    with part.open("wb") as file:
        for layer in range(model.shape.num_layers):
            experts = [each for each in model.layer_tensors(layer) if each.kind is Kind.EXPERT]
            number = model.shape.num_experts
            for expert in range(number):
                record = np.zeros(layout.record_bytes, np.uint8)
                for index, place in enumerate(ExpertPart):
                    own = layout.parts[place]
                    data = _packed(model, experts[index * number + expert])
                    record[own.offset_bytes : own.offset_bytes + own.num_bytes] = data
                file.write(record.data)
    for tensor in model.tensors():
        name = folder / f"{tensor.name}.bin"
        if tensor.kind is Kind.ROUTER:
            name.write_bytes(model.plain(tensor).tobytes())
        elif tensor.kind in (Kind.DENSE, Kind.EMBEDDING, Kind.HEAD):
            name.write_bytes(_packed(model, tensor).tobytes())
    part.replace(folder / RECORDS)


def _packed(model: CalibratedModel, tensor: Tensor) -> Bytes:
    return np.concatenate([stripe.q4_g32() for stripe in model.stripes(tensor)])
