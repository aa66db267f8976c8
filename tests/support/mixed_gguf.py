"""GGUF files whose experts have matrices of several kinds, with random numbers in them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt

from runtime.spec.gguf import PLAIN, GgufKind
from runtime.spec.tensors import ExpertId, ExpertPart
from tests.support.gguf_files import Declared, vocabulary_values, write_gguf

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]
KindOf = Callable[[int, ExpertPart], str]
"""The kind of a matrix of the experts of a layer."""
NUM_LAYERS, NUM_EXPERTS, TOP_K = 4, 6, 2
HIDDEN, WIDTH, VOCABULARY = 256, 512, 272
SPREAD = 0.06
"""The deviation of weights, with which numbers neither grow nor vanish."""
_UNITS_AT = {GgufKind.Q2_K: 80, GgufKind.Q3_K: 108, GgufKind.Q6_K: 208}
_WITH_LEASTS = ("Q4_1", "Q5_1", "Q2_K", "Q4_K", "Q5_K")


def q4_k_m(layer: int, part: ExpertPart) -> str:
    """Most files: what leads down has more bits in half of the layers."""
    return "Q6_K" if part is ExpertPart.DOWN and layer in (2, 3) else "Q4_K"


def q5_k_m(layer: int, part: ExpertPart) -> str:
    """The same of files with a bit more."""
    return "Q6_K" if part is ExpertPart.DOWN and layer in (2, 3) else "Q5_K"


def all_eight(layer: int, part: ExpertPart) -> str:
    """Two kinds that become one format."""
    return "Q5_1" if part is ExpertPart.DOWN and layer in (2, 3) else "Q4_1"


def q3_k_m(layer: int, part: ExpertPart) -> str:
    """Files with fewer bits: what leads down has more."""
    return "Q4_K" if part is ExpertPart.DOWN else "Q3_K"


def q2_k(layer: int, part: ExpertPart) -> str:
    """Files of the fewest bits: what leads down has more."""
    return "Q3_K" if part is ExpertPart.DOWN and layer != 1 else "Q2_K"


def older(layer: int, part: ExpertPart) -> str:
    """Kinds of 32 weights beside each other."""
    return "Q8_0" if part is ExpertPart.DOWN and layer != 1 else "Q4_0"


def wide_down(layer: int, part: ExpertPart) -> str:
    """What leads down takes nearly twice as much in half of the layers."""
    return "Q8_0" if part is ExpertPart.DOWN and layer in (2, 3) else "Q4_K"


def with_plain(layer: int, part: ExpertPart) -> str:
    """Plain numbers beside blocks of the same input, and other kinds in each layer."""
    kinds = {
        ExpertPart.GATE: ("F16", "Q4_K", "BF16", "MXFP4"),
        ExpertPart.UP: ("Q4_K", "F16", "F32", "Q5_0"),
        ExpertPart.DOWN: ("Q6_K", "F16", "Q4_K", "F32"),
    }
    return kinds[part][layer]


KINDS: dict[str, KindOf] = {
    each.__name__: each for each in (q4_k_m, q5_k_m, all_eight, q3_k_m, q2_k, older, with_plain)
}


def rows_of(kind: GgufKind, rows: int, columns: int, seed: int) -> Bytes:
    """Return random rows of a kind; in blocks any bits, with scales that make weights as spread."""
    random = np.random.default_rng(seed)
    if kind in PLAIN:
        values = random.standard_normal((rows, columns)).astype(np.float32) * np.float32(SPREAD)
        if kind is GgufKind.BF16:
            return (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
        return (values if kind is GgufKind.F32 else values.astype(np.float16)).view(np.uint8)
    data = random.integers(0, 256, (rows, kind.row_bytes(columns)), dtype=np.uint8)
    blocks = data.reshape(-1, kind.block_bytes)
    if kind is GgufKind.MXFP4:
        blocks[:, 0] = random.integers(120, 124, len(blocks))
        return data
    at, count = _UNITS_AT.get(kind, 0), 2 if kind.name in _WITH_LEASTS else 1
    drawn = random.uniform(0.5, 1.0, (len(blocks), count)).astype(np.float32)
    blocks[:, at : at + 2 * count] = drawn.astype(np.float16).view(np.uint8)
    deviation = float(numbers_of(kind, data).std())
    blocks[:, at : at + 2 * count] = (drawn * SPREAD / deviation).astype(np.float16).view(np.uint8)
    return data


def numbers_of(kind: GgufKind, stored: Bytes) -> Floats:
    """Return what rows stand for, as the format's own library says."""
    return gguf.dequantize(stored, gguf.GGMLQuantizationType(kind.value[0])).astype(np.float32)


def write_mixed(path: Path, kind_of: KindOf, num_experts: int = NUM_EXPERTS) -> Path:
    """Write the file of a model whose dense part is in f32."""
    values: dict[str, Any] = {
        "general.architecture": "qwen3moe",
        **{
            f"qwen3moe.{key}": value
            for key, value in {
                "block_count": NUM_LAYERS,
                "context_length": 512,
                "embedding_length": HIDDEN,
                "feed_forward_length": WIDTH,
                "expert_feed_forward_length": WIDTH,
                "attention.head_count": 4,
                "attention.head_count_kv": 2,
                "attention.key_length": 64,
                "attention.layer_norm_rms_epsilon": 1e-5,
                "rope.freq_base": 10_000.0,
                "expert_count": num_experts,
                "expert_used_count": TOP_K,
            }.items()
        },
        **vocabulary_values(VOCABULARY),
    }
    tensors = {
        "token_embd.weight": _plain(0, VOCABULARY, HIDDEN),
        "output_norm.weight": _ones(HIDDEN),
    }
    tensors["output.weight"] = _plain(1, VOCABULARY, HIDDEN)
    for layer in range(NUM_LAYERS):
        name, seed = f"blk.{layer}", 10 * layer
        tensors |= {
            f"{name}.attn_norm.weight": _ones(HIDDEN),
            f"{name}.ffn_norm.weight": _ones(HIDDEN),
            f"{name}.attn_q_norm.weight": _ones(64),
            f"{name}.attn_k_norm.weight": _ones(64),
            f"{name}.attn_q.weight": _plain(seed + 2, 256, HIDDEN),
            f"{name}.attn_k.weight": _plain(seed + 3, 128, HIDDEN),
            f"{name}.attn_v.weight": _plain(seed + 4, 128, HIDDEN),
            f"{name}.attn_output.weight": _plain(seed + 5, HIDDEN, 256),
            f"{name}.ffn_gate_inp.weight": _plain(seed + 6, num_experts, HIDDEN),
        }
        for part in ExpertPart:
            kind = kind_of(layer, part)
            stored = [expert_rows(ExpertId(layer, each), part, kind) for each in range(num_experts)]
            shape = (num_experts, *shape_of(part))
            data = b"".join(each.tobytes() for each in stored)
            tensors[f"{name}.ffn_{part}_exps.weight"] = Declared(shape, kind, data)
    return write_gguf(path, values, tensors)


def expert_rows(expert: ExpertId, part: ExpertPart, kind: str) -> Bytes:
    """Return a matrix of an expert as it stands in the file."""
    seed = 1000 * expert.layer + 10 * expert.expert + list(ExpertPart).index(part)
    return rows_of(GgufKind[kind], *shape_of(part), seed)


def shape_of(part: ExpertPart) -> tuple[int, int]:
    """Rows and columns of a matrix of an expert."""
    return (HIDDEN, WIDTH) if part is ExpertPart.DOWN else (WIDTH, HIDDEN)


def _plain(seed: int, rows: int, columns: int) -> Declared:
    return Declared((rows, columns), "F32", rows_of(GgufKind.F32, rows, columns, seed).tobytes())


def _ones(width: int) -> Declared:
    return Declared((width,), "F32", np.ones(width, np.float32).tobytes())
