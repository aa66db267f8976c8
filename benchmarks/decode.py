"""`make bench-decode`: the demo model as published and in 8 bits, every expert in RAM.

Decode and prompt rates are the best of some runs, since other programs share the machine; beside
them stands the part of plain reading that decoding reaches: bytes of weights by seconds.
"""

from __future__ import annotations

import dataclasses
import sys
import tempfile
from pathlib import Path

import numpy as np
from reporting import row, write_result

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from runtime.engine.base import CancelToken  # noqa: E402
from runtime.generate.engine import TieredEngine  # noqa: E402
from runtime.kernels.dispatch import usable_cores  # noqa: E402
from runtime.native.loader import read_bandwidth  # noqa: E402
from runtime.protocol.chat import SamplingSettings  # noqa: E402
from runtime.protocol.plan import PlacementPlan  # noqa: E402
from runtime.protocol.values import WeightFormat  # noqa: E402
from tests.support.engine_runs import answer, ignore_load_progress, user  # noqa: E402
from tests.support.hand_made_plans import exact_plan, prepared_plan  # noqa: E402

DEMO = ROOT / "build" / "demo" / "larder-demo"
NUM_RUNS = 5
NUM_TOKENS = 64
CONTEXT_TOKENS = 1024
PROMPT = "Tell me what a larder is, who has one, and what lies in it. " * 16
LIMIT_BYTES = 256 * 1024 * 1024


@dataclasses.dataclass(frozen=True)
class Rates:
    """Best rates of one plan."""

    decode_tokens_per_s: float
    prompt_tokens_per_s: float
    bytes_per_token: float


def main() -> None:
    """Measure both formats and write the result."""
    limit = _plain_read()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        plans = {
            "exact": exact_plan(DEMO, context_tokens=CONTEXT_TOKENS),
            "8 bits": prepared_plan(
                DEMO, Path(folder) / "copy", WeightFormat.Q8_G32, CONTEXT_TOKENS
            ),
        }
        for name, plan in plans.items():
            rates = _measure(plan)
            read_per_s = rates.decode_tokens_per_s * rates.bytes_per_token
            share = round(read_per_s / limit, 3) if limit else None
            decode, prompt = rates.decode_tokens_per_s, rates.prompt_tokens_per_s
            rows.append(row(what=f"decode rate, {name}", ours=round(decode, 2), limit_share=share))
            rows.append(row(what=f"prompt rate, {name}", ours=round(prompt, 1)))
            print(f"{name}: decode {decode:.1f} tokens/s, prompt {prompt:.0f} tokens/s, {share}")
    print(write_result("decode", rows, unit="tokens/s", plain_read_bytes_per_s=round(limit)))


def _measure(plan: PlacementPlan) -> Rates:
    engine = TieredEngine()
    engine.load(plan, ignore_load_progress, CancelToken())
    assert engine.wait_filled(600)
    decode = prompt = bytes_per_token = 0.0
    short = SamplingSettings(temperature=0, max_tokens=NUM_TOKENS)
    long = SamplingSettings(temperature=0, max_tokens=1)
    for turn in range(NUM_RUNS):
        prompt_run = answer(engine, [user(f"{turn}. {PROMPT}")], long)
        prompt = max(prompt, prompt_run.stats.prompt_tokens_per_s)
        question = [user(f"{turn}. What is a larder?")]
        answer(engine, question, long)
        engine.sample(0.0)
        run = answer(engine, question, short)
        # One token of the prompt is computed again, so as many steps as tokens.
        bytes_per_token = engine.sample(0.0).ram_bytes_read / run.stats.generated_tokens
        decode = max(decode, run.stats.decode_tokens_per_s)
    engine.close()
    return Rates(decode, prompt, bytes_per_token)


def _plain_read() -> float:
    """Return the best rate of reading memory with our threads, 0 without the extension."""
    data = np.ones(LIMIT_BYTES, np.uint8)
    cores = usable_cores()
    return max(read_bandwidth(data.ctypes.data, data.size, cores) or 0.0 for _ in range(NUM_RUNS))


if __name__ == "__main__":
    main()
