"""The metadata of a GGUF model under the names that its families' configs have.

Converters of different years wrote different keys; what a file does not say is taken from the
shapes of its matrices where they show it.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from struct import iter_unpack

from runtime.inspect.config import MAX_LAYERS
from runtime.inspect.files import read_range
from runtime.inspect.gguf.header import GgufHeader, GgufTensor, Scalar, Value
from runtime.inspect.gguf.parts import GgufParts

Config = dict[str, object]
_SIGMOID = 2
"""What stands for it in ``expert_gating_func``."""
_GROUPED_EXPERTS = 256
"""DeepSeek-V3 and those made from it have so many, in groups of which older files do not speak."""
_MAX_ANGLES = 1 << 15


class Metadata:
    """The values of a model's architecture, without the prefix of its name."""

    def __init__(self, header: GgufHeader, parts: GgufParts) -> None:
        self.values = header.values
        self.tensors = parts.tensors
        named = header.values.get("general.architecture")
        self.architecture = named if isinstance(named, str) else ""

    def __getitem__(self, name: str) -> Value | None:
        """Return a value; one of many equal ones stands for all, decimals as they were meant."""
        value = self.values.get(f"{self.architecture}.{name}")
        if isinstance(value, list) and value and all(each == value[0] for each in value):
            value = value[0]
        return meant(value) if isinstance(value, float) else value

    def has(self, name: str) -> bool:
        """Whether there is a matrix of that name, in layer 0 if it is named without its layer."""
        return name in self.tensors or f"blk.0.{name}" in self.tensors

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a matrix, empty if there is none."""
        found = self.tensors.get(name)
        return found[1].shape if found else ()

    def layers_with(self, name: str) -> list[int]:
        """Return the layers that have a matrix of that name."""
        return [layer for layer in range(MAX_LAYERS) if f"blk.{layer}.{name}" in self.tensors]

    def numbers(self, name: str) -> list[float] | None:
        """Return the values of a small tensor of f32, None if there is none."""
        found = self.tensors.get(name)
        if found is None:
            return None
        path, tensor = found
        if tensor.kind != "F32" or len(tensor.shape) != 1 or tensor.shape[0] > _MAX_ANGLES:
            return None
        return _read_floats(path, tensor)


def _read_floats(path: Path, tensor: GgufTensor) -> list[float]:
    data = read_range(path, tensor.offset_bytes, tensor.num_bytes)
    return [value for (value,) in iter_unpack("<f", data[: len(data) // 4 * 4])]


def meant(value: float) -> float:
    """Return the decimal number that was rounded to f32: seven digits give it back."""
    return float(f"{value:.7g}")


def config_of(metadata: Metadata) -> Config | None:
    """Return what a config would say, None for an architecture that is not known."""
    read = _READERS.get(metadata.architecture)
    if read is None:
        return None
    config = {**_frame(metadata), **_rope(metadata)}
    config |= read(metadata)
    return {name: value for name, value in config.items() if value is not None}


def _frame(own: Metadata) -> Config:
    """Return what all architectures spell alike."""
    ids = [own.values.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot")]
    layers, unused = own["block_count"], own["nextn_predict_layers"]
    if isinstance(layers, int) and isinstance(unused, int):
        # Blocks that guess later tokens come last and are not run.
        layers -= unused
    rows = own.shape("token_embd.weight")
    return {
        "hidden_size": own["embedding_length"],
        "num_hidden_layers": layers,
        "num_attention_heads": own["attention.head_count"],
        "num_key_value_heads": own["attention.head_count_kv"],
        "head_dim": own["attention.key_length"],
        "intermediate_size": own["feed_forward_length"],
        "max_position_embeddings": own["context_length"],
        "rms_norm_eps": own["attention.layer_norm_rms_epsilon"],
        "vocab_size": rows[0] if len(rows) == 2 else own["vocab_size"],
        "tie_word_embeddings": "output.weight" not in own.tensors,
        "bos_token_id": own.values.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": list(dict.fromkeys(each for each in ids if isinstance(each, int))),
        "num_experts_per_tok": own["expert_used_count"],
        "attention_bias": own.has("attn_q.bias") or own.has("attn_qkv.bias"),
    }


def _rope(own: Metadata) -> Config:
    base = own["rope.freq_base"]
    factors = own.numbers("rope_freqs.weight")
    long, short = own.numbers("rope_factors_long.weight"), own.numbers("rope_factors_short.weight")
    original = own["rope.scaling.original_context_length"]
    kind, factor = own["rope.scaling.type"], own["rope.scaling.factor"]
    scaling: Config | None = None
    if factors is not None:
        # As Llama 3 stretches: a divisor for each angle, the same in every context.
        original = own["context_length"]
        scaling = {"short_factor": factors, "long_factor": factors, "type": "longrope"}
    elif long is not None and short is not None:
        scaling = {"short_factor": short, "long_factor": long, "type": "longrope"}
        scaling["attention_factor"] = own["rope.scaling.attn_factor"]
    elif kind == "yarn":
        scaling = {"type": kind, "factor": factor, **_yarn(own)}
    elif kind == "linear" or (kind is None and own["rope.scale_linear"] not in (None, 1.0)):
        scaling = {"type": "linear", "factor": factor or own["rope.scale_linear"]}
    elif kind not in (None, "none"):
        scaling = {"type": kind}
    if scaling is not None:
        scaling["original_max_position_embeddings"] = original
        scaling = {name: value for name, value in scaling.items() if value is not None}
    return {"rope_theta": base if base is not None else 10_000.0, "rope_scaling": scaling}


def _yarn(own: Metadata) -> Config:
    return {
        "attention_factor": own["rope.scaling.attn_factor"],
        "beta_fast": own["rope.scaling.yarn_beta_fast"],
        "beta_slow": own["rope.scaling.yarn_beta_slow"],
    }


def _llama(own: Metadata) -> Config:
    if own["expert_count"]:
        return {"model_type": "mixtral", "num_local_experts": own["expert_count"]}
    return {"model_type": "llama"}


def _qwen3(own: Metadata) -> Config:
    del own
    return {"model_type": "qwen3", "use_sliding_window": False}


def _mixture(own: Metadata, model_type: str) -> Config:
    """Return what mixtures of experts mostly spell alike."""
    stacked = own.layers_with("ffn_down_exps.weight")
    down = own.shape(f"blk.{stacked[0]}.ffn_down_exps.weight") if stacked else ()
    width = own["expert_feed_forward_length"]
    routed = set(own.layers_with("ffn_gate_inp.weight"))
    count = own["block_count"]
    layers = range(count if isinstance(count, int) and 0 <= count <= MAX_LAYERS else 0)
    return {
        "model_type": model_type,
        "num_experts": own["expert_count"],
        "moe_intermediate_size": width or (down[-1] if down else own["feed_forward_length"]),
        "mlp_only_layers": [layer for layer in layers if layer not in routed],
    }


def _first_routed(own: Metadata) -> int:
    """Return the first layer with routed experts: some converters wrote another number."""
    return next(iter(own.layers_with("ffn_gate_inp.weight")), 0)


def _qwen3_moe(own: Metadata) -> Config:
    return {**_mixture(own, "qwen3_moe"), "norm_topk_prob": True}


def _qwen2_moe(own: Metadata) -> Config:
    stated = own["expert_shared_feed_forward_length"]
    shared = own.shape("blk.0.ffn_gate_shexp.weight")
    return {
        **_mixture(own, "qwen2_moe"),
        "shared_expert_intermediate_size": stated or (shared[0] if shared else 0),
        "qkv_bias": own.has("attn_q.bias"),
        "attention_bias": None,
    }


def _olmoe(own: Metadata) -> Config:
    mixture = _mixture(own, "olmoe")
    return {**mixture, "intermediate_size": mixture["moe_intermediate_size"]}


def _granite(own: Metadata) -> Config:
    if own.has("ffn_gate_shexp.weight"):
        return {"model_type": "granitemoe with a shared expert"}
    mixture = _mixture(own, "granitemoe")
    return {
        "model_type": "granitemoe",
        "num_local_experts": mixture["num_experts"],
        "intermediate_size": mixture["moe_intermediate_size"],
        "attention_multiplier": own["attention.scale"],
        "embedding_multiplier": own["embedding_scale"],
        "residual_multiplier": own["residual_scale"],
        "logits_scaling": own["logit_scale"],
    }


def _phimoe(own: Metadata) -> Config:
    mixture = _mixture(own, "phimoe")
    return {
        "model_type": "phimoe",
        "num_local_experts": own["expert_count"],
        "intermediate_size": mixture["moe_intermediate_size"],
        "lm_head_bias": "output.bias" in own.tensors,
        "rope_scaling": _phimoe_scaling(own),
    }


def _phimoe_scaling(own: Metadata) -> object:
    """Return the rotary scaling; where it is that of Phi-3.5, with the published magnitude.

    Converters write what a formula gives instead, which the model was not trained with.
    """
    scaling = _rope(own)["rope_scaling"]
    contexts = own["context_length"], own["rope.scaling.original_context_length"]
    if not isinstance(scaling, dict) or contexts != _PHI_CONTEXTS:
        return scaling
    return {**scaling, "short_mscale": _PHI_MAGNITUDE, "long_mscale": _PHI_MAGNITUDE}


def _deepseek(own: Metadata) -> Config:
    """Return what models with latent attention say: DeepSeek's, Kimi K2 and GLM-4.7-Flash."""
    is_sigmoid = own["expert_gating_func"] == _SIGMOID or own.layers_with("exp_probs_b.bias")
    count = own["expert_count"]
    groups, kept = own["expert_group_count"], own["expert_group_used_count"]
    if groups is None and count != _GROUPED_EXPERTS:
        groups = kept = 1
    turned = own["rope.dimension_count"]
    key = own["attention.key_length_mla"] or own["attention.key_length"]
    plain = key - turned if isinstance(key, int) and isinstance(turned, int) else None
    mixture = _mixture(own, "deepseek_v3" if is_sigmoid else "deepseek_v2")
    config: Config = {
        "model_type": mixture["model_type"],
        "kv_lora_rank": own["attention.kv_lora_rank"],
        "qk_rope_head_dim": turned,
        "qk_nope_head_dim": plain,
        "v_head_dim": own["attention.value_length_mla"] or own["attention.value_length"],
        "head_dim": None,
        "n_routed_experts": count,
        "n_shared_experts": own["expert_shared_count"] or 0,
        "moe_intermediate_size": mixture["moe_intermediate_size"],
        "first_k_dense_replace": _first_routed(own),
        "routed_scaling_factor": own["expert_weights_scale"] or 1.0,
        "norm_topk_prob": bool(own["expert_weights_norm"]),
        "n_group": groups,
        "topk_group": kept,
        "attention_bias": own.has("attn_kv_a_mqa.bias"),
    }
    # What is not there is 0, and absent would be the family's default.
    config["q_lora_rank"] = own["attention.q_lora_rank"] or 0
    if not is_sigmoid:
        is_grouped = isinstance(groups, int) and groups > 1
        config["topk_method"] = "group_limited_greedy" if is_grouped else "greedy"
    scaling = _rope(own)["rope_scaling"]
    weight = own["rope.scaling.yarn_log_multiplier"]
    if isinstance(scaling, dict) and isinstance(weight, float):
        # Files have a tenth of it. The two weights are equal in all published models.
        whole = meant(weight * 10)
        config["rope_scaling"] = {**scaling, "mscale": whole, "mscale_all_dim": whole}
    return config


def _glm4_moe(own: Metadata) -> Config:
    head_dim, turned = own["attention.key_length"], own["rope.dimension_count"]
    share = None
    if isinstance(head_dim, int) and isinstance(turned, int) and head_dim > 0:
        share = turned / head_dim
    mixture = _mixture(own, "glm4_moe")
    return {
        "model_type": "glm4_moe",
        "n_routed_experts": own["expert_count"],
        "n_shared_experts": own["expert_shared_count"],
        "moe_intermediate_size": mixture["moe_intermediate_size"],
        "first_k_dense_replace": _first_routed(own),
        "routed_scaling_factor": own["expert_weights_scale"] or 1.0,
        "norm_topk_prob": own["expert_weights_norm"] is not False,
        "partial_rotary_factor": share,
        "use_qk_norm": bool(own.layers_with("attn_q_norm.weight")),
        "n_group": own["expert_group_count"],
        "topk_group": own["expert_group_used_count"],
    }


def _gpt_oss(own: Metadata) -> Config:
    mixture = _mixture(own, "gpt_oss")
    scaling = _rope(own)["rope_scaling"]
    if isinstance(scaling, dict) and scaling.get("type") == "yarn":
        # Published so, and of this files do not speak.
        scaling = {**scaling, "truncate": False}
    return {
        "model_type": "gpt_oss",
        "num_local_experts": own["expert_count"],
        "intermediate_size": mixture["moe_intermediate_size"],
        "sliding_window": own["attention.sliding_window"],
        "rope_scaling": scaling or {"type": "default"},
    }


def _minimax(own: Metadata) -> Config:
    mixture = _mixture(own, "minimax_m2")
    return {
        "model_type": "minimax_m2",
        "num_local_experts": own["expert_count"],
        "intermediate_size": mixture["moe_intermediate_size"],
        "rotary_dim": own["rope.dimension_count"],
    }


def _ernie(own: Metadata) -> Config:
    layers = own.layers_with("ffn_gate_inp.weight")
    mixture = _mixture(own, "ernie4_5_moe")
    width, shared = mixture["moe_intermediate_size"], 0
    rows = own.shape(f"blk.{layers[0]}.ffn_gate_shexp.weight") if layers else ()
    if rows and isinstance(width, int) and width > 0:
        shared = rows[0] // width
    return {
        "model_type": "ernie4_5_moe",
        "moe_num_experts": own["expert_count"],
        "moe_k": own["expert_used_count"],
        "moe_intermediate_size": width,
        "moe_num_shared_experts": shared,
        "moe_layer_start_index": layers[0] if layers else None,
        "moe_layer_end_index": layers[-1] if layers else None,
        "moe_layer_interval": own["interleave_moe_layer_step"] or 1,
    }


def _gemma4(own: Metadata) -> Config:
    windows = own.values.get("gemma4.attention.sliding_window_pattern")
    kinds = [_KIND_OF_WINDOW[bool(each)] for each in windows] if isinstance(windows, list) else None
    heads = own.values.get("gemma4.attention.head_count_kv")
    by_kind: dict[str, Scalar] = {}
    if isinstance(heads, list) and kinds is not None:
        by_kind = dict(zip(kinds, heads, strict=False))
    factors = own.numbers("rope_freqs.weight") or []
    share = sum(each < _UNTURNED for each in factors) / len(factors) if factors else 0.25
    full = {"rope_type": "proportional", "rope_theta": own["rope.freq_base"]}
    sliding = {"rope_type": "default", "rope_theta": own["rope.freq_base_swa"] or 10_000.0}
    full_layers = [layer for layer, kind in enumerate(kinds or ()) if kind == _FULL]
    values = own.layers_with("attn_v.weight")
    own_heads = own["attention.head_count_kv"]
    return {
        "model_type": "gemma4_text",
        "layer_types": kinds,
        "head_dim": own["attention.key_length_swa"],
        "global_head_dim": own["attention.key_length"],
        "num_key_value_heads": by_kind.get(_SLIDING, own_heads if not by_kind else None),
        "num_global_key_value_heads": by_kind.get(_FULL),
        "attention_k_eq_v": bool(full_layers) and not set(full_layers).intersection(values),
        "enable_moe_block": bool(own["expert_count"]),
        "num_experts": own["expert_count"],
        "top_k_experts": own["expert_used_count"],
        "moe_intermediate_size": own["expert_feed_forward_length"],
        "hidden_size_per_layer_input": own["embedding_length_per_layer_input"] or 0,
        "num_kv_shared_layers": own["attention.shared_kv_layers"] or 0,
        "sliding_window": own["attention.sliding_window"],
        "final_logit_softcapping": own["final_logit_softcapping"],
        "rope_scaling": None,
        "rope_parameters": {
            _FULL: {**full, "partial_rotary_factor": share},
            _SLIDING: sliding,
        },
    }


_PHI_CONTEXTS, _PHI_MAGNITUDE = (131_072, 4096), 1.243163121016122
_FULL, _SLIDING = "full_attention", "sliding_attention"
_KIND_OF_WINDOW = {True: _SLIDING, False: _FULL}
_UNTURNED = 1e20
"""A divisor above it means that an angle does not turn."""
_READERS: Mapping[str, Callable[[Metadata], Config]] = {
    "deepseek2": _deepseek,
    "ernie4_5-moe": _ernie,
    "gemma4": _gemma4,
    "glm4moe": _glm4_moe,
    "gpt-oss": _gpt_oss,
    "granitemoe": _granite,
    "llama": _llama,
    "minimax-m2": _minimax,
    "olmoe": _olmoe,
    "phimoe": _phimoe,
    "qwen2moe": _qwen2_moe,
    "qwen3": _qwen3,
    "qwen3moe": _qwen3_moe,
    "qwen3vlmoe": _qwen3_moe,
}
ARCHITECTURES = frozenset(_READERS)
SUPPORTED = ", ".join(sorted(_READERS))
TURNED_PAIRS = frozenset({"llama", "granitemoe"})
"""Architectures whose files have the halves of each head of queries and keys alternating."""
