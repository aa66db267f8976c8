"""GGUF files written byte by byte, right or wrong in any place."""

import dataclasses
import math
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from runtime.inspect.gguf.header import KINDS

ALIGNMENT = 32
KIND_NUMBERS = {name: number for number, (name, _, _) in KINDS.items()}
_FORMS = {bool: (7, "<?"), int: (4, "<I"), float: (6, "<f")}
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@dataclasses.dataclass(frozen=True, slots=True)
class Raw:
    """A value of a type that Python does not tell: its number and its bytes."""

    kind: int
    data: bytes


@dataclasses.dataclass(frozen=True, slots=True)
class Declared:
    """One tensor: shape with rows first, kind, and its data, zeros if there are none."""

    shape: tuple[int, ...]
    kind: str = "F32"
    data: bytes | None = None
    offset_bytes: int | None = None
    """From where data begins; None: behind the one before."""

    @property
    def num_bytes(self) -> int:
        """What it takes."""
        _, columns, size = KINDS[KIND_NUMBERS[self.kind]]
        return math.prod(self.shape) // columns * size


def text(value: str | bytes) -> bytes:
    """A text with its length before it."""
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def value_bytes(value: Any) -> bytes:
    """A value with the number of its type before it."""
    if isinstance(value, Raw):
        return struct.pack("<I", value.kind) + value.data
    if isinstance(value, str):
        return struct.pack("<I", 8) + text(value)
    if isinstance(value, list):
        return struct.pack("<I", 9) + _list_bytes(value)
    kind, form = _FORMS[type(value)]
    return struct.pack("<I", kind) + struct.pack(form, value)


def _list_bytes(items: Sequence[Any]) -> bytes:
    if items and isinstance(items[0], str):
        return struct.pack("<IQ", 8, len(items)) + b"".join(map(text, items))
    kind, form = _FORMS[type(items[0]) if items else int]
    return struct.pack("<IQ", kind, len(items)) + b"".join(struct.pack(form, i) for i in items)


def gguf_bytes(
    values: Mapping[str, Any],
    tensors: Mapping[str, Declared],
    *,
    version: int = 3,
    counts: tuple[int | None, int | None] = (None, None),
) -> bytes:
    """A whole file; ``counts`` may claim other numbers of tensors and keys."""
    num_tensors = len(tensors) if counts[0] is None else counts[0]
    num_keys = len(values) if counts[1] is None else counts[1]
    head = b"GGUF" + struct.pack("<IQQ", version, num_tensors, num_keys)
    head += b"".join(text(key) + value_bytes(value) for key, value in values.items())
    data, offset = b"", 0
    for name, tensor in tensors.items():
        begin = offset if tensor.offset_bytes is None else tensor.offset_bytes
        sizes = tensor.shape[::-1]
        head += text(name) + struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes)
        head += struct.pack("<IQ", KIND_NUMBERS[tensor.kind], begin)
        own = bytes(tensor.num_bytes) if tensor.data is None else tensor.data
        own += bytes(-len(own) % ALIGNMENT)
        data += own
        offset += len(own)
    return head + bytes(-len(head) % ALIGNMENT) + data


def vocabulary_values(size: int) -> dict[str, Any]:
    """The keys of a vocabulary of single bytes and three control tokens, and a template."""
    own = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), 256)}
    others = iter(range(256, 512))
    letters = [chr(byte) if byte in own else chr(next(others)) for byte in range(256)]
    control = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    names = letters + control + [f"[PAD{number}]" for number in range(size - 259)]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": names,
        "tokenizer.ggml.token_type": [1] * 256 + [3] * 3 + [5] * (size - 259),
        "tokenizer.ggml.merges": [],
        "tokenizer.ggml.bos_token_id": 256,
        "tokenizer.ggml.eos_token_id": 258,
        "tokenizer.chat_template": TEMPLATE,
    }


def write_gguf(path: Path, values: Mapping[str, Any], tensors: Mapping[str, Declared]) -> Path:
    """Write a file and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gguf_bytes(values, tensors))
    return path


def tiny_llama(
    kind: str = "Q8_0", vocabulary: int = 272
) -> tuple[dict[str, Any], dict[str, Declared]]:
    """Keys and tensors of a dense model of two layers."""
    values: dict[str, Any] = {
        "general.architecture": "llama",
        "llama.block_count": 2,
        "llama.context_length": 512,
        "llama.embedding_length": 256,
        "llama.feed_forward_length": 512,
        "llama.attention.head_count": 4,
        "llama.attention.head_count_kv": 2,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        **vocabulary_values(vocabulary),
    }
    tensors = {"token_embd.weight": Declared((vocabulary, 256), kind)}
    for layer in range(2):
        name = f"blk.{layer}"
        tensors |= {
            f"{name}.attn_norm.weight": Declared((256,)),
            f"{name}.attn_q.weight": Declared((256, 256), kind),
            f"{name}.attn_k.weight": Declared((128, 256), kind),
            f"{name}.attn_v.weight": Declared((128, 256), kind),
            f"{name}.attn_output.weight": Declared((256, 256), kind),
            f"{name}.ffn_norm.weight": Declared((256,)),
            f"{name}.ffn_gate.weight": Declared((512, 256), kind),
            f"{name}.ffn_up.weight": Declared((512, 256), kind),
            f"{name}.ffn_down.weight": Declared((256, 512), kind),
        }
    tensors["output_norm.weight"] = Declared((256,))
    return values, tensors
