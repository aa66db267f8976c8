"""`make bench-sampler`: what ten samples a second of the tiered engine cost, with the largest map.

The tiered engine answers from a made checkpoint of 94 layers of 512 tiny experts, half of which
fit, so that experts are used and move all the while. Its samples go through the sampler's thread,
the outbox and the writer to another process that decodes them. The cost is what the sampler's and
the writer's thread compute, and the counting of uses inside the engine. What it costs the answer is
measured too: the decode rate while samples are taken by that while none are, in turns.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from reporting import load_averages, row, write_result

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from runtime.engine.base import CancelToken  # noqa: E402
from runtime.errors import CancelledError  # noqa: E402
from runtime.generate.engine import TieredEngine  # noqa: E402
from runtime.protocol.chat import SamplingSettings  # noqa: E402
from runtime.service.log import ErrorLog  # noqa: E402
from runtime.service.outbox import Outbox  # noqa: E402
from runtime.service.pipe import Writer  # noqa: E402
from runtime.service.sampler import Sampler, TakeSample  # noqa: E402
from runtime.telemetry.expert_tally import ExpertTally  # noqa: E402
from tests.support.engine_runs import answer, ignore_load_progress, user  # noqa: E402
from tests.support.hand_made_plans import exact_plan  # noqa: E402
from tests.support.tiny_checkpoints import write_checkpoint  # noqa: E402
from tests.support.tiny_variants import TinyVariant  # noqa: E402

NUM_LAYERS, NUM_EXPERTS, TOP_K = 94, 512, 8
WIDE = TinyVariant(
    "wide",
    "granitemoe",
    (
        ("hidden_size", 32),
        ("intermediate_size", 8),
        ("num_attention_heads", 2),
        ("num_key_value_heads", 1),
        ("num_local_experts", NUM_EXPERTS),
        ("num_experts_per_tok", TOP_K),
    ),
)
NUM_SLOTS = NUM_EXPERTS // 2
CONTEXT_TOKENS = 256
INTERVAL_S = 0.1
TARGET_SHARE = 0.05
MEASURE_S = 15.0
TURN_S = 1.0
NUM_TURNS = 30
SLOWDOWN_TARGET = 0.01
NUM_COUNTED_TOKENS = 500
COUNTED_THREADS = ("telemetry", "channel writer")
READER = """
import json, os
from runtime.protocol.framing import FrameSplitter, decode_event

splitter, num_samples, num_moved, num_bytes, num_tokens = FrameSplitter(), 0, 0, 0, 0
while data := os.read(0, 1 << 20):
    num_bytes += len(data)
    for payload in splitter.feed(data):
        sample = decode_event(payload).sample
        num_samples += 1
        num_moved += num_samples > 1 and len(sample.experts.tier) > 0
        num_tokens += sample.num_tokens
print(json.dumps([num_samples, num_moved, num_bytes, num_tokens]))
"""


def measure(seconds: float) -> dict[str, float]:
    """Measure; returns shares of a core, samples and tokens per second, and bytes per sample."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_checkpoint(folder, WIDE, NUM_LAYERS)
        engine = TieredEngine()
        engine.load(
            exact_plan(folder, NUM_SLOTS, CONTEXT_TOKENS), ignore_load_progress, CancelToken()
        )
        try:
            engine.wait_filled(MEASURE_S)
            with _answering(engine):
                return {**watched(engine.sample, seconds), **_slowdown(engine)}
        finally:
            engine.close()


def watched(take: TakeSample, seconds: float) -> dict[str, float]:
    """Have samples taken and sent for some seconds; returns what ``measure`` does."""
    with subprocess.Popen(
        [sys.executable, "-c", READER], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        outbox = Outbox()
        writer = Writer(reader.stdin.fileno(), outbox, lambda: None)
        sampler = Sampler(take, outbox.put, ErrorLog(), lambda: True)
        writer.start()
        sampler.watch(INTERVAL_S)
        begun_s, before_s = time.perf_counter(), _computed_s()
        time.sleep(seconds)
        elapsed_s, taken_s = time.perf_counter() - begun_s, _computed_s() - before_s
        sampler.finish(seconds)
        outbox.finish()
        writer.join(seconds)
        reader.stdin.close()
        num_samples, num_moved, num_bytes, num_tokens = json.loads(reader.stdout.read())
    tokens_per_s = num_tokens / elapsed_s
    thread_share, counting_share = taken_s / elapsed_s, tokens_per_s * _counting_s()
    return {
        "share": thread_share + counting_share,
        "counting_share": counting_share,
        "samples_per_s": num_samples / elapsed_s,
        "moved_ratio": num_moved / max(num_samples - 1, 1),
        "sample_bytes": num_bytes / max(num_samples, 1),
        "tokens_per_s": tokens_per_s,
    }


def _slowdown(engine: TieredEngine) -> dict[str, float]:
    """Return which part of its decode rate an engine loses while it is sampled.

    The rate is of the time spent decoding alone, so prompts and pauses do not count.
    """
    rates: dict[bool, list[float]] = {False: [], True: []}
    with Path(os.devnull).open("wb") as nowhere:
        outbox = Outbox()
        writer = Writer(nowhere.fileno(), outbox, lambda: None)
        sampler = Sampler(engine.sample, outbox.put, ErrorLog(), lambda: True)
        writer.start()
        for turn in range(2 * NUM_TURNS):
            # Each kind comes first as often as second.
            is_watched = (turn + turn // 2) % 2 == 1
            sampler.watch(INTERVAL_S if is_watched else 0.0)
            before = engine.counters
            time.sleep(TURN_S)
            rates[is_watched].append(engine.counters.since(before).decode_tokens_per_s)
        sampler.finish(TURN_S)
        outbox.finish()
        writer.join(TURN_S)
    pairs = zip(rates[True], rates[False], strict=True)
    # A turn in which a prompt was read all the time has no rate.
    lost = [1 - sampled / unsampled for sampled, unsampled in pairs if sampled and unsampled]
    quarters = statistics.quantiles(lost, n=4)
    return {"slowdown": statistics.median(lost), "slowdown_spread": quarters[2] - quarters[0]}


@contextlib.contextmanager
def _answering(engine: TieredEngine) -> Iterator[None]:
    """Have one answer written after the other by a thread of its own."""
    cancel = CancelToken()
    sampling = SamplingSettings(temperature=1.0, seed=7, max_tokens=CONTEXT_TOKENS // 2)

    def answers() -> None:
        turn = 0
        with contextlib.suppress(CancelledError):
            while not cancel.is_cancelled:
                turn += 1
                answer(engine, [user(f"What is the capital number {turn}?")], sampling, cancel)

    thread = threading.Thread(target=answers, name="engine")
    thread.start()
    try:
        yield
    finally:
        cancel.cancel()
        thread.join()


def _computed_s() -> float:
    """Return what the threads of telemetry have computed so far."""
    found = [each for each in threading.enumerate() if each.name in COUNTED_THREADS]
    assert len(found) == len(COUNTED_THREADS), found
    idents = [each.ident for each in found if each.ident is not None]
    return sum(time.clock_gettime(time.pthread_getcpuclockid(ident)) for ident in idents)


def _counting_s() -> float:
    """Return what counting the uses of one token takes the engine."""
    tally = ExpertTally(NUM_LAYERS, NUM_EXPERTS, 32)
    chosen = list(range(0, NUM_EXPERTS, NUM_EXPERTS // TOP_K))
    begun_s = time.thread_time()
    for _ in range(NUM_COUNTED_TOKENS):
        for layer in range(NUM_LAYERS):
            tally.note_uses(layer * NUM_EXPERTS, chosen)
    return (time.thread_time() - begun_s) / NUM_COUNTED_TOKENS


def main() -> None:
    """Measure, print, write `benchmarks/results/sampler.json`."""
    load_before = load_averages()
    found = measure(MEASURE_S)
    print(
        f"{found['share']:.1%} of a core ({found['counting_share']:.1%} for counting) for "
        f"{found['samples_per_s']:.1f} samples/s of {found['sample_bytes'] / 1024:.0f} KiB at "
        f"{found['tokens_per_s']:.0f} tokens/s; experts had moved in {found['moved_ratio']:.0%}; "
        f"decoding lost {found['slowdown']:.2%} (half of the pairs within "
        f"{found['slowdown_spread']:.2%})"
    )
    share = found["share"]
    write_result(
        "sampler",
        [
            row(
                what=f"share of a core for {NUM_LAYERS} x {NUM_EXPERTS} at 10 Hz, tiered engine",
                ours=round(share, 4),
                target=f"under {TARGET_SHARE}",
                is_reached=share < TARGET_SHARE,
            ),
            row(what="of it for counting uses", ours=round(found["counting_share"], 4)),
            row(
                what=f"part of the decode rate lost while sampled, median of {NUM_TURNS} pairs",
                ours=round(found["slowdown"], 4),
                target=f"under {SLOWDOWN_TARGET}",
                is_reached=found["slowdown"] < SLOWDOWN_TARGET,
            ),
            row(what="half of these pairs within", ours=round(found["slowdown_spread"], 4)),
            row(what="samples per second", ours=round(found["samples_per_s"], 2)),
            row(what="tokens per second", ours=round(found["tokens_per_s"], 1)),
            row(what="bytes of a sample", ours=round(found["sample_bytes"])),
            row(what="samples in which experts moved", ours=round(found["moved_ratio"], 3)),
        ],
        load_before=load_before,
    )


if __name__ == "__main__":
    main()
