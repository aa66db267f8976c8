"""One form for the results of all benchmarks."""

from __future__ import annotations

import datetime as dt
import json
import platform
from pathlib import Path
from typing import Any

import psutil

RESULTS = Path(__file__).resolve().parent / "results"


def row(
    *,
    what: str,
    ours: float,
    peer: float | None = None,
    ratio: float | None = None,
    limit_share: float | None = None,
    target: str = "",
    is_reached: bool | None = None,
) -> dict[str, Any]:
    """One measured line; None where there is no peer, no limit or no target.

    ``ratio`` defaults to ours by peer. ``limit_share`` is the part of the hardware's limit.
    """
    if ratio is None and peer:
        ratio = round(ours / peer, 3)
    return {
        "what": what,
        "ours": ours,
        "peer": peer,
        "ratio": ratio,
        "limit_share": limit_share,
        "target": target,
        "is_reached": is_reached,
    }


def machine() -> dict[str, Any]:
    """The machine, as far as figures depend on it."""
    name = platform.processor() or platform.machine()
    cpu_info = Path("/proc/cpuinfo")
    if cpu_info.exists():
        lines = cpu_info.read_text(encoding="utf-8").splitlines()
        name = next((x.split(":", 1)[1].strip() for x in lines if x.startswith("model name")), name)
    return {
        "cpu": name,
        "num_cores": psutil.cpu_count(logical=False) or psutil.cpu_count(),
        "ram_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def load_averages() -> list[float]:
    """What else the machine computes: rates say little without how many waited for its cores."""
    return [round(average, 2) for average in psutil.getloadavg()]


def write_result(name: str, rows: list[dict[str, Any]], **more: object) -> Path:
    """Write `benchmarks/results/NAME.json` and return its path."""
    path = RESULTS / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    content: dict[str, object] = {
        "name": name,
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "machine": machine(),
        "rows": rows,
        **more,
    }
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return path
