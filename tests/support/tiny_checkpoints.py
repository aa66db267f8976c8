"""Small random checkpoints of every supported family, as a publisher would write them.

``tiny_checkpoint`` makes a Hugging Face folder by transformers (config, safetensors, tokenizer with
chat template, generation config) once per test session. Transformers is imported only when a folder
is made or its reference asked for.
"""

import functools
import importlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.tiny_variants import BASE, SIGHT, VARIANTS, TinyVariant

if TYPE_CHECKING:
    import torch

IM_START, IM_END, PAD = "<|im_start|>", "<|im_end|>", "<|pad|>"
VOCABULARY_SIZE = 320

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

_LINES = (
    "The larder holds what the kitchen needs tomorrow.",
    "What is the capital of France? The capital of France is Paris.",
    "user assistant system and then the answer, one token after another",
    "Experts lie on the counter, in the larder and in the cellar.",
    "Süße Äpfel, crème brûlée, 東京, naïve café",
)


@functools.cache
def tiny_checkpoint(root: Path, name: str, num_layers: int = 3, seed: int = 0) -> Path:
    """Return the folder of a variant below ``root``, made at the first call."""
    folder = root / (f"{name}-{num_layers}-{seed}" if seed else f"{name}-{num_layers}")
    write_checkpoint(folder, VARIANTS[name], num_layers, seed)
    return folder


def write_checkpoint(folder: Path, variant: TinyVariant, num_layers: int, seed: int = 0) -> None:
    """Write the checkpoint of a variant into a folder."""
    import torch

    transformers = _transformers()
    model = _class_of(variant.model_type).from_config(_config(variant, num_layers))
    _randomise(model, seed=seed + sum(map(ord, variant.name)))
    model = model.to(getattr(torch, variant.stored_dtype))
    model.generation_config = transformers.GenerationConfig(
        bos_token_id=0, eos_token_id=1, do_sample=True, temperature=0.7
    )
    model.save_pretrained(folder)
    if variant.model_type == "kimi_k25":
        _rename_layers(folder)
    write_tokenizer(folder)


def _rename_layers(folder: Path) -> None:
    """Call the layers as they are published.

    WORKAROUND: transformers 5.24 saves those of Kimi K2.5's language model as ``blocks``, as if
    they were of what sees, and reads them under both names. Can go when it saves what it was given.
    """
    from safetensors.torch import load_file, save_file

    path = folder / "model.safetensors"
    body = "language_model.model."
    renamed = {
        name.replace(f"{body}blocks.", f"{body}layers."): tensor
        for name, tensor in load_file(path).items()
    }
    save_file(renamed, path, {"format": "pt"})


def reference_model(folder: Path) -> Any:
    """Return transformers' own model of a folder, in fp32, ready to compute."""
    import torch

    model_type = json.loads((folder / "config.json").read_text(encoding="utf-8"))["model_type"]
    model = _class_of(model_type).from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    )
    return model.eval()


def _class_of(model_type: str) -> Any:
    """Return the class that makes models of a type."""
    transformers = _transformers()
    if model_type in SIGHT:
        return transformers.AutoModelForImageTextToText
    return transformers.AutoModelForCausalLM


def _transformers() -> Any:
    """Return the library, which is big and of which only this file knows."""
    return importlib.import_module("transformers")


def write_tokenizer(folder: Path) -> None:
    """Write a small byte-level tokenizer with a chat template into a folder."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE,
        special_tokens=[IM_START, IM_END, PAD],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_LINES, trainer)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "bos_token": IM_START,
        "chat_template": CHAT_TEMPLATE,
        "eos_token": IM_END,
        "pad_token": PAD,
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")


def _config(variant: TinyVariant, num_layers: int) -> Any:
    """Return transformers' configuration of a variant."""
    values = {
        "vocab_size": VOCABULARY_SIZE,
        "hidden_size": 64,
        "num_hidden_layers": num_layers,
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-5,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": 2,
        **BASE[variant.model_type],
        **dict(variant.changes),
    }
    make = _transformers().AutoConfig.for_model
    sight = SIGHT.get(variant.model_type)
    if sight is None:
        return make(variant.model_type, **values)
    ties = values.get("tie_word_embeddings", True)
    return make(
        variant.model_type, text_config=values, vision_config=sight, tie_word_embeddings=ties
    )


def _randomise(model: "torch.nn.Module", seed: int) -> None:
    """Give every parameter values of the size that trained ones have, norms and biases included."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if name.endswith("bias"):
                parameter.copy_(0.3 * noise)
            elif parameter.ndim == 1:
                parameter.copy_(1.0 + 0.2 * noise)
            elif "embed_tokens" in name:
                parameter.copy_(0.5 * noise)
            else:
                parameter.copy_(1.5 * noise / parameter.shape[-1] ** 0.5)
        for name, buffer in model.named_buffers():
            if name.endswith("e_score_correction_bias"):
                buffer.copy_(0.3 * torch.randn(buffer.shape, generator=generator))
            elif name.endswith("layer_scalar"):
                buffer.copy_(1.0 + 0.2 * torch.randn(buffer.shape, generator=generator))
