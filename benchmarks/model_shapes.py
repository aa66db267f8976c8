"""Shapes of models, and our side of a comparison: random weights of a shape in huge pages."""

import dataclasses
import itertools
import mmap
from collections.abc import Generator, Sequence

import numpy as np
import numpy.typing as npt
import torch

from runtime.generate.kv_cache import KvCache
from runtime.inspect.config import ConfigReader
from runtime.inspect.families.registry import FAMILIES
from runtime.kernels.base import Kernels
from runtime.kernels.formats import pack
from runtime.kernels.matrix import Matrix, Slot
from runtime.memory.ledger import Ledger
from runtime.models.families import build_model
from runtime.protocol.values import WeightFormat
from runtime.spec.model import ModelSpec
from runtime.spec.tensors import ExpertLayout, MatrixLayout, expert_layout, matrix_bytes

CONTEXT_TOKENS = 1024
_HUGE_BYTES = 2 << 20
Bytes = npt.NDArray[np.uint8]


@dataclasses.dataclass(frozen=True)
class Shape:
    """The sizes of a model with a Qwen3-MoE stack."""

    hidden: int
    width: int
    num_experts: int
    top_k: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    num_layers: int = 8
    vocabulary: int = 32000

    def spec(self) -> ModelSpec:
        """Return the architecture as a checkpoint of this shape would be read."""
        config = {
            "model_type": "qwen3_moe",
            "hidden_size": self.hidden,
            "moe_intermediate_size": self.width,
            "intermediate_size": self.width,
            "num_experts": self.num_experts,
            "num_experts_per_tok": self.top_k,
            "num_attention_heads": self.num_heads,
            "num_key_value_heads": self.num_kv_heads,
            "head_dim": self.head_dim,
            "num_hidden_layers": self.num_layers,
            "vocab_size": self.vocabulary,
            "max_position_embeddings": 4096,
            "rope_theta": 1e6,
            "rms_norm_eps": 1e-6,
            "norm_topk_prob": True,
            "hidden_act": "silu",
        }
        reader = ConfigReader(config, "config.json")
        spec = FAMILIES["qwen3_moe"].read_spec(reader)
        assert not reader.problems, reader.problems
        return spec

    def token_bytes(self, weight_format: WeightFormat) -> int:
        """Return what one token reads of weights: matrices in a format, routers in f32."""
        queries, keys = self.num_heads * self.head_dim, self.num_kv_heads * self.head_dim
        expert = expert_layout(weight_format, self.hidden, self.width).parts.values()
        sizes = [(queries, self.hidden), (keys, self.hidden), (keys, self.hidden)]
        layer = sum(matrix_bytes(weight_format, *size) for size in sizes)
        layer += matrix_bytes(weight_format, self.hidden, queries)
        layer += matrix_bytes(WeightFormat.F32, self.num_experts, self.hidden)
        layer += self.top_k * sum(part.num_bytes for part in expert)
        head = matrix_bytes(weight_format, self.vocabulary, self.hidden)
        return self.num_layers * layer + head


QWEN3_30B = Shape(2048, 768, 128, 8, 32, 4, 128)
SHAPES = {
    "Qwen3-30B-A3B": QWEN3_30B,
    "DeepSeek-V2-Lite": Shape(2048, 1408, 64, 6, 16, 16, 128, num_layers=4),
    "gpt-oss-20b": Shape(2880, 2880, 32, 4, 64, 8, 64, num_layers=4),
    "Mixtral-8x7B": Shape(4096, 14336, 8, 2, 32, 8, 128, num_layers=2),
}


def huge_room(num_bytes: int) -> Bytes:
    """Return memory in huge pages where the system has them, aligned to one."""
    room = mmap.mmap(-1, num_bytes + _HUGE_BYTES)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        room.madvise(mmap.MADV_HUGEPAGE)
    data = np.frombuffer(room, np.uint8)
    start = -data.ctypes.data % _HUGE_BYTES
    return data[start : start + num_bytes]


def random_record(layout: ExpertLayout) -> Bytes:
    """Return the record of a random expert."""
    random = np.random.default_rng(0)
    record = np.zeros(layout.record_bytes, np.uint8)
    for part in layout.parts.values():
        weights = random.standard_normal((part.rows, part.columns), dtype=np.float32)
        end = part.offset_bytes + part.num_bytes
        record[part.offset_bytes : end] = pack(part.format, weights * np.float32(0.02))
    return record


class RandomExperts:
    """All experts of all layers in one block of memory, each a copy of one random expert."""

    def __init__(self, weight_format: WeightFormat, shape: Shape) -> None:
        self.layout = expert_layout(weight_format, shape.hidden, shape.width)
        count = shape.num_layers * shape.num_experts
        size = self.layout.record_bytes
        room = huge_room(count * size).reshape(count, size)
        room[:] = random_record(self.layout)
        self._slots = [Slot.from_buffer(row) for row in room]
        self._num_experts = shape.num_experts

    def layout_of(self, layer: int, expert: int) -> ExpertLayout:
        """How one expert lies in its slot: as all do."""
        del layer, expert
        return self.layout

    def ordered(self, layer: int, experts: Sequence[int]) -> Sequence[int]:
        """Return experts in their order."""
        del layer
        return experts

    def note_routing(self, layer: int, ids: torch.Tensor, weights: torch.Tensor) -> None:
        """Nothing is kept."""

    @property
    def takes_guesses(self) -> bool:
        """Every expert is resident."""
        return False

    def guess(self, layer: int, experts: Sequence[int]) -> None:
        """Nothing has to be read."""

    def runs(
        self, layer: int, experts: Sequence[int]
    ) -> Generator[Sequence[tuple[int, Slot]], None, None]:
        """Yield all that are asked for at once: every expert is resident."""
        first = layer * self._num_experts
        yield [(number, self._slots[first + number]) for number in experts]


class RandomWeights:
    """Dense weights of a shape: matrices in one format, routers in f32, norms of ones."""

    def __init__(self, weight_format: WeightFormat, shape: Shape) -> None:
        self._format = weight_format
        queries, keys = shape.num_heads * shape.head_dim, shape.num_kv_heads * shape.head_dim
        self._sizes = {
            "q_proj": (queries, shape.hidden),
            "k_proj": (keys, shape.hidden),
            "v_proj": (keys, shape.hidden),
            "o_proj": (shape.hidden, queries),
            "gate": (shape.num_experts, shape.hidden),
            "embed_tokens": (shape.vocabulary, shape.hidden),
            "lm_head": (shape.vocabulary, shape.hidden),
        }
        self._head_dim, self._hidden = shape.head_dim, shape.hidden
        self._random = np.random.default_rng(1)

    def matrix(self, name: str) -> Matrix:
        """Return a new random matrix."""
        layout = self.layout(name)
        packed = self.packed(name)
        room = huge_room(packed.size)
        room[:] = packed
        return Matrix.from_buffer(layout, room)

    def layout(self, name: str) -> MatrixLayout:
        """Return how the matrix of a name lies in a buffer of its own."""
        kind = _kind_of(name)
        rows, columns = self._sizes[kind]
        weight_format = WeightFormat.F32 if kind == "gate" else self._format
        size = matrix_bytes(weight_format, rows, columns)
        return MatrixLayout(weight_format, rows, columns, 0, size)

    def packed(self, name: str) -> Bytes:
        """Return the bytes of a new random matrix."""
        layout = self.layout(name)
        scale = np.float32(0.05 if _kind_of(name) == "gate" else 0.02)
        weights = self._random.standard_normal((layout.rows, layout.columns), dtype=np.float32)
        return pack(layout.format, weights * scale)

    def vector(self, name: str) -> torch.Tensor:
        """Return ones."""
        return torch.ones(self._head_dim if "q_norm" in name or "k_norm" in name else self._hidden)


def _kind_of(name: str) -> str:
    """Return which matrix of a layer a name means."""
    return name.removesuffix(".weight").rpartition(".")[2]


class RandomModel:
    """A random model of a shape, run by the program's own model code."""

    def __init__(self, kernels: Kernels, weight_format: WeightFormat, shape: Shape) -> None:
        spec = shape.spec()
        self._experts = RandomExperts(weight_format, shape)
        weights = RandomWeights(weight_format, shape)
        self._kv = KvCache(Ledger(1 << 30), spec, CONTEXT_TOKENS)
        self._model = build_model(spec, kernels, weights, self._experts, CONTEXT_TOKENS)

    def prompt(self, ids: Sequence[int]) -> int:
        """Put a prompt through the model, from an empty cache; return the likeliest token."""
        self._kv.truncate(0)
        return self._feed(ids)

    def decode(self, count: int, first: int) -> int:
        """Decode greedily from one token on; return the last."""
        self._kv.truncate(0)
        token = first
        for _ in itertools.repeat(None, count):
            token = self._feed([token])
        return token

    def _feed(self, ids: Sequence[int]) -> int:
        self._kv.reserve(len(ids))
        hidden = self._model.forward(ids, self._kv.num_tokens, self._kv.layers)
        self._kv.commit(ids)
        return int(self._model.logits(hidden[-1:])[0].argmax())
