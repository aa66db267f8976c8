"""Writing a calibrated model as GGUF, a matrix at a time."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from benchmarks.calibrated.model import CalibratedModel, Kind, Tensor
from benchmarks.calibrated.numbers import as_bf16

_ARCHITECTURES = {"qwen3_moe": "qwen3moe", "gpt_oss": "gpt-oss", "deepseek_v2": "deepseek2"}
_FILE_TYPES = {False: 2, True: 38}
_TYPES = gguf.GGMLQuantizationType
_MATRICES = (Kind.EMBEDDING, Kind.HEAD, Kind.DENSE, Kind.EXPERT)


def write_gguf(path: Path, model: CalibratedModel) -> None:
    """Write the whole model into a file, at the end under its name; it has no tokenizer."""
    part = path.with_name(f"{path.name}.part")
    writer = gguf.GGUFWriter(str(part), _ARCHITECTURES[model.shape.model_type])
    _write_facts(writer, model)
    stacks = [list(found) for _, found in itertools.groupby(_named(model), lambda t: t.gguf_name)]
    for stack in stacks:
        stored, first = _type_of(model, stack[0]), stack[0]
        shape = (len(stack), *first.shape) if first.kind is Kind.EXPERT else first.shape
        row = _row_bytes(stored, shape[-1])
        num_bytes = int(np.prod(shape[:-1], dtype=np.int64)) * row
        in_bytes = (*shape[:-1], row)
        dtype = np.dtype(np.float32 if stored is _TYPES.F32 else np.uint8)
        told = shape if stored is _TYPES.F32 else in_bytes
        writer.add_tensor_info(first.gguf_name, told, dtype, num_bytes, raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    assert writer.fout
    file = writer.fout[0]
    writer.write_padding(file, file.tell())
    for stack in stacks:
        begin = file.tell()
        for tensor in stack:
            for data in _pieces(model, tensor):
                file.write(np.ascontiguousarray(data).data)
        writer.write_padding(file, file.tell() - begin)
    writer.close()
    part.replace(path)


def _named(model: CalibratedModel) -> Iterator[Tensor]:
    return (tensor for tensor in model.tensors() if tensor.gguf_name)


def _type_of(model: CalibratedModel, tensor: Tensor) -> Any:  # noqa: ANN401 - gguf is untyped
    """Return the element type of a tensor."""
    if tensor.kind not in _MATRICES:
        return _TYPES.F32
    if not model.is_mxfp4:
        return _TYPES.Q4_0
    return _TYPES.MXFP4 if tensor.kind is Kind.EXPERT else _TYPES.BF16


def _row_bytes(stored: Any, columns: int) -> int:  # noqa: ANN401
    per_block, block_bytes = gguf.GGML_QUANT_SIZES[stored]
    return columns // int(per_block) * int(block_bytes)


def _pieces(model: CalibratedModel, tensor: Tensor) -> Iterator[np.ndarray]:
    """Yield the bytes of a tensor, some rows at a time."""
    if tensor.kind not in _MATRICES:
        yield model.plain(tensor)
    elif not model.is_mxfp4:
        yield from (stripe.q4_0() for stripe in model.stripes(tensor))
    elif tensor.kind is Kind.EXPERT:
        yield model.fours(tensor).gguf()
    else:
        yield from (as_bf16(stripe.values()) for stripe in model.stripes(tensor))


def _write_facts(writer: Any, model: CalibratedModel) -> None:  # noqa: ANN401
    shape, config = model.shape, model.shape.config
    writer.add_name(shape.name)
    writer.add_file_type(_FILE_TYPES[model.is_mxfp4])
    writer.add_block_count(shape.num_layers)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(shape.hidden)
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_expert_feed_forward_length(shape.expert_width)
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_rope_freq_base(float(config["rope_theta"]))
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_expert_count(shape.num_experts)
    writer.add_expert_used_count(config["num_experts_per_tok"])
    writer.add_vocab_size(shape.vocabulary)
    writer.add_tokenizer_model("no_vocab")
    if shape.model_type == "deepseek_v2":
        plain, turned = config["qk_nope_head_dim"], config["qk_rope_head_dim"]
        writer.add_key_length(plain + turned)
        writer.add_value_length(config["v_head_dim"])
        writer.add_kv_lora_rank(config["kv_lora_rank"])
        writer.add_rope_dimension_count(turned)
        writer.add_leading_dense_block_count(shape.first_moe_layer)
        writer.add_expert_shared_count(config["n_shared_experts"])
        writer.add_expert_weights_scale(float(config["routed_scaling_factor"]))
        writer.add_expert_weights_norm(value=False)
        writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SOFTMAX)
        return
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    if shape.model_type == "gpt_oss":
        scaling = config["rope_scaling"]
        writer.add_sliding_window(config["sliding_window"])
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(scaling["factor"])
        writer.add_rope_scaling_orig_ctx_len(scaling["original_max_position_embeddings"])
