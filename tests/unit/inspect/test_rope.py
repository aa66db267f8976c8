"""Rotary positions as configs spell them."""

import math

import pytest

from runtime.inspect.config import ConfigReader
from runtime.inspect.families.rope import read_rope
from runtime.protocol.errors import ErrorCode
from runtime.spec.rope import (
    LinearScaling,
    Llama3Scaling,
    LongScaling,
    ProportionalScaling,
    RopeScaling,
    RopeSpec,
    YarnScaling,
)

LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
LONG = {
    "type": "longrope",
    "short_factor": [1.0, 1.5],
    "long_factor": [2, 3.5],
    "original_max_position_embeddings": 1024,
}


def read(head_dim: int = 4, *, share: float | None = None, **values: object) -> RopeSpec:
    reader = ConfigReader({"max_position_embeddings": 4096, **values}, "config.json")
    rope = read_rope(reader, head_dim, 10000.0, share=share)
    assert not reader.problems
    return rope


def problem_of(**values: object) -> tuple[ErrorCode, object]:
    reader = ConfigReader({"max_position_embeddings": 4096, **values}, "config.json")
    read_rope(reader, 4, 10000.0)
    parameters = reader.problems[0].parameters
    return reader.problems[0].code, parameters.get("field", parameters.get("architecture"))


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({}, None),
        ({"rope_type": "default"}, None),
        ({"type": "dynamic", "factor": 2.0}, None),
        ({"type": "mrope", "mrope_section": [1, 1]}, None),
        ({"type": "linear", "factor": 2}, LinearScaling(2.0)),
        (LLAMA3, Llama3Scaling(8.0, 1.0, 4.0, 8192)),
        ({"rope_type": "yarn", "factor": 4.0}, YarnScaling(4.0, 4096, 0.1 * math.log(4) + 1)),
        (
            {"rope_type": "yarn", "original_max_position_embeddings": 512, "truncate": False},
            YarnScaling(8.0, 512, 0.1 * math.log(8) + 1, is_truncated=False),
        ),
        (
            {"type": "yarn", "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0, "beta_fast": 16},
            YarnScaling(40.0, 4096, 1.0, fast_turns=16.0),
        ),
        ({"type": "yarn", "factor": 0.5}, YarnScaling(0.5, 4096, 1.0)),
        (
            {**LONG, "short_mscale": 1.25, "long_mscale": 1.5},
            LongScaling((1.0, 1.5), (2.0, 3.5), 1024, 1.25, 1.5),
        ),
        (
            LONG,
            LongScaling(
                (1.0, 1.5),
                (2.0, 3.5),
                1024,
                math.sqrt(1 + math.log(4) / math.log(1024)),
                math.sqrt(1 + math.log(4) / math.log(1024)),
            ),
        ),
        (
            {**LONG, "type": "su", "factor": 1.0},
            LongScaling((1.0, 1.5), (2.0, 3.5), 1024, 1.0, 1.0),
        ),
        (
            {"rope_type": "proportional", "partial_rotary_factor": 0.25},
            ProportionalScaling(0.25),
        ),
        (
            {"rope_type": "proportional", "partial_rotary_factor": 0.25, "factor": 8.0},
            ProportionalScaling(0.25, 8.0),
        ),
    ],
)
def test_read_rope_knows_each_kind(table: dict[str, object], expected: RopeScaling | None) -> None:
    assert read(rope_scaling=table) == RopeSpec(10000.0, 4, expected)
    assert read(rope_parameters={**table, "rope_theta": 5e5}) == RopeSpec(5e5, 4, expected)


def test_read_rope_original_context_beside_the_table_counts() -> None:
    rope = read(rope_scaling={"type": "yarn"}, original_max_position_embeddings=2048)
    assert rope.scaling == YarnScaling(2.0, 2048, 0.1 * math.log(2) + 1)


def test_read_rope_part_of_a_head_is_whole_pairs() -> None:
    assert read(10, share=1.0, partial_rotary_factor=0.5).num_channels == 4
    assert read(8, share=1.0, rope_parameters={"partial_rotary_factor": 0.5}) == (
        RopeSpec(10000.0, 4)
    )


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"partial_rotary_factor": 0.5}, "with partial rope 0.5"),
        ({"rope_scaling": {"type": "spiral"}}, "with rope scaling spiral"),
        ({"rope_parameters": {"full_attention": {}}}, "with one rope for each kind of layer"),
    ],
)
def test_read_rope_what_is_not_computed_is_named(values: dict[str, object], named: str) -> None:
    code, found = problem_of(**values)
    assert code is ErrorCode.ARCHITECTURE_UNSUPPORTED
    assert str(found).replace("'", "").strip() == named


@pytest.mark.parametrize(
    ("table", "field"),
    [
        ({"type": "linear"}, "factor"),
        ({**LLAMA3, "high_freq_factor": 1.0}, "high_freq_factor"),
        ({**LONG, "long_factor": [1.0]}, "long_factor"),
        ({**LONG, "short_factor": [1.0, float("nan")]}, "short_factor"),
        ({**LONG, "short_factor": None}, "short_factor"),
        ({"type": "yarn", "factor": "4"}, "factor"),
    ],
)
def test_read_rope_impossible_value_names_the_field(table: dict[str, object], field: str) -> None:
    assert problem_of(rope_scaling=table) == (ErrorCode.CONFIG_INVALID, field)
