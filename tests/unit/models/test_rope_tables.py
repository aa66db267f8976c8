"""Rotary tables equal those of transformers for every kind of scaling."""

import importlib
from typing import Any

import pytest
import torch

from runtime.inspect.config import ConfigReader
from runtime.inspect.families.rope import read_rope
from runtime.models.rope import rope_tables
from runtime.spec.rope import RopeSpec

NUM_POSITIONS = 300
DIM = 32
LONG = {
    "rope_type": "longrope",
    "short_factor": [1 + 0.1 * i for i in range(DIM // 2)],
    "long_factor": [1.5 + 0.7 * i for i in range(DIM // 2)],
    "original_max_position_embeddings": 256,
}
KINDS: list[dict[str, Any]] = [
    {"rope_type": "default"},
    {"rope_type": "linear", "factor": 3.0},
    {"rope_type": "dynamic", "factor": 2.0},
    {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 128,
    },
    {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128},
    {
        "rope_type": "yarn",
        "factor": 32.0,
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "truncate": False,
        "original_max_position_embeddings": 128,
    },
    {
        "rope_type": "yarn",
        "factor": 40.0,
        "mscale": 1.0,
        "mscale_all_dim": 0.707,
        "original_max_position_embeddings": 128,
    },
    LONG,
    {"rope_type": "proportional", "partial_rotary_factor": 0.25},
    {"rope_type": "proportional", "partial_rotary_factor": 0.25, "factor": 8.0},
]


def theirs(table: dict[str, Any], seq_len: int | None) -> tuple[torch.Tensor, float]:
    """The frequencies and the magnitude that transformers computes."""
    rope_utils = importlib.import_module("transformers.modeling_rope_utils")
    config = importlib.import_module("transformers").LlamaConfig(
        hidden_size=4 * DIM,
        num_attention_heads=4,
        max_position_embeddings=512,
        rope_parameters={"rope_theta": 10000.0, **table},
    )
    kind = config.rope_parameters["rope_type"]
    if kind == "default":
        exponents = torch.arange(0, DIM, 2, dtype=torch.int64).float() / DIM
        return 1.0 / (10000.0**exponents), 1.0
    function = rope_utils.ROPE_INIT_FUNCTIONS[kind]
    found: tuple[torch.Tensor, float] = function(config, device="cpu", seq_len=seq_len)
    return found


def ours(table: dict[str, Any]) -> RopeSpec:
    reader = ConfigReader(
        {"max_position_embeddings": 512, "rope_parameters": {"rope_theta": 10000.0, **table}}, "c"
    )
    rope = read_rope(reader, DIM, 1.0)
    assert not reader.problems
    return rope


@pytest.mark.parametrize("table", KINDS, ids=lambda table: f"{table['rope_type']}-{len(table)}")
def test_rope_tables_equal_transformers(table: dict[str, Any]) -> None:
    frequencies, magnitude = theirs(table, NUM_POSITIONS if table is LONG else None)
    angles = torch.outer(torch.arange(NUM_POSITIONS, dtype=torch.float32), frequencies)
    tables = rope_tables(ours(table), NUM_POSITIONS)

    torch.testing.assert_close(tables.cosines, angles.cos() * magnitude, atol=2e-5, rtol=0)
    torch.testing.assert_close(tables.sines, angles.sin() * magnitude, atol=2e-5, rtol=0)


def test_long_rope_goes_by_the_context_of_the_session() -> None:
    rope = ours(LONG)
    short, long = rope_tables(rope, 256), rope_tables(rope, 257)
    frequencies, magnitude = theirs(LONG, 256)

    torch.testing.assert_close(short.cosines[1], frequencies.cos() * magnitude, atol=1e-6, rtol=0)
    assert not torch.equal(short.cosines, long.cosines[:256])
