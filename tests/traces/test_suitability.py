"""Kept traces of Qwen3-30B suit offloading as published, and families are rated by their traces."""

from pathlib import Path

import numpy as np
import pytest

from runtime.plan.suitability import FAMILIES, segment_ratio
from runtime.simulate.consistency import count_trace, segment_uses
from runtime.simulate.trace import Trace
from runtime.simulate.trace_files import read_trace
from runtime.spec.past import SEGMENT_TOKENS

TRACES = Path(__file__).resolve().parents[2] / "resources" / "traces"
PUBLISHED = 0.541
"""Of Qwen3-30B-A3B with segments of 16 tokens (arXiv:2505.16056)."""
TOPICS = ("code", "general", "math")


def segment_ratio_of(trace: Trace) -> float:
    """Over all layers and every sequence by itself."""
    ends = np.cumsum(trace.sequence_tokens)[:-1]
    uses = np.zeros(SEGMENT_TOKENS + 1, np.int64)
    for ids in np.split(trace.ids.astype(np.int64), ends):
        uses += segment_uses(ids, trace.num_experts, SEGMENT_TOKENS)
    return segment_ratio(uses.tolist())


def test_qwen3_is_within_six_points_of_what_was_published() -> None:
    ratios = [segment_ratio_of(read_trace(TRACES / f"qwen3-30b-a3b-{name}")) for name in TOPICS]
    assert all(abs(ratio - PUBLISHED) < 0.06 for ratio in ratios)
    mean = float(np.mean(ratios))
    assert abs(mean - PUBLISHED) < 0.025
    assert FAMILIES["qwen3_moe"][0] == pytest.approx(mean, abs=0.001)


@pytest.mark.parametrize(
    ("family", "names"),
    [
        ("qwen3_moe", [f"qwen3-30b-a3b-{name}" for name in TOPICS]),
        ("gpt_oss", ["gpt-oss-20b-answers"]),
        ("deepseek_v2", [f"deepseek-v2-lite-{name}" for name in ("intent", "summary")]),
    ],
)
def test_hits_of_families_are_those_of_their_traces(family: str, names: list[str]) -> None:
    """A part of them: some layers, some tokens."""
    found = []
    for name in names:
        whole = read_trace(TRACES / name)
        ends = np.cumsum(whole.sequence_tokens)
        tokens = int(ends[np.searchsorted(ends, 600)])
        counts = count_trace(whole.part(tokens, 6))
        assert counts is not None
        found.append([hits / counts.num_needs for hits in counts.hits])
    assert np.mean(found, axis=0) == pytest.approx(FAMILIES[family][1], abs=0.06)
