"""The tensors of a calibrated model, each made when it is asked for, the same every time."""

import dataclasses
import enum
import zlib
from collections.abc import Iterator

import numpy as np

from benchmarks.calibrated.numbers import (
    Floats,
    Fours,
    Levels,
    random_fours,
    random_levels,
)
from benchmarks.calibrated.routing import Routing, calibrate
from benchmarks.calibrated.shapes import TRACES, Shape
from runtime.simulate.trace import Trace
from runtime.simulate.trace_files import read_trace

_STRIPE_ROWS = 8192
_OUTPUT_GAIN = 0.05
"""What attention and experts add to the stream: it has to stay each token's own."""


class Kind(enum.Enum):
    """What a tensor is, which decides how it is stored."""

    EMBEDDING = enum.auto()
    HEAD = enum.auto()
    ROUTER = enum.auto()
    DENSE = enum.auto()
    EXPERT = enum.auto()
    ONES = enum.auto()
    ZEROS = enum.auto()


@dataclasses.dataclass(frozen=True, slots=True)
class Tensor:
    """One matrix or vector under its name in a Hugging Face folder and in GGUF.

    Matrices of the same GGUF name follow each other and are stacked there. A name is empty where
    the format has no such tensor.
    """

    name: str
    gguf_name: str
    kind: Kind
    shape: tuple[int, ...]
    layer: int = -1


class CalibratedModel:
    """A random model of a true shape that routes its sequence as a trace was recorded.

    The sequence is the tokens 0, 1, 2 and so on; greedy decoding goes on with it, and begins again
    at its end. ``is_mxfp4``: experts in MXFP4 and the rest in bf16, else all in four bits.
    """

    def __init__(
        self, shape: Shape, trace: Trace | None = None, num_tokens: int = 2048, seed: int = 0
    ) -> None:
        self.shape = shape
        self.is_mxfp4 = shape.model_type == "gpt_oss"
        self._seed = seed
        whole = read_trace(TRACES / shape.trace) if trace is None else trace
        num_moe_layers = shape.num_layers - shape.first_moe_layer
        found = (whole.num_experts, whole.top_k)
        wanted = (shape.num_experts, int(shape.config["num_experts_per_tok"]))
        if found != wanted:
            raise ValueError(f"{whole.name} has {found} experts and top-k, {shape.name} {wanted}")
        self.routing: Routing = calibrate(whole, shape.hidden, num_moe_layers, num_tokens, seed)
        self.sequence = list(range(num_tokens))
        self._made: tuple[Tensor, Levels] | None = None

    def tensors(self) -> Iterator[Tensor]:
        """Yield all tensors, those that are stacked in GGUF one after the other."""
        size = (self.shape.vocabulary, self.shape.hidden)
        yield Tensor("model.embed_tokens.weight", "token_embd.weight", Kind.EMBEDDING, size)
        for layer in range(self.shape.num_layers):
            yield from self.layer_tensors(layer)
        ones = (self.shape.hidden,)
        yield Tensor("model.norm.weight", "output_norm.weight", Kind.ONES, ones)
        yield Tensor("lm_head.weight", "output.weight", Kind.HEAD, size)

    def layer_tensors(self, layer: int) -> Iterator[Tensor]:
        """Yield the tensors of a layer."""
        names = (f"model.layers.{layer}", f"blk.{layer}")
        if self.shape.model_type == "deepseek_v2":
            rows = _latent_attention(self.shape)
        else:
            rows = _attention(self.shape)
        is_moe = layer >= self.shape.first_moe_layer
        rows += _experts(self.shape) if is_moe else _dense_block(self.shape)
        for name, gguf_name, kind, shape in rows:
            full = (f"{names[0]}.{name}" if name else "", f"{names[1]}.{gguf_name}")
            yield Tensor(full[0], full[1] if gguf_name else "", kind, shape, layer)

    def plain(self, tensor: Tensor) -> Floats:
        """Return a router or a vector, in numbers that bf16 holds."""
        if tensor.kind is Kind.ROUTER:
            return self.routing.router(tensor.layer - self.shape.first_moe_layer)
        value = 1.0 if tensor.kind is Kind.ONES else 0.0
        return np.full(tensor.shape, value, np.float32)

    def stripes(self, tensor: Tensor) -> Iterator[Levels]:
        """Yield a matrix in four bits, some rows at a time."""
        rows, columns = tensor.shape
        match tensor.kind:
            case Kind.EMBEDDING | Kind.HEAD:
                is_head = tensor.kind is Kind.HEAD
                make = self.routing.head_rows if is_head else self.routing.embedding_rows
                for first in range(0, rows, _STRIPE_ROWS):
                    yield make(first, min(first + _STRIPE_ROWS, rows))
            case _:
                if self._made is None or self._made[0] != tensor:
                    made = random_levels(self._random(tensor), rows, columns, _spread(tensor))
                    self._made = (tensor, made)
                yield self._made[1]

    def fours(self, tensor: Tensor) -> Fours:
        """Return an expert's matrix in MXFP4."""
        rows, columns = tensor.shape
        return random_fours(self._random(tensor), rows, columns, _spread(tensor))

    def _random(self, tensor: Tensor) -> np.random.Generator:
        seed = [self._seed, zlib.crc32(tensor.name.encode())]
        return np.random.Generator(np.random.SFC64(seed))


_Row = tuple[str, str, Kind, tuple[int, ...]]


def _spread(tensor: Tensor) -> float:
    """Return the standard deviation of a random matrix."""
    is_output = "down_proj" in tensor.name or "o_proj" in tensor.name
    return float((_OUTPUT_GAIN if is_output else 1.0) / tensor.shape[1] ** 0.5)


def _norms(shape: Shape) -> list[_Row]:
    second = "post_attention_norm" if shape.model_type == "gpt_oss" else "ffn_norm"
    size = (shape.hidden,)
    return [
        ("input_layernorm.weight", "attn_norm.weight", Kind.ONES, size),
        ("post_attention_layernorm.weight", f"{second}.weight", Kind.ONES, size),
    ]


def _attention(shape: Shape) -> list[_Row]:
    config, hidden = shape.config, shape.hidden
    head = int(config["head_dim"])
    queries = int(config["num_attention_heads"]) * head
    keys = int(config["num_key_value_heads"]) * head
    sizes = {"q": (queries, hidden), "k": (keys, hidden), "v": (keys, hidden)}
    rows = _norms(shape)
    for part, size in (*sizes.items(), ("o", (hidden, queries))):
        gguf_name = f"attn_{'output' if part == 'o' else part}"
        rows.append((f"self_attn.{part}_proj.weight", f"{gguf_name}.weight", Kind.DENSE, size))
        if config.get("attention_bias"):
            bias = (f"self_attn.{part}_proj.bias", f"{gguf_name}.bias", Kind.ZEROS, size[:1])
            rows.append(bias)
    if shape.model_type == "gpt_oss":
        num_heads = (int(config["num_attention_heads"]),)
        rows.append(("self_attn.sinks", "attn_sinks.weight", Kind.ZEROS, num_heads))
    else:
        for part in ("q", "k"):
            name = (f"self_attn.{part}_norm.weight", f"attn_{part}_norm.weight")
            rows.append((*name, Kind.ONES, (head,)))
    return rows


def _latent_attention(shape: Shape) -> list[_Row]:
    config, hidden = shape.config, shape.hidden
    heads, rank = int(config["num_attention_heads"]), int(config["kv_lora_rank"])
    plain, turned = int(config["qk_nope_head_dim"]), int(config["qk_rope_head_dim"])
    value = int(config["v_head_dim"])
    sizes = {
        ("q_proj", "attn_q"): (heads * (plain + turned), hidden),
        ("kv_a_proj_with_mqa", "attn_kv_a_mqa"): (rank + turned, hidden),
        ("kv_b_proj", "attn_kv_b"): (heads * (plain + value), rank),
        ("o_proj", "attn_output"): (hidden, heads * value),
    }
    norm = ("self_attn.kv_a_layernorm.weight", "attn_kv_a_norm.weight", Kind.ONES, (rank,))
    return [
        *_norms(shape),
        norm,
        *(
            (f"self_attn.{name}.weight", f"{gguf_name}.weight", Kind.DENSE, size)
            for (name, gguf_name), size in sizes.items()
        ),
    ]


def _gated(name: str, ending: str, kind: Kind, hidden: int, width: int) -> list[_Row]:
    return [
        (f"{name}.{part}_proj.weight", f"ffn_{part}{ending}.weight", kind, size)
        for part, size in (
            ("gate", (width, hidden)), ("up", (width, hidden)), ("down", (hidden, width)),
        )
    ]  # fmt: skip


def _dense_block(shape: Shape) -> list[_Row]:
    return _gated("mlp", "", Kind.DENSE, shape.hidden, int(shape.config["intermediate_size"]))


def _experts(shape: Shape) -> list[_Row]:
    hidden, width, number = shape.hidden, shape.expert_width, shape.num_experts
    router = "router" if shape.model_type == "gpt_oss" else "gate"
    size = (number, hidden)
    rows: list[_Row] = [(f"mlp.{router}.weight", "ffn_gate_inp.weight", Kind.ROUTER, size)]
    if shape.model_type == "gpt_oss":
        both = (number, 2 * width)
        rows += [
            (f"mlp.{router}.bias", "ffn_gate_inp.bias", Kind.ZEROS, size[:1]),
            ("mlp.experts.gate_up_proj_bias", "", Kind.ZEROS, both),
            ("", "ffn_gate_exps.bias", Kind.ZEROS, (number, width)),
            ("", "ffn_up_exps.bias", Kind.ZEROS, (number, width)),
            ("mlp.experts.down_proj_bias", "ffn_down_exps.bias", Kind.ZEROS, size),
        ]
    experts = [
        _gated(f"mlp.experts.{expert}", "_exps", Kind.EXPERT, hidden, width)
        for expert in range(number)
    ]
    rows += [expert[part] for part in range(3) for expert in experts]
    if num_shared := int(shape.config.get("n_shared_experts", 0)):
        shared = width * num_shared
        rows += _gated("mlp.shared_experts", "_shexp", Kind.DENSE, hidden, shared)
    return rows
