"""Reader of the GGUF file that the demo model is made from.

Everything that leaves this module is in Hugging Face's names, orders and shapes, as float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt

from resources.demo.failure import DemoBuildError

FloatArray = npt.NDArray[np.float32]

_LAYER_TENSORS = {
    "attn_norm.weight": "input_layernorm.weight",
    "attn_q.weight": "self_attn.q_proj.weight",
    "attn_k.weight": "self_attn.k_proj.weight",
    "attn_v.weight": "self_attn.v_proj.weight",
    "attn_output.weight": "self_attn.o_proj.weight",
    "ffn_norm.weight": "post_attention_layernorm.weight",
    "ffn_gate.weight": "mlp.gate_proj.weight",
    "ffn_up.weight": "mlp.up_proj.weight",
    "ffn_down.weight": "mlp.down_proj.weight",
}


@dataclass(frozen=True)
class DenseShape:
    """Sizes and constants of the dense model, as its GGUF metadata states them."""

    num_layers: int
    hidden_size: int
    feed_forward_size: int
    num_heads: int
    num_kv_heads: int
    head_size: int
    vocab_size: int
    context_tokens: int
    rope_theta: float
    rms_norm_eps: float


@dataclass(frozen=True)
class Vocabulary:
    """Byte-level BPE vocabulary, merges and special tokens of the dense model."""

    tokens: list[str]
    control_ids: list[int]
    merges: list[str]
    bos_token_id: int
    eos_token_id: int
    unknown_token_id: int
    padding_token_id: int
    chat_template: str


class GgufSource:
    """One opened GGUF file of the llama architecture with a byte-level BPE vocabulary."""

    def __init__(self, path: Path) -> None:
        try:
            self._reader = gguf.GGUFReader(path)
        except (OSError, ValueError, KeyError, IndexError) as cause:
            raise DemoBuildError(f"The model file {path.name} cannot be read: {cause}.") from cause
        self._tensors = {tensor.name: tensor for tensor in self._reader.tensors}
        for key, wanted in (
            ("general.architecture", "llama"),
            ("tokenizer.ggml.model", "gpt2"),
            ("tokenizer.ggml.pre", "smollm"),
        ):
            if self._value(key) != wanted:
                raise DemoBuildError(
                    f"The model file has {key} {self._value(key)!r}, not {wanted!r}."
                )

    def _value(self, key: str) -> Any:  # noqa: ANN401 - the file decides the type
        field = self._reader.get_field(key)
        if field is None:
            raise DemoBuildError(f"The model file has no metadata entry {key}.")
        return field.contents()

    def shape(self) -> DenseShape:
        """Return the sizes; raise DemoBuildError when the file lacks one."""
        hidden_size = int(self._value("llama.embedding_length"))
        num_heads = int(self._value("llama.attention.head_count"))
        # The file keeps constants as float32: 7 digits give back what was meant (1e-05).
        return DenseShape(
            num_layers=int(self._value("llama.block_count")),
            hidden_size=hidden_size,
            feed_forward_size=int(self._value("llama.feed_forward_length")),
            num_heads=num_heads,
            num_kv_heads=int(self._value("llama.attention.head_count_kv")),
            head_size=hidden_size // num_heads,
            vocab_size=int(self._value("llama.vocab_size")),
            context_tokens=int(self._value("llama.context_length")),
            rope_theta=float(f"{self._value('llama.rope.freq_base'):.7g}"),
            rms_norm_eps=float(f"{self._value('llama.attention.layer_norm_rms_epsilon'):.7g}"),
        )

    def vocabulary(self) -> Vocabulary:
        """Return the tokenizer's data; raise DemoBuildError when the file lacks some."""
        token_types = self._value("tokenizer.ggml.token_type")
        return Vocabulary(
            tokens=list(self._value("tokenizer.ggml.tokens")),
            control_ids=[
                token_id
                for token_id, token_type in enumerate(token_types)
                if token_type == gguf.TokenType.CONTROL
            ],
            merges=list(self._value("tokenizer.ggml.merges")),
            bos_token_id=int(self._value("tokenizer.ggml.bos_token_id")),
            eos_token_id=int(self._value("tokenizer.ggml.eos_token_id")),
            unknown_token_id=int(self._value("tokenizer.ggml.unknown_token_id")),
            padding_token_id=int(self._value("tokenizer.ggml.padding_token_id")),
            chat_template=str(self._value("tokenizer.chat_template")),
        )

    def outer_tensors(self) -> dict[str, FloatArray]:
        """Return the embedding (the output matrix too) and the last norm, by Hugging Face name."""
        return {
            "model.embed_tokens.weight": self._dequantised("token_embd.weight"),
            "model.norm.weight": self._dequantised("output_norm.weight"),
        }

    def layer_tensors(self, layer_index: int) -> dict[str, FloatArray]:
        """Return one dense layer's tensors by their name inside ``model.layers.N.``."""
        shape = self.shape()
        tensors = {
            name: self._dequantised(f"blk.{layer_index}.{source_name}")
            for source_name, name in _LAYER_TENSORS.items()
        }
        for name, num_heads in (
            ("self_attn.q_proj.weight", shape.num_heads),
            ("self_attn.k_proj.weight", shape.num_kv_heads),
        ):
            tensors[name] = undo_rotary_permutation(tensors[name], num_heads)
        return tensors

    def _dequantised(self, name: str) -> FloatArray:
        tensor = self._tensors.get(name)
        if tensor is None:
            raise DemoBuildError(f"The model file has no tensor {name}.")
        values: FloatArray = gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        return values


def undo_rotary_permutation(weight: FloatArray, num_heads: int) -> FloatArray:
    """Return rows in the order in which rotary pairs lie half a head apart.

    llama.cpp stores each head's rows as neighbouring pairs (0, h/2, 1, h/2+1, ...); Hugging Face
    rotates row i with row i + h/2, so the pairs are pulled apart again.
    """
    num_rows, num_columns = weight.shape
    half_head = num_rows // num_heads // 2
    pairs = weight.reshape(num_heads, half_head, 2, num_columns)
    return np.ascontiguousarray(pairs.swapaxes(1, 2).reshape(num_rows, num_columns))
