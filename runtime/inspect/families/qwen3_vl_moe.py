"""Qwen3-VL-MoE checkpoints: a Qwen3-MoE with its experts in stacks, beside what sees."""

import dataclasses

from runtime.inspect.families.base import Family, PartPlace
from runtime.inspect.families.qwen3_moe import QWEN3_MOE
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
        read_spec=QWEN3_MOE.read_spec,
        dense_shapes=standard_shapes,
        expert_part=expert_part,
    ),
    model_type=_MODEL_TYPE,
    architecture="Qwen3VLMoeForConditionalGeneration",
    text_types=(f"{_MODEL_TYPE}_text",),
    naming=Naming(body="model.language_model"),
)
