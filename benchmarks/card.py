"""What a real card does: copies, kernels, a synthetic model and agreement, as a table and JSON.

Run by `tests/gpu/run.sh` on a PC with a card; writes `gpu.json` into a folder. `--device torch-cpu`
lets torch's processor stand in for a card, with `--quick` in seconds: so the script itself is
tested where there is none, and its figures mean nothing.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from card_answers import answers
from card_fixed import fixed_costs
from card_peer import peers
from model_shapes import QWEN3_30B, SHAPES, RandomWeights, Shape, random_record
from reporting import machine

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from runtime.device.modules import KINDS, module_of  # noqa: E402
from runtime.device.torch_device import TorchDevice  # noqa: E402
from runtime.generate.kv_cache import KvCache  # noqa: E402
from runtime.kernels.activations import GROUPED  # noqa: E402
from runtime.kernels.base import PLAIN_STYLE, Kernels  # noqa: E402
from runtime.kernels.dispatch import choose_device_kernels, choose_kernels  # noqa: E402
from runtime.kernels.layer_graphs import LayerGraphs  # noqa: E402
from runtime.kernels.matrix import Matrix, Slot  # noqa: E402
from runtime.kernels.tiered import TieredKernels  # noqa: E402
from runtime.memory.ledger import Ledger  # noqa: E402
from runtime.models.families import build_model  # noqa: E402
from runtime.policy.split import even_split  # noqa: E402
from runtime.protocol.plan import MemoryPart  # noqa: E402
from runtime.protocol.values import WeightFormat  # noqa: E402
from runtime.residency.books import Books  # noqa: E402
from runtime.residency.device_experts import DeviceExperts  # noqa: E402
from runtime.residency.experts import ExpertCache  # noqa: E402
from runtime.residency.shape import CacheShape  # noqa: E402
from runtime.spec.tensors import ExpertId, ExpertLayout, TensorEntry, expert_layout  # noqa: E402
from runtime.telemetry.expert_tally import ExpertTally  # noqa: E402
from runtime.telemetry.recorder import Counters  # noqa: E402

CARD = next((f"{kind}:0" for kind in KINDS if module_of(kind) is not None), "cuda:0")
DEMO_VARIABLE = "LARDER_DEMO"
DEMO = Path(os.environ.get(DEMO_VARIABLE) or ROOT / "build" / "demo" / "larder-demo")
"""Its answers are compared too, where it was built or brought along."""
STAND_IN = "torch-cpu"
FORMAT = WeightFormat.Q4_G32
TINY = Shape(64, 32, 8, 2, 4, 2, 16, num_layers=2, vocabulary=96)
PARTS = {"none": 0.0, "a third": 1 / 3, "all": 1.0}
"""VRAM budgets: which part of the experts they hold."""
MIN_TOP1, MAX_KL = 0.995, 1e-3
CONTEXT_TOKENS = 2048
CYCLED_BYTES = 192 << 20
PART_S = 35.0
"""So long a part of the comparison may take; without native kernels the processor needs seconds for
a token, and fewer are compared."""
DECODE_S = 12.0
"""So long the decoding at one budget may take, for the same reason."""
PEER_BY_S = 230.0
"""After so long the peer is left out, so that everything ends within six minutes."""
ROOM_BYTES = 1 << 40
"""A budget that nothing reaches: what a card holds is bounded by what is asked for here."""
Row = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Effort:
    """How much is done."""

    shapes: Mapping[str, Shape]
    model: Shape
    copy_bytes: int
    rounds: int
    tokens: int
    compared_tokens: int


WHOLE = Effort(
    {name: SHAPES[name] for name in ("Qwen3-30B-A3B", "gpt-oss-20b")},
    QWEN3_30B,
    256 << 20,
    30,
    48,
    2000,
)
QUICK = Effort({"tiny": TINY}, TINY, 1 << 20, 2, 4, 12)


def seconds_of(device: TorchDevice, work: Callable[[], object], rounds: int) -> float:
    """Return seconds of a piece of work, the first time not counted."""
    work()
    device.synchronize()
    started_s = time.perf_counter()
    for _ in range(rounds):
        work()
    device.synchronize()
    return max(1e-9, time.perf_counter() - started_s) / rounds


def copies(device: TorchDevice, effort: Effort) -> Iterator[Row]:
    """Yield rates of the link as uploads take it, and of the card's own memory."""
    size = effort.copy_bytes
    source = torch.ones(size, dtype=torch.uint8)
    arena = device.arena(MemoryPart.EXPERTS, 2, size)
    first, second = arena.tensor(0), arena.tensor(1)
    upload_s = seconds_of(device, lambda: device.copy(source, first).wait(), 4)
    yield {"what": "upload, as the engine does it", "gb_per_s": size / upload_s / 1e9}
    locked = torch.ones(size, dtype=torch.uint8, pin_memory=device.torch_device.type != "cpu")
    locked_s = seconds_of(device, lambda: first.copy_(locked, non_blocking=True), 4)
    yield {"what": "upload from page-locked RAM", "gb_per_s": size / locked_s / 1e9}
    row = torch.ones(1, 2048)
    yield {"what": "a hidden state goes over", "us": 1e6 * seconds_of(
        device, lambda: device.send(row), effort.rounds
    )}  # fmt: skip
    own_s = seconds_of(device, lambda: second.copy_(first), 10)
    yield {"what": "the card's memory, read and written", "gb_per_s": 2 * size / own_s / 1e9}
    arena.close()


def kernels_of(device: TorchDevice, effort: Effort, memory_per_s: float) -> Iterator[Row]:
    """Yield what the experts of one token take in each format, beside the card's memory."""
    kernels = choose_device_kernels(device.torch_device)
    for name, shape in effort.shapes.items():
        for weight_format in sorted(GROUPED):
            layout = expert_layout(weight_format, shape.hidden, shape.width)
            took_s = _experts_s(device, kernels, shape, layout, effort.rounds)
            read_per_s = shape.top_k * layout.record_bytes / took_s
            yield {
                "what": f"{name}, {weight_format}, {kernels.name}: experts of a token",
                "us": 1e6 * took_s,
                "gb_per_s": read_per_s / 1e9,
                "share_of_memory": read_per_s / memory_per_s,
            }


def _experts_s(
    device: TorchDevice, kernels: Kernels, shape: Shape, layout: ExpertLayout, rounds: int
) -> float:
    """Return seconds of the experts of one token."""
    record = torch.from_numpy(random_record(layout))
    # So many that they do not stay in the card's cache from one round to the next.
    number = max(shape.top_k, min(shape.num_experts, CYCLED_BYTES // len(record)))
    arena = device.arena(MemoryPart.EXPERTS, number, layout.record_bytes)
    slots = []
    for slot in range(number):
        device.copy(record, arena.tensor(slot)).wait()
        slots.append((slot, Slot.from_buffer(arena.tensor(slot), device.device)))
    x = torch.randn(1, shape.hidden, device=device.torch_device)
    out = torch.zeros_like(x)
    weights = torch.full((1, shape.top_k), 1 / shape.top_k, device=x.device)
    turns = itertools.cycle(range(0, number - shape.top_k + 1, shape.top_k))

    def one_token() -> None:
        first = next(turns)
        chosen = slots[first : first + shape.top_k]
        ids = torch.arange(first, first + shape.top_k, device=x.device, dtype=torch.int32)
        kernels.experts(x, layout, chosen, ids[None], weights, out, PLAIN_STYLE)

    took_s = seconds_of(device, one_token, rounds)
    slots.clear()
    arena.close()
    return took_s


class RandomStore:
    """Experts of random levels, other ones for each, made when they are read."""

    is_direct = False
    num_bytes_read = 0
    dense_tensors: Mapping[str, TensorEntry] = {}

    def __init__(self, shape: Shape) -> None:
        self.layout = expert_layout(FORMAT, shape.hidden, shape.width)
        self._record = random_record(self.layout)
        # Groups of 16 bytes of scales and 128 of levels: only levels are drawn anew.
        self._is_level = np.zeros(len(self._record), np.uint8)
        for part in self.layout.parts.values():
            here = self._is_level[part.offset_bytes : part.offset_bytes + part.num_bytes]
            here.reshape(-1, 144)[:, 16:] = 255

    def layout_of(self, expert: ExpertId) -> ExpertLayout:
        """How one expert lies there: as all do."""
        del expert
        return self.layout

    def place_of(self, expert: ExpertId) -> tuple[str, int]:
        """Return no file."""
        return "random", expert.expert

    def read_expert(self, expert: ExpertId, target: memoryview) -> None:
        """Make an expert."""
        draw = np.random.default_rng((expert.layer, expert.expert))
        noise = draw.integers(0, 256, len(self._record), np.uint8)
        np.frombuffer(target, np.uint8)[: len(noise)] = self._record ^ (noise & self._is_level)

    def read_tensor(self, entry: TensorEntry, target: memoryview) -> None:
        """There is none."""
        raise AssertionError(entry.name)

    def tensor_pieces(self, entry: TensorEntry, room: memoryview) -> Iterator[memoryview]:
        """There are none."""
        raise AssertionError(entry.name)

    def close(self) -> None:
        """Nothing is open."""


class OnDevice:
    """Dense weights on a device, made once for all."""

    def __init__(
        self, made: dict[str, Matrix], weights: RandomWeights, there: torch.device
    ) -> None:
        self._made = made
        self._weights = weights
        self._there = there

    def matrix(self, name: str) -> Matrix:
        """Return a matrix there."""
        made = self._made.get(name)
        if made is None:
            made = self._made[name] = self._weights.matrix(name)
        if self._there.type == "cpu":
            return made
        data = torch.as_tensor(made.data).to(self._there)
        return dataclasses.replace(made, data=data, address=data.data_ptr())

    def vector(self, name: str) -> torch.Tensor:
        """Return a vector there."""
        return self._weights.vector(name).to(self._there)


class SyntheticModel:
    """A random model of a shape with so many experts on a card, or on the processor alone."""

    def __init__(
        self,
        shape: Shape,
        made: dict[str, Matrix],
        device: TorchDevice | None = None,
        num_on_card: int = 0,
    ) -> None:
        spec, layers = shape.spec(), tuple(range(shape.num_layers))
        there = torch.device("cpu") if device is None else device.torch_device
        store, self.counters = RandomStore(shape), Counters()
        tally = ExpertTally(len(layers), shape.num_experts, 4)
        above = even_split(len(layers), num_on_card, shape.num_experts) if device else ()
        cache_shape = CacheShape(
            layers, (shape.num_experts,) * len(layers), shape.num_experts, above
        )
        self.experts = ExpertCache(
            store, cache_shape, Ledger(ROOM_BYTES), Books(self.counters, tally)
        )
        host: Kernels = choose_kernels()
        kernels = host if device is None else TieredKernels(host, device, self.counters)
        if device is not None:
            self.experts.attach(DeviceExperts(device, cache_shape, store.layout.record_bytes))
        self.experts.fill(shape.num_experts, ignore_progress)
        self._kv = KvCache(Ledger(ROOM_BYTES), spec, CONTEXT_TOKENS, device)
        self._model = build_model(
            spec,
            kernels,
            OnDevice(made, RandomWeights(FORMAT, shape), there),
            self.experts,
            CONTEXT_TOKENS,
            there,
            self._graphs(kernels, device),
        )

    @staticmethod
    def _graphs(kernels: Kernels, device: TorchDevice | None) -> LayerGraphs | None:
        """Return what records layers, where the device can."""
        if device is None or device.recorder is None:
            return None
        assert isinstance(kernels, TieredKernels)
        return LayerGraphs(kernels, device, device.recorder)

    def logits(self, token: int) -> torch.Tensor:
        """Put one token through the model; return what it expects next."""
        self.experts.begin_step()
        self._kv.reserve(1)
        hidden = self._model.forward([token], self._kv.num_tokens, self._kv.layers)
        self._kv.commit([token])
        return self._model.logits(hidden)[0].cpu()

    def restart(self) -> None:
        """Forget the conversation."""
        self._kv.truncate(0)

    def close(self) -> None:
        """Give everything back."""
        self._kv.close()
        self.experts.close()


def ignore_progress(done_bytes: int, total_bytes: int) -> None:
    """Show nothing."""
    del done_bytes, total_bytes


def decoding(device: TorchDevice, effort: Effort) -> tuple[list[Row], list[Row]]:
    """Return speed and hits of the synthetic model at each budget, and how far they agree."""
    shape = effort.model
    text = np.random.default_rng(0).integers(0, shape.vocabulary, effort.compared_tokens).tolist()
    made: dict[str, Matrix] = {}
    alone = SyntheticModel(shape, made)
    expected = [logits.log_softmax(-1) for logits in _timely(alone, text)]
    alone.close()
    speeds, agreement = [], []
    for name, part in PARTS.items():
        number = int(part * shape.num_layers * shape.num_experts)
        model = SyntheticModel(shape, made, device, number)
        what = f"experts on the card: {name}"
        agreement.append({"what": what, **_compared(_timely(model, text), expected)})
        model.restart()
        speeds.append({"what": what, **_decoded(model, effort.tokens)})
        model.close()
    return speeds, agreement


def _timely(model: SyntheticModel, text: Sequence[int]) -> Iterator[torch.Tensor]:
    """Yield the logits of each token of a text until the time is over."""
    end_s = time.perf_counter() + PART_S
    for token in text:
        yield model.logits(token)
        if time.perf_counter() > end_s:
            return


def _decoded(model: SyntheticModel, num_tokens: int) -> Row:
    """Return speed and hits of some tokens, each the likeliest after the one before."""
    counters = model.counters
    hits, misses = counters.device_hits, counters.device_misses
    token, started_s, number = 1, time.perf_counter(), 0
    while number < num_tokens and time.perf_counter() - started_s < DECODE_S:
        token = int(model.logits(token).argmax())
        number += 1
    took_s = time.perf_counter() - started_s
    hits, misses = counters.device_hits - hits, counters.device_misses - misses
    return {"tokens_per_s": number / took_s, "hit_ratio": hits / max(1, hits + misses)}


def _compared(found: Iterator[torch.Tensor], expected: Sequence[torch.Tensor]) -> Row:
    """Return how logits agree with what was expected of the same text, token by token."""
    same, number, divergence = 0, 0, 0.0
    for wanted, logits in zip(expected, found, strict=False):
        here = logits.log_softmax(-1)
        same += int(here.argmax()) == int(wanted.argmax())
        divergence += float((wanted.exp() * (wanted - here)).sum())
        number += 1
    top1, kl = same / number, divergence / number
    is_reached = top1 >= MIN_TOP1 and kl <= MAX_KL
    return {"top1": top1, "mean_kl": kl, "tokens": number, "is_reached": is_reached}


def measure(
    device: TorchDevice, effort: Effort, model: Path | None = None, card: str = CARD
) -> dict[str, Any]:
    """Return everything; of a whole model too, if there is one, with a card of that id."""
    began_s = time.perf_counter()
    copied = list(copies(device, effort))
    memory_per_s = 1e9 * copied[-1]["gb_per_s"]
    computed = list(kernels_of(device, effort, memory_per_s))
    fixed = list(fixed_costs(device, effort.model, effort.rounds, CONTEXT_TOKENS, OnDevice))
    speeds, agreement = decoding(device, effort)
    return {
        "card": device.name,
        "torch": torch.__version__,
        "machine": machine(),
        "copies": copied,
        "kernels": computed,
        "fixed": fixed,
        "synthetic": speeds,
        "agreement": agreement,
        "answers": list(_answers(model, card, effort)),
        "peer": list(_peer(effort, speeds, time.perf_counter() - began_s)),
    }


def _answers(model: Path | None, card: str, effort: Effort) -> Iterator[Row]:
    """Yield answers of a whole model at three budgets, or one line that says why there are none."""
    if model is None:
        why = f"not built here; {DEMO_VARIABLE} names its folder elsewhere"
        return iter([{"what": "the demo end to end", "not_compared": why}])
    return answers(model, card, PARTS, effort.tokens)


def _peer(effort: Effort, speeds: Sequence[Row], passed_s: float) -> Iterator[Row]:
    """Yield the peer beside ours, if there is time left for it."""
    if passed_s > PEER_BY_S:
        return iter([{"what": "llama.cpp", "not_compared": f"{passed_s:.0f} s have passed"}])
    return peers(effort.model, PARTS, speeds, effort.tokens)


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default=CARD)
    parser.add_argument("--quick", action="store_true", help="tiny shapes, to try the script out")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "tests")
    options = parser.parse_args()
    own = torch.device("cpu") if options.device == STAND_IN else None
    device = TorchDevice(options.device, ROOM_BYTES, own)
    has_demo = own is None and DEMO.is_dir()
    found = measure(device, QUICK if options.quick else WHOLE, DEMO if has_demo else None)
    device.close()
    for part in ("copies", "kernels", "fixed", "synthetic", "agreement", "answers", "peer"):
        for line in found[part]:
            figures = "  ".join(
                f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
                for name, value in line.items()
                if name != "what"
            )
            print(f"{line['what']:<64}{figures}")
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "gpu.json"
    path.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main()
