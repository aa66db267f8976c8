"""What the fixed part of a token's layers takes on a card: piece by piece, and recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, cast

import torch
from model_shapes import RandomWeights, Shape

from runtime.device.torch_device import TorchDevice
from runtime.generate.kv_cache import KvCache
from runtime.kernels.dispatch import choose_kernels
from runtime.kernels.layer_graphs import PLAIN_TOKENS, LayerGraphs
from runtime.kernels.matrix import Matrix
from runtime.kernels.tiered import TieredKernels
from runtime.memory.ledger import Ledger
from runtime.models.base import DenseWeights, ExpertSource, FixedRunner
from runtime.models.decoder import Decoder, DecoderLayer
from runtime.models.families import build_model
from runtime.protocol.values import WeightFormat
from runtime.telemetry.recorder import Counters

Row = dict[str, Any]
MODEL_LAYERS = 48
GOAL_MS = 5.0
FORMATS = (WeightFormat.Q4_G32, WeightFormat.BF16)
OnDevice = Callable[[dict[str, Matrix], RandomWeights, torch.device], DenseWeights]


def fixed_costs(
    device: TorchDevice, shape: Shape, rounds: int, context_tokens: int, place: OnDevice
) -> Iterator[Row]:
    """Yield milliseconds of so many layers' norms, attention and routers in each dense format.

    The conversation fills half of the context.
    """
    spec, there = shape.spec(), device.torch_device
    tiered = TieredKernels(choose_kernels(), device, Counters())
    for weight_format in FORMATS:
        weights = place({}, RandomWeights(weight_format, shape), there)
        kv = KvCache(Ledger(1 << 40), spec, context_tokens, device)
        nobody = cast("ExpertSource", None)
        model = build_model(spec, tiered, weights, nobody, context_tokens, there)
        position = context_tokens // 2
        kv.reserve(position + PLAIN_TOKENS + 3)
        what = f"fixed part of {MODEL_LAYERS} layers, dense part in {weight_format}"
        stream = torch.randn(1, shape.hidden, device=there)
        plain_s = _seconds(device, model, kv, position, None, stream, rounds)
        yield _row(f"{what}: piece by piece", plain_s, shape)
        if device.recorder is None:
            yield {"what": f"{what}: recorded", "not_measured": "this device records nothing"}
        else:
            graphs = LayerGraphs(tiered, device, device.recorder)
            recorded_s = _seconds(device, model, kv, position, graphs, stream, rounds)
            yield _row(f"{what}: recorded", recorded_s, shape) | (
                {"failure": graphs.failure} if graphs.failure else {}
            )
            graphs.close()
        kv.close()


def _row(what: str, token_s: float, shape: Shape) -> Row:
    milliseconds = 1e3 * token_s * MODEL_LAYERS / shape.num_layers
    return {"what": what, "ms": milliseconds, "is_reached": milliseconds <= GOAL_MS}


def _seconds(
    device: TorchDevice,
    model: Decoder,
    kv: KvCache,
    position: int,
    runner: FixedRunner | None,
    stream: torch.Tensor,
    rounds: int,
) -> float:
    """Return seconds of a token's fixed parts of all layers; what comes first is not counted."""

    def one_token(at: int) -> None:
        x = stream.clone()
        for index, layer in enumerate(model.layers):
            assert isinstance(layer, DecoderLayer)
            done = None
            if runner is not None:
                done = runner.run(index, layer.fixed, x, at, kv.layers[index])
            if done is None:
                layer.fixed(x, at, kv.layers[index])
            else:
                x = done[0]

    for offset in range(PLAIN_TOKENS + 2):
        one_token(position + offset)
    device.synchronize()
    started_s = time.perf_counter()
    for _ in range(rounds):
        one_token(position + PLAIN_TOKENS + 2)
    device.synchronize()
    return (time.perf_counter() - started_s) / rounds
