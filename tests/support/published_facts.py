"""What the planner knows of published models, from their configs alone."""

import json
import math
from pathlib import Path

from runtime.inspect.config import ConfigReader
from runtime.inspect.families.registry import find_family
from runtime.inspect.families.shapes import part_shape
from runtime.inspect.families.wrapped import with_text_part
from runtime.protocol.model import ModelReport
from runtime.protocol.values import WeightFormat
from runtime.spec.facts import ModelFacts
from runtime.spec.footprint import KV_PAGE_TOKENS, dense_bytes, kv_cache_bytes
from runtime.spec.tensors import ExpertPart, TensorEntry, matrix_bytes

CONFIGS = Path(__file__).parents[1] / "golden" / "model-configs"
FOLDER = "/models/published"


def published_facts(
    name: str, stored_format: WeightFormat = WeightFormat.BF16, published_bits: int = 0
) -> ModelFacts:
    """Return the facts of a model by the name of its config, its experts stored in a format."""
    config = json.loads((CONFIGS / f"{name}.config.json").read_text())
    family = find_family(config["model_type"], None)
    assert family is not None, name
    spec = family.read_spec(with_text_part(ConfigReader(config, name)))
    plain = WeightFormat.BF16
    entries = [
        TensorEntry(
            name=tensor,
            file="model.safetensors",
            offset_bytes=0,
            num_bytes=2 * math.prod(shape),
            format=plain,
            shape=shape,
        )
        for tensor, shape in family.dense_shapes(spec).items()
    ]
    num_dense = sum(entry.num_bytes for entry in entries)
    shapes = [part_shape(spec, part) for part in ExpertPart]
    num_active = len(spec.moe_layers) * spec.top_k * sum(map(math.prod, shapes))
    report = ModelReport(
        folder=FOLDER,
        name=name,
        model_type=spec.model_type,
        fingerprint=name,
        licence="",
        problems=[],
        num_layers=spec.num_layers,
        num_moe_layers=len(spec.moe_layers),
        num_experts=spec.num_experts,
        top_k=spec.top_k,
        hidden_size=spec.hidden_size,
        vocabulary_size=spec.vocabulary_size,
        max_context_tokens=spec.max_context_tokens,
        num_active_parameters=num_dense // 2 + num_active,
        stored_format=stored_format,
        published_bits=published_bits,
        dense_bytes=num_dense,
        expert_bytes=sum(matrix_bytes(stored_format, *shape) for shape in shapes),
        kv_bytes_per_token=kv_cache_bytes(spec, KV_PAGE_TOKENS) // KV_PAGE_TOKENS,
    )
    return ModelFacts(report, spec, dense_bytes(entries))
