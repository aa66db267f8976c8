"""Every config that we read comes to the parameters and bytes that are known of its model."""

import json
import math
from pathlib import Path

import pytest

from runtime.inspect.config import ConfigReader
from runtime.inspect.families.registry import find_family
from runtime.inspect.families.shapes import part_shape
from runtime.inspect.families.wrapped import with_text_part
from runtime.protocol.values import WeightFormat
from runtime.spec.footprint import KV_PAGE_TOKENS, kv_cache_bytes
from runtime.spec.tensors import ExpertId, ExpertPart, matrix_bytes
from tests.support.model_facts import FACTS

CONFIGS = Path(__file__).parents[2] / "golden" / "model-configs"
PARTS_ALLOWED = 0.04
"""Published figures are rounded, and some leave the embedding or norms out."""


@pytest.mark.parametrize("name", FACTS)
def test_config_comes_to_the_known_facts(name: str) -> None:
    known = FACTS[name]
    config = json.loads((CONFIGS / f"{name}.config.json").read_text())
    reader = with_text_part(ConfigReader(config, name))
    family = find_family(config["model_type"], config["architectures"])
    assert family is not None
    spec = family.read_spec(reader)
    assert not reader.problems

    assert spec.num_layers == known.num_layers
    assert len(spec.moe_layers) == known.num_moe_layers
    assert (spec.num_experts, spec.top_k) == (known.num_experts, known.top_k)
    dense = sum(map(math.prod, family.dense_shapes(spec).values()))
    expert = sum(math.prod(part_shape(spec, part)) for part in ExpertPart)
    assert expert == known.expert_parameters
    routed = len(spec.moe_layers) * expert
    unread = 0 if known.counts_embedding else spec.vocabulary_size * spec.hidden_size
    for found, billions in (
        (dense + routed * spec.num_experts, known.total_billions),
        (dense - unread + routed * spec.top_k, known.active_billions),
    ):
        assert found / 1e9 == pytest.approx(billions, rel=PARTS_ALLOWED)
    bf16 = sum(matrix_bytes(WeightFormat.BF16, *part_shape(spec, part)) for part in ExpertPart)
    assert bf16 == 2 * known.expert_parameters
    assert kv_cache_bytes(spec, KV_PAGE_TOKENS) == 4 * KV_PAGE_TOKENS * known.kv_channels


@pytest.mark.parametrize("name", FACTS)
def test_parts_of_all_experts_fill_their_tensors_exactly(name: str) -> None:
    config = json.loads((CONFIGS / f"{name}.config.json").read_text())
    family = find_family(config["model_type"], None)
    assert family is not None
    spec = family.read_spec(with_text_part(ConfigReader(config, name)))
    layer = spec.moe_layers[0]
    filled: dict[str, int] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    for number in range(spec.num_experts):
        for part in ExpertPart:
            place = family.expert_part(spec, ExpertId(layer, number), part)
            shapes[place.name] = place.shape
            filled[place.name] = filled.get(place.name, 0) + math.prod(part_shape(spec, part))

    assert filled == {tensor: math.prod(shape) for tensor, shape in shapes.items()}
    assert not shapes.keys() & family.dense_shapes(spec).keys()
