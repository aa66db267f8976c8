"""Answers of a whole engine with experts on a card, at three budgets, beside the processor's."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from runtime.engine.base import CancelToken  # noqa: E402
from runtime.generate.engine import TieredEngine  # noqa: E402
from runtime.inspect.folder import inspect_folder  # noqa: E402
from runtime.protocol.chat import SamplingSettings  # noqa: E402
from runtime.protocol.plan import PlacementPlan  # noqa: E402
from tests.support.engine_runs import (  # noqa: E402
    Run,
    answer,
    ignore_load_progress,
    user,
)
from tests.support.hand_made_plans import device_plan, exact_plan  # noqa: E402

QUESTION = [user("What is the capital of France?")]
FILL_S = 120.0


def answers(
    folder: Path, device: str, parts: Mapping[str, float], num_tokens: int
) -> Iterator[dict[str, Any]]:
    """Yield speed, hits and the tokens shared with the processor's answer, for each budget.

    The second answer counts: by then the card holds what the first one needed.
    """
    spec = inspect_folder(str(folder)).spec
    assert spec is not None, f"no model in {folder}"
    expected = _second(exact_plan(folder), num_tokens).token_ids
    for name, part in parts.items():
        plan = device_plan(folder, spec.num_experts, int(part * spec.num_experts), device)
        run = _second(plan, num_tokens)
        vram = run.stats.tiers[0]
        same = sum(a == b for a, b in zip(run.token_ids, expected, strict=False))
        yield {
            "what": f"{folder.name}, experts on the card: {name}",
            "tokens_per_s": run.stats.decode_tokens_per_s,
            "hit_ratio": vram.hits / max(1, vram.hits + vram.misses),
            "same_tokens": same / max(1, len(expected)),
        }


def _second(plan: PlacementPlan, num_tokens: int) -> Run:
    """Return the second answer of an engine with a plan."""
    engine = TieredEngine()
    engine.load(plan, ignore_load_progress, CancelToken())
    engine.wait_filled(FILL_S)
    sampling = SamplingSettings(temperature=0.0, max_tokens=num_tokens)
    answer(engine, QUESTION, sampling)
    run = answer(engine, QUESTION, sampling)
    engine.close()
    return run
