"""Qwen3-VL-MoE checkpoints: a Qwen3-MoE with its experts in stacks, beside what sees."""

import dataclasses

from runtime.inspect.config import ConfigReader
from runtime.inspect.families.base import Family, PartPlace, refuse_variant
from runtime.inspect.families.qwen3_moe import read_spec as read_qwen3_moe
from runtime.inspect.families.shapes import stacked, standard_shapes
from runtime.inspect.families.wrapped import wrapped
from runtime.spec.model import ModelSpec
from runtime.spec.naming import Naming
from runtime.spec.tensors import ExpertId, ExpertPart

_MODEL_TYPE = "qwen3_vl_moe"
_GATE_UP = "mlp.experts.gate_up_proj"
_upright = stacked(
    {
        ExpertPart.GATE: _GATE_UP,
        ExpertPart.UP: _GATE_UP,
        ExpertPart.DOWN: "mlp.experts.down_proj",
    }
)


def read_spec(reader: ConfigReader) -> ModelSpec:
    """Return the spec of a ``qwen3_vl_moe_text`` config, whose weights are always normalised."""
    spec = read_qwen3_moe(reader, rope_theta=500_000.0)
    if not reader.boolean("norm_topk_prob", default=True):
        refuse_variant(reader, "weights of experts as they are", "normalised weights of experts")
    return dataclasses.replace(spec, routing=dataclasses.replace(spec.routing, is_normalised=True))


def expert_part(spec: ModelSpec, expert: ExpertId, part: ExpertPart) -> PartPlace:
    """Return where a matrix lies: turned, as published, or upright, as it is saved since.

    A shape that does not tell is taken as upright, as in transformers.
    """
    upright = _upright(spec, expert, part)
    count, rows, columns = upright.shape
    turned = dataclasses.replace(upright, shape=(count, columns, rows), is_transposed=True)
    return dataclasses.replace(turned, otherwise=upright)


QWEN3_VL_MOE = wrapped(
    Family(
        model_type=f"{_MODEL_TYPE}_text",
        architectures=frozenset(),
        read_spec=read_spec,
        dense_shapes=standard_shapes,
        expert_part=expert_part,
    ),
    model_type=_MODEL_TYPE,
    architectures=("Qwen3VLMoeForConditionalGeneration",),
    text_types=(f"{_MODEL_TYPE}_text",),
    naming=Naming(body="model.language_model"),
)
