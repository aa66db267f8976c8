"""Made the traces beside this file from published recordings; kept to tell how.

``python -m resources.traces.convert SOURCE`` takes the folder that holds ``routing-*`` as arrays.
"""

import sys
from pathlib import Path

import numpy as np

from runtime.simulate.hygiene import complaints
from runtime.simulate.trace import Trace, TraceOrigin
from runtime.simulate.trace_files import write_trace

HERE = Path(__file__).resolve().parent
_MIT_SURAM = "MIT, Copyright (c) 2026 Shriniwas Ramesh Suram"
_MIT_DEEPSEEK = "MIT, Copyright (c) 2023 DeepSeek"
GPT_OSS_TOKENS = 21_000


def qwen3(source: Path, work: str) -> Trace:
    """Text through Qwen3-30B-A3B: ids only, the best first."""
    arrays = np.load(source / "routing-qwen3-30b-a3b" / f"{work}.npz")
    return Trace(
        f"qwen3-30b-a3b-{work}",
        TraceOrigin(
            "Qwen3-30B-A3B",
            "text",
            "github.com/Shriniwas410/cacheable-by-design 03366ef1cb986a7ac6067c840f8ac58d8e5c8595",
            _MIT_SURAM,
        ),
        128,
        tuple(int(layer) for layer in arrays["layer"]),
        tuple(int(size) for size in arrays["seq_len"]),
        arrays["ids"].astype(np.uint16),
    )


def deepseek(source: Path, work: str, has_scores: bool) -> Trace:
    """Training samples through DeepSeek-V2-Lite, put in the order of their weights."""
    arrays = np.load(source / "routing-deepseek-v2-lite-esft" / f"{work}.npz")
    weights = arrays["gate_x10000"]
    order = np.argsort(-weights.astype(np.int32), axis=2, kind="stable")
    weights = np.take_along_axis(weights, order, 2)
    return Trace(
        f"deepseek-v2-lite-{work}",
        TraceOrigin(
            "DeepSeek-V2-Lite",
            "text",
            "github.com/deepseek-ai/ESFT 579a7711e4b332b4c57b47e378a0cf240d85caa6",
            _MIT_DEEPSEEK,
        ),
        64,
        tuple(int(layer) for layer in arrays["layer"]),
        tuple(int(size) for size in arrays["seq_len"]),
        np.take_along_axis(arrays["ids"], order, 2).astype(np.uint16),
        np.round(weights / 10_000 * 255).astype(np.uint8) if has_scores else None,
    )


def gpt_oss(source: Path) -> Trace:
    """Answers of gpt-oss-20b with the weights of the chosen experts; the first ones."""
    arrays = np.load(source / "routing-gpt-oss-20b" / "traces.npz")
    num_layers = arrays["ids"].shape[1]
    whole = Trace(
        "gpt-oss-20b-answers",
        TraceOrigin(
            "gpt-oss-20b",
            "decode",
            "github.com/AmanPriyanshu/GPT-OSS-MoE-ExpertFingerprinting "
            "72b368f60045221f21eeb65debb27d58de92e565",
            "Apache-2.0",
        ),
        32,
        tuple(range(num_layers)),
        tuple(int(size) for size in arrays["seq_len"]),
        arrays["ids"].astype(np.uint16),
        arrays["prob_x255"],
    )
    return whole.part(GPT_OSS_TOKENS)


def main(source: Path) -> None:
    """Write all traces."""
    for work in ("code", "general", "math"):
        _write(qwen3(source, work), 2700)
    for work in ("intent", "summary", "translation"):
        _write(deepseek(source, work, has_scores=work == "translation"), 4300)
    _write(gpt_oss(source), 7000)


def _write(trace: Trace, tokens_per_part: int) -> None:
    problems = complaints(trace)
    if problems:
        raise SystemExit(f"{trace.name}: {'; '.join(problems)}")
    write_trace(HERE / trace.name, trace, tokens_per_part)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
