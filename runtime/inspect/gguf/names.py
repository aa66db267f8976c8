"""What GGUF files call the tensors that checkpoints call otherwise."""

import re
from collections.abc import Mapping, Sequence

from runtime.spec.tensors import ExpertPart

_LAYER = re.compile(r"model\.layers\.(?P<layer>\d+)\.(?P<rest>.+)")
_ENDS = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}
_MODULES: Mapping[str, Sequence[str]] = {
    "input_layernorm": ("attn_norm",),
    # Where a file has both, the other one is that of the block behind it.
    "post_attention_layernorm": ("post_attention_norm", "ffn_norm"),
    "pre_feedforward_layernorm": ("ffn_norm",),
    "post_feedforward_layernorm": ("post_ffw_norm",),
    "post_feedforward_layernorm_1": ("post_ffw_norm_1",),
    "pre_feedforward_layernorm_2": ("pre_ffw_norm_2",),
    "post_feedforward_layernorm_2": ("post_ffw_norm_2",),
    "self_attn.q_proj": ("attn_q",),
    "self_attn.k_proj": ("attn_k",),
    "self_attn.v_proj": ("attn_v",),
    "self_attn.o_proj": ("attn_output",),
    "self_attn.q_norm": ("attn_q_norm",),
    "self_attn.k_norm": ("attn_k_norm",),
    "self_attn.q_a_proj": ("attn_q_a",),
    "self_attn.q_a_layernorm": ("attn_q_a_norm",),
    "self_attn.q_b_proj": ("attn_q_b",),
    "self_attn.kv_a_proj_with_mqa": ("attn_kv_a_mqa",),
    "self_attn.kv_a_layernorm": ("attn_kv_a_norm",),
    "self_attn.kv_b_proj": ("attn_kv_b",),
    "mlp.gate_proj": ("ffn_gate",),
    "mlp.up_proj": ("ffn_up",),
    "mlp.down_proj": ("ffn_down",),
    "mlp.gate": ("ffn_gate_inp",),
    "mlp.router": ("ffn_gate_inp",),
    "router.proj": ("ffn_gate_inp",),
    "block_sparse_moe.gate": ("ffn_gate_inp",),
    "block_sparse_moe.router.layer": ("ffn_gate_inp",),
    **{
        f"mlp.{shared}.{part}_proj": (f"ffn_{part}_shexp",)
        for shared in ("shared_expert", "shared_experts")
        for part in ExpertPart
    },
    "mlp.shared_expert_gate": ("ffn_gate_inp_shexp",),
}
_WHOLE: Mapping[str, Sequence[str]] = {
    "self_attn.sinks": ("attn_sinks.weight", "attn_sinks"),
    "mlp.experts.down_proj_bias": ("ffn_down_exps.bias",),
    "router.scale": ("ffn_gate_inp.scale",),
    "router.per_expert_scale": ("ffn_down_exps.scale",),
    "layer_scalar": ("layer_output_scale.weight",),
    **{
        f"{module}.e_score_correction_bias": ("exp_probs_b.bias", "exp_probs_b")
        for module in ("mlp.gate", "mlp.moe_statics", "block_sparse_moe")
    },
}
"""Of tensors whose ending is another one too."""
GATE_UP_BIAS = "mlp.experts.gate_up_proj_bias"
KV_B = "self_attn.kv_b_proj.weight"


def stored_names(name: str) -> list[str]:
    """Return what a tensor that is no routed expert may be called, the likeliest first."""
    match = _LAYER.fullmatch(name)
    rest = match["rest"] if match else name
    if rest in _WHOLE:
        found = list(_WHOLE[rest])
    else:
        module, _, ending = rest.rpartition(".")
        modules = _MODULES.get(module, ()) if match else (_ENDS.get(module, ""),)
        found = [f"{each}.{ending}" for each in modules if each]
    return [f"blk.{match['layer']}.{each}" for each in found] if match else found


def layer_of(name: str) -> tuple[int, str]:
    """Return the layer of a tensor and its name in there, (-1, name) of those outside layers."""
    match = _LAYER.fullmatch(name)
    return (int(match["layer"]), match["rest"]) if match else (-1, name)


def stacked_name(layer: int, part: ExpertPart) -> str:
    """Return the tensor that holds one matrix of all routed experts of a layer."""
    return f"blk.{layer}.ffn_{part}_exps.weight"


def fused_name(layer: int) -> str:
    """Return the tensor that holds gate and up of all routed experts of a layer, gate first."""
    return f"blk.{layer}.ffn_gate_up_exps.weight"


def single_name(layer: int, expert: int, part: ExpertPart) -> str:
    """Return the tensor that older files have for one matrix of one expert."""
    return f"blk.{layer}.ffn_{part}.{expert}.weight"
