"""Tiny Hugging Face folders of every family we read, written byte by byte with numpy and json."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
ENDOFTEXT_ID, IM_START_ID, IM_END_ID = 256, 257, 258
_CLASSES = {
    "qwen2_moe": "Qwen2MoeForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
    "mixtral": "MixtralForCausalLM",
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TinyModel:
    """Everything that decides the bytes of a tiny checkpoint."""

    model_type: str = "qwen3_moe"
    dtype: str = "BF16"
    hidden_size: int = 64
    num_layers: int = 4
    num_heads: int = 4
    num_kv_heads: int = 2
    head_dim: int = 16
    num_experts: int = 8
    top_k: int = 2
    expert_width: int = 32
    shared_width: int = 48
    """Used by ``qwen2_moe`` alone."""
    vocabulary_size: int = 272
    is_tied: bool = False
    num_shards: int = 4
    """0: one ``model.safetensors`` without an index."""
    seed: int = 0


Tensor = tuple[str, tuple[int, ...], bytes]
"""Element type, shape and bytes."""


def tiny_config(model: TinyModel) -> dict[str, object]:
    """Return the ``config.json`` of a tiny model."""
    config: dict[str, object] = {
        "architectures": [_CLASSES[model.model_type]],
        "model_type": model.model_type,
        "hidden_act": "silu",
        "hidden_size": model.hidden_size,
        "num_hidden_layers": model.num_layers,
        "num_attention_heads": model.num_heads,
        "num_key_value_heads": model.num_kv_heads,
        "vocab_size": model.vocabulary_size,
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "tie_word_embeddings": model.is_tied,
        "num_experts_per_tok": model.top_k,
        "bos_token_id": ENDOFTEXT_ID,
        "eos_token_id": ENDOFTEXT_ID,
    }
    if model.model_type == "mixtral":
        return config | {
            "intermediate_size": model.expert_width,
            "num_local_experts": model.num_experts,
            "head_dim": model.head_dim,
        }
    config |= {
        "intermediate_size": 96,
        "moe_intermediate_size": model.expert_width,
        "num_experts": model.num_experts,
        "norm_topk_prob": True,
    }
    if model.model_type == "qwen2_moe":
        return config | {"shared_expert_intermediate_size": model.shared_width}
    return config | {"head_dim": model.head_dim}


def tiny_shapes(model: TinyModel) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all tensors of a model, in the order of their names in each layer."""
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (model.vocabulary_size, model.hidden_size)
    }
    for layer in range(model.num_layers):
        shapes |= _layer_shapes(model, f"model.layers.{layer}")
    shapes["model.norm.weight"] = (model.hidden_size,)
    if not model.is_tied:
        shapes["lm_head.weight"] = (model.vocabulary_size, model.hidden_size)
    return shapes


def tiny_tensors(model: TinyModel) -> dict[str, Tensor]:
    """Return all tensors of a tiny model, in the order of ``tiny_shapes``."""
    generator = np.random.default_rng(model.seed)
    tensors: dict[str, Tensor] = {}
    for name, shape in tiny_shapes(model).items():
        if "norm" in name:
            values = 1 + 0.1 * generator.standard_normal(shape)
        else:
            values = generator.standard_normal(shape) * shape[-1] ** -0.5
        tensors[name] = (model.dtype, shape, stored(values.astype(np.float32), model.dtype))
    return tensors


def stored(values: np.ndarray, dtype: str) -> bytes:
    """Return the bytes of fp32 values in an element type; bf16 is cut, not rounded."""
    if dtype == "F32":
        return values.astype("<f4").tobytes()
    if dtype == "F16":
        return values.astype("<f2").tobytes()
    assert dtype == "BF16"
    return (values.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()


def write_checkpoint(folder: Path, model: TinyModel | None = None) -> Path:
    """Write a complete tiny checkpoint and return its folder."""
    model = model or TinyModel()
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", tiny_config(model))
    generation = {"eos_token_id": [IM_END_ID, ENDOFTEXT_ID], "do_sample": True, "top_k": 20}
    write_json(folder / "generation_config.json", generation)
    write_tokenizer(folder)
    (folder / "README.md").write_text("---\nlicense: apache-2.0\n---\n# Tiny\n", encoding="utf-8")
    tensors = tiny_tensors(model)
    if not model.num_shards:
        write_safetensors(folder / "model.safetensors", tensors)
        return folder
    names = list(tensors)
    weight_map: dict[str, str] = {}
    for shard in range(model.num_shards):
        begin, end = (len(names) * step // model.num_shards for step in (shard, shard + 1))
        file = shard_name(shard + 1, model.num_shards)
        write_safetensors(folder / file, {name: tensors[name] for name in names[begin:end]})
        weight_map |= dict.fromkeys(names[begin:end], file)
    total_size = sum(len(data) for _, _, data in tensors.values())
    index = {"metadata": {"total_size": total_size}, "weight_map": weight_map}
    write_json(folder / "model.safetensors.index.json", index)
    return folder


def shard_name(number: int, num_shards: int) -> str:
    """Return the usual name of a shard, counted from 1."""
    return f"model-{number:05d}-of-{num_shards:05d}.safetensors"


def write_safetensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write a valid safetensors file."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    position = 0
    for name, (dtype, shape, data) in tensors.items():
        offsets = [position, position + len(data)]
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": offsets}
        position += len(data)
    write_raw_safetensors(
        path, json.dumps(header).encode(), b"".join(d for *_, d in tensors.values())
    )


def write_raw_safetensors(path: Path, header: bytes, data: bytes) -> None:
    """Write a file with this header, valid or not."""
    path.write_bytes(len(header).to_bytes(8, "little") + header + data)


def write_json(path: Path, value: object) -> None:
    """Write a JSON file."""
    path.write_text(json.dumps(value), encoding="utf-8")


def edit_json(path: Path, **changes: object) -> None:
    """Change fields of a JSON file; None removes a field."""
    value = json.loads(path.read_text(encoding="utf-8"))
    value |= changes
    write_json(path, {key: item for key, item in value.items() if item is not None})


def write_tokenizer(folder: Path) -> None:
    """Write a byte-level tokenizer without merges: an id for each byte, then the special tokens."""
    vocabulary = {letter: number for number, letter in enumerate(_byte_letters())}
    added = [
        {
            "id": 256 + number,
            "content": content,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for number, content in enumerate(SPECIAL_TOKENS)
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    tokenizer: dict[str, object] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": byte_level | {"use_regex": False},
        "post_processor": None,
        "decoder": byte_level | {"use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": vocabulary,
            "merges": [],
        },
    }
    write_json(folder / "tokenizer.json", tokenizer)
    settings = {
        "chat_template": CHAT_TEMPLATE,
        "eos_token": "<|im_end|>",
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    write_json(folder / "tokenizer_config.json", settings)


def _layer_shapes(model: TinyModel, prefix: str) -> dict[str, tuple[int, ...]]:
    hidden, width = model.hidden_size, model.expert_width
    head_dim = hidden // model.num_heads if model.model_type == "qwen2_moe" else model.head_dim
    queries, keys = model.num_heads * head_dim, model.num_kv_heads * head_dim
    shapes: dict[str, tuple[int, ...]] = {f"{prefix}.input_layernorm.weight": (hidden,)}
    if model.model_type == "mixtral":
        block, letters = f"{prefix}.block_sparse_moe", ("w2", "w1", "w3")
    else:
        block, letters = f"{prefix}.mlp", ("down_proj", "gate_proj", "up_proj")
    for expert in range(model.num_experts):
        wide = ((hidden, width), (width, hidden), (width, hidden))
        for letter, shape in zip(letters, wide, strict=True):
            shapes[f"{block}.experts.{expert}.{letter}.weight"] = shape
    shapes[f"{block}.gate.weight"] = (model.num_experts, hidden)
    if model.model_type == "qwen2_moe":
        shared = f"{block}.shared_expert"
        shapes[f"{shared}.down_proj.weight"] = (hidden, model.shared_width)
        shapes[f"{shared}.gate_proj.weight"] = (model.shared_width, hidden)
        shapes[f"{shared}.up_proj.weight"] = (model.shared_width, hidden)
        shapes[f"{block}.shared_expert_gate.weight"] = (1, hidden)
    shapes[f"{prefix}.post_attention_layernorm.weight"] = (hidden,)
    attention = f"{prefix}.self_attn"
    for letter, rows in (("k", keys), ("q", queries), ("v", keys)):
        shapes[f"{attention}.{letter}_proj.weight"] = (rows, hidden)
        if model.model_type == "qwen2_moe":
            shapes[f"{attention}.{letter}_proj.bias"] = (rows,)
        if model.model_type == "qwen3_moe" and letter != "v":
            shapes[f"{attention}.{letter}_norm.weight"] = (head_dim,)
    shapes[f"{attention}.o_proj.weight"] = (hidden, queries)
    return shapes


def _byte_letters() -> list[str]:
    """Return the printable letter that stands for each byte in byte-level vocabularies."""
    own = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), 256)}
    others = iter(range(256, 512))
    return [chr(byte) if byte in own else chr(next(others)) for byte in range(256)]
