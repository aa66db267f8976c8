"""Speed of our kernels beside torch's on this machine, and beside the plain reading of memory.

Run by `make bench-kernels`; writes benchmarks/results/kernels.json. Weights of a row of the table
lie in buffers larger than the caches together and are used in turn, as while decoding.
"""

import dataclasses
import datetime as dt
import itertools
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import psutil
import torch

from runtime.kernels.base import Kernels
from runtime.kernels.dispatch import choose_kernels, usable_cores
from runtime.kernels.formats import pack
from runtime.kernels.matrix import Matrix, Slot
from runtime.native.loader import read_bandwidth
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import ExpertLayout, MatrixLayout, expert_layout, matrix_bytes

RESULTS = Path(__file__).resolve().parent / "results" / "kernels.json"
NUM_ROUNDS = 9
TOTAL_BYTES = 160 << 20
LIMIT_BYTES = 96 << 20
HIDDEN, WIDTH, TOP_K = 2048, 768, 8
TORCH_TYPES = {WeightFormat.F32: torch.float32, WeightFormat.BF16: torch.bfloat16}


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of the table; rates are in GB of weights or in thousand rows per second."""

    what: str
    unit: str
    ours: float
    peer: float
    peer_name: str
    ratio: float
    weight_gb_per_s: float
    target: str
    limit_share: float | None = None


@dataclasses.dataclass(frozen=True)
class Times:
    """Median seconds of a call, and the median ratio within a round."""

    ours_s: float
    peer_s: float
    ratio: float


class PlainRead:
    """The plain reading of memory by our threads, the limit of everything that reads weights."""

    def __init__(self) -> None:
        self._data = np.ones(LIMIT_BYTES, np.uint8)
        self.best_bytes_per_s = 0.0
        """The highest rate so far; 0 without the extension."""

    def read(self) -> None:
        """Read once."""
        address, num_bytes = self._data.ctypes.data, self._data.size
        rate = read_bandwidth(address, num_bytes, usable_cores()) or 0.0
        self.best_bytes_per_s = max(self.best_bytes_per_s, rate)


def seconds(work: Callable[[], object]) -> float:
    """Return the time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compare(ours: Callable[[], object], peer: Callable[[], object], limit: PlainRead) -> Times:
    """Time ours, the peer and the limit in turn, so that other load meets all of them alike."""
    ours(), peer()
    rounds = []
    for _ in range(NUM_ROUNDS):
        rounds.append((seconds(ours), seconds(peer)))
        limit.read()
    return Times(
        ours_s=statistics.median(ours_s for ours_s, _ in rounds),
        peer_s=statistics.median(peer_s for _, peer_s in rounds),
        ratio=statistics.median(peer_s / ours_s for ours_s, peer_s in rounds),
    )


def matrices(weight_format: WeightFormat, rows: int, columns: int) -> Iterator[Matrix]:
    """Return, in turn, copies of one random matrix that together are larger than the caches."""
    random = np.random.default_rng(0)
    packed = pack(weight_format, random.standard_normal((rows, columns), dtype=np.float32))
    num_bytes = matrix_bytes(weight_format, rows, columns)
    layout = MatrixLayout(weight_format, rows, columns, 0, num_bytes)
    num_copies = max(1, TOTAL_BYTES // num_bytes)
    return itertools.cycle([Matrix.from_buffer(layout, packed.copy()) for _ in range(num_copies)])


def torch_weights(dtype: torch.dtype, rows: int, columns: int) -> Iterator[torch.Tensor]:
    """Return the same for torch."""
    weights = torch.randn(rows, columns).to(dtype)
    num_copies = max(1, TOTAL_BYTES // (weights.numel() * weights.element_size()))
    return itertools.cycle([weights.clone() for _ in range(num_copies)])


def linear_row(
    kernels: Kernels, limit: PlainRead, weight_format: WeightFormat, shape: tuple[int, int, int]
) -> Row:
    """Measure ``[n, columns]`` times a matrix of ``rows``; the peer has bf16 for our formats."""
    n, rows, columns = shape
    peer_format = weight_format if weight_format in TORCH_TYPES else WeightFormat.BF16
    mine = matrices(weight_format, rows, columns)
    others = torch_weights(TORCH_TYPES[peer_format], rows, columns)
    x = torch.randn(n, columns)
    x_of_peer = x.to(TORCH_TYPES[peer_format])
    times = compare(
        lambda: kernels.linear(x, next(mine)),
        lambda: torch.nn.functional.linear(x_of_peer, next(others)),
        limit,
    )
    is_decode = n == 1
    num_bytes = matrix_bytes(weight_format, rows, columns)
    peer_bytes = matrix_bytes(peer_format, rows, columns)
    return Row(
        what=f"linear {weight_format} {n} x {columns} -> {rows}",
        unit="GB/s" if is_decode else "1000 rows/s",
        ours=(num_bytes / 1e9 if is_decode else n / 1e3) / times.ours_s,
        peer=(peer_bytes / 1e9 if is_decode else n / 1e3) / times.peer_s,
        peer_name=f"torch {peer_format}",
        ratio=times.ratio,
        weight_gb_per_s=num_bytes / 1e9 / times.ours_s,
        target="ratio at least 1" if is_decode else "none yet",
    )


def slots(layout: ExpertLayout) -> Iterator[tuple[int, Slot]]:
    """Return, in turn, numbered copies of one random expert, together larger than the caches."""
    random = np.random.default_rng(0)
    record = np.zeros(layout.record_bytes, np.uint8)
    for part in layout.parts.values():
        weights = random.standard_normal((part.rows, part.columns), dtype=np.float32)
        end = part.offset_bytes + part.num_bytes
        record[part.offset_bytes : end] = pack(part.format, weights * np.float32(0.02))
    num_copies = max(2 * TOP_K, TOTAL_BYTES // layout.record_bytes)
    return itertools.cycle(
        [(number, Slot.from_buffer(record.copy())) for number in range(num_copies)]
    )


def torch_experts() -> Callable[[], torch.Tensor]:
    """Return torch's work for a token's experts in bf16, other experts in every call."""
    shapes = ((WIDTH, HIDDEN), (WIDTH, HIDDEN), (HIDDEN, WIDTH))
    num_copies = max(2 * TOP_K, TOTAL_BYTES // (2 * 3 * HIDDEN * WIDTH))
    experts = itertools.cycle(
        [[(torch.randn(shape) * 0.02).bfloat16() for shape in shapes] for _ in range(num_copies)]
    )
    x = torch.randn(1, HIDDEN).bfloat16()

    def token() -> torch.Tensor:
        out = torch.zeros(1, HIDDEN, dtype=torch.bfloat16)
        linear = torch.nn.functional.linear
        for gate, up, down in itertools.islice(experts, TOP_K):
            hidden = torch.nn.functional.silu(linear(x, gate)) * linear(x, up)
            out += 0.125 * linear(hidden, down)
        return out

    return token


def experts_row(kernels: Kernels, limit: PlainRead, weight_format: WeightFormat) -> Row:
    """Measure one token's top-k experts, other ones in every call."""
    layout = expert_layout(weight_format, HIDDEN, WIDTH)
    turn = slots(layout)
    x, weights, out = torch.randn(1, HIDDEN), torch.full((1, TOP_K), 0.125), torch.zeros(1, HIDDEN)

    def token() -> None:
        chosen = sorted(itertools.islice(turn, TOP_K), key=lambda pair: pair[0])
        ids = torch.tensor([[number for number, _ in chosen]], dtype=torch.int32)
        kernels.experts(x, layout, chosen, ids, weights, out)

    times = compare(token, torch_experts(), limit)
    num_bytes = TOP_K * sum(part.num_bytes for part in layout.parts.values())
    return Row(
        what=f"experts {weight_format} 1 token, {TOP_K} of {HIDDEN} x {WIDTH}",
        unit="GB/s",
        ours=num_bytes / 1e9 / times.ours_s,
        peer=TOP_K * 6 * HIDDEN * WIDTH / 1e9 / times.peer_s,
        peer_name="torch bf16",
        ratio=times.ratio,
        weight_gb_per_s=num_bytes / 1e9 / times.ours_s,
        target="ratio at least 1",
    )


def machine() -> dict[str, str | int | float]:
    """Return what describes this machine, its name left out."""
    model = platform.processor() or platform.machine()
    facts = Path("/proc/cpuinfo")
    if facts.exists():
        lines = facts.read_text(encoding="utf-8").splitlines()
        model = next(
            (x.partition(":")[2].strip() for x in lines if x.startswith("model name")), model
        )
    return {
        "processor": model,
        "cores": usable_cores(),
        "memory_bytes": psutil.virtual_memory().total,
        "load_before": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else -1.0,
        "torch": torch.__version__,
    }


def main() -> None:
    """Measure, print and write the table."""
    about, kernels = machine(), choose_kernels()
    torch.set_num_threads(usable_cores())
    limit = PlainRead()
    rows = [
        *(
            linear_row(kernels, limit, weight_format, shape)
            for shape in ((1, 4096, HIDDEN), (64, 4096, HIDDEN), (1, 49152, 576))
            for weight_format in (WeightFormat.F32, WeightFormat.BF16, WeightFormat.Q8_G32)
        ),
        linear_row(kernels, limit, WeightFormat.Q4_G32, (1, 4096, HIDDEN)),
        *(
            experts_row(kernels, limit, weight_format)
            for weight_format in (WeightFormat.BF16, WeightFormat.Q8_G32, WeightFormat.Q4_G32)
        ),
    ]
    limit_gb_per_s = limit.best_bytes_per_s / 1e9
    if limit_gb_per_s:
        rows = [
            dataclasses.replace(row, limit_share=row.weight_gb_per_s / limit_gb_per_s)
            for row in rows
        ]
    for row in rows:
        share = "" if row.limit_share is None else f"{row.limit_share:.0%} of plain reading"
        print(
            f"{row.what:<44} {row.ours:8.2f} {row.unit:<12} {row.peer_name:<10} {row.peer:8.2f}"
            f"  ratio {row.ratio:6.2f}  {share}"
        )
    report = {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "machine": about,
        "kernels": kernels.name,
        "plain_read_gb_per_s": limit_gb_per_s,
        "rows": [dataclasses.asdict(row) for row in rows],
    }
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
