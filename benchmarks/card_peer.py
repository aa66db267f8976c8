"""llama.cpp on the card, with the best of its ways to leave experts in RAM, beside ours.

Random models of one shape in four bits, ours and the peer's, with as many experts on the card: the
peer's by whole layers, or all layers there but for the experts of the first ones. Routing of random
models is nearly even, so that what ours gains by knowing which experts are hot does not show.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
from model_shapes import Shape
from peer import PeerProcess, Settings, write_model

Row = dict[str, Any]
KIND = "Q4_0"
GOAL = 1.3
"""Ours by the peer's tokens per second, at equal VRAM and bits."""
CONTEXT_TOKENS = 512
_SUPPORTS = "import llama_cpp, sys; sys.exit(not llama_cpp.llama_supports_gpu_offload())"


def why_not() -> str:
    """Return why the peer cannot be compared with here, nothing if it can."""
    if importlib.util.find_spec("llama_cpp") is None:
        return "llama_cpp is not installed beside torch"
    if subprocess.call([sys.executable, "-c", _SUPPORTS], stderr=subprocess.DEVNULL):
        return "llama_cpp is built for the processor alone"
    return ""


def ways(shape: Shape, part: float) -> dict[str, dict[str, int]]:
    """Return how the peer can hold such a part of the experts on a card."""
    there = round(part * shape.num_layers)
    # The output counts as one layer more.
    return {
        f"{there} whole layers": {"gpu_layers": there and there + 1},
        f"all layers, experts of {there}": {
            "gpu_layers": shape.num_layers + 1,
            "cpu_experts": shape.num_layers - there,
        },
    }


def peers(
    shape: Shape, parts: Mapping[str, float], ours: Sequence[Row], num_tokens: int
) -> Iterator[Row]:
    """Yield the peer's best at each budget beside ours, or one line that says why there is none."""
    reason = why_not()
    if reason:
        yield {"what": "llama.cpp", "not_compared": reason}
        return
    with tempfile.TemporaryDirectory(prefix="larder-peer-") as folder:
        path = Path(folder) / "random.gguf"
        write_model(path, shape, KIND)
        try:
            with PeerProcess(Path(sys.executable)) as process:
                for (name, part), own in zip(parts.items(), ours, strict=True):
                    rates = {
                        way: _rate(process, path, layers, num_tokens)
                        for way, layers in ways(shape, part).items()
                    }
                    best = max(rates, key=lambda way: rates[way])
                    yield {
                        "what": f"llama.cpp, experts on the card: {name}; best of its ways: {best}",
                        "tokens_per_s": rates[best],
                        "ours_by_it": own["tokens_per_s"] / rates[best],
                        "goal": GOAL,
                    }
        except SystemExit as ended:
            yield {"what": "llama.cpp", "not_compared": str(ended)}


def _rate(process: PeerProcess, path: Path, layers: Mapping[str, int], num_tokens: int) -> float:
    """Return tokens per second of one way; the first few are not counted."""
    threads = psutil.cpu_count(logical=False) or 1
    settings = Settings(is_repacked=True, has_flash=True, threads=threads)
    process.load(
        path,
        settings,
        context_tokens=CONTEXT_TOKENS,
        gpu_layers=layers["gpu_layers"],
        cpu_experts=layers.get("cpu_experts", 0),
    )
    process.decode(4, 1)
    return num_tokens / process.decode(num_tokens, 1)
