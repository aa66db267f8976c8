"""Our side of `make bench-gguf` under a limit of memory, driven by lines on standard input.

The program's own loading, reader, expert cache, model code and kernels on a GGUF file where it
lies. Each line is a JSON object; each answer is one line of JSON:

    {"load": file, "limit_bytes": n, "threads": n}      within so much memory       -> {"slots": n}
    {"feed": [ids]}                                     one by one                  -> {...}
    {"close": true}
"""

import contextlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import torch
from model_shapes import QWEN3_30B

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.calibrated.feeding import feed, loaded  # noqa: E402
from runtime.generate.loading import LoadedParts  # noqa: E402
from runtime.kernels.dispatch import choose_kernels  # noqa: E402
from runtime.protocol.plan import PlacementPlan  # noqa: E402
from runtime.telemetry.recorder import Counters  # noqa: E402
from tests.support.hand_made_plans import exact_plan  # noqa: E402

CONTEXT_TOKENS = 512
SPARE_BYTES = 48 << 20
"""What the process may grow by while it computes; 8 MB were seen."""


def plan_within(path: Path, limit_bytes: int) -> tuple[PlacementPlan, int]:
    """Return the plan with the most slots that leaves the process below a limit, and the slots."""
    room = limit_bytes - psutil.Process().memory_full_info().uss - SPARE_BYTES
    for slots in range(QWEN3_30B.num_experts, 0, -1):
        plan = exact_plan(path, slots, CONTEXT_TOKENS, chunk_tokens=1)
        assert plan.budgets.ram_bytes is not None
        if plan.budgets.ram_bytes <= room:
            return plan, slots
    sys.exit(f"{limit_bytes} bytes hold no expert of a layer")


def fed(parts: LoadedParts, counters: Counters, ids: list[int]) -> dict[str, Any]:
    """Feed tokens one by one; return what it took."""
    before = counters.copy()
    started_s = time.perf_counter()
    feed(parts, ids)
    seconds = time.perf_counter() - started_s
    spent = counters.since(before)
    return {
        "seconds": seconds,
        "missed_bytes": spent.expert_miss_bytes,
        "hits": spent.expert_hits / max(1, spent.expert_hits + spent.expert_misses),
        "wait_s": spent.drive_wait_s,
    }


def main() -> None:
    """Answer lines until one says close."""
    torch.set_num_threads(1)
    counters = Counters()
    with contextlib.ExitStack() as stack:
        parts: LoadedParts | None = None
        for line in sys.stdin:
            wish = json.loads(line)
            if wish.get("close"):
                break
            if "load" in wish:
                choose_kernels(wish["threads"])
                plan, slots = plan_within(Path(wish["load"]), wish["limit_bytes"])
                parts = stack.enter_context(loaded(plan, counters))
                answer: dict[str, Any] = {"slots": slots, "format": str(plan.expert_format)}
            else:
                assert parts is not None
                answer = fed(parts, counters, wish["feed"])
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
