"""Quality at equal size: a mix of formats, one format for all, and llama.cpp's own types.

Run by `make bench-mix`; writes benchmarks/results/mix.json. The transformed demo
(`transformed_demo.py`), with routers that choose by a wider margin, is written in each way by the
tools of both sides and run by their own kernels; what is compared is the mean KL divergence of
next-token distributions on held-out texts against f32. Sizes are those of all weights. A mix may
take what the other side's file takes. Its calibration reads the supplied text, which shares nothing
with the held-out ones. What was measured is kept in build/mix-bench, so that a run that was cut off
goes on; `--most N` measures so many figures and writes what is known then; `--without-peer` leaves
llama.cpp out, `--fresh` begins anew, `--quick` measures one comparison alone and writes nothing.
"""

import argparse
import contextlib
import dataclasses
import functools
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gguf
import msgspec
import numpy as np
import numpy.typing as npt
import peer
import reporting
import torch
from tokenizers import Tokenizer
from transformed_demo import (
    read_tensors,
    transformed,
    with_clear_choices,
    write_folder,
    write_gguf,
)
from transformers import AutoModelForCausalLM

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.calibrated.feeding import loaded  # noqa: E402
from resources.demo.derive.measure import load_held_out  # noqa: E402
from runtime.engine.base import CancelToken  # noqa: E402
from runtime.generate.calibrating import calibrate  # noqa: E402
from runtime.generate.loading import LoadedParts  # noqa: E402
from runtime.inspect.folder import inspect_folder  # noqa: E402
from runtime.plan.mix import Choice, Part  # noqa: E402
from runtime.prepare.calibration_text import read_text  # noqa: E402
from runtime.prepare.importance import CalibratedImportance  # noqa: E402
from runtime.prepare.mixing import Measured, measure_formats  # noqa: E402
from runtime.prepare.prepare import NeverStops, prepare_model  # noqa: E402
from runtime.protocol.values import Budgets, WeightFormat  # noqa: E402
from runtime.spec.mix import Mix  # noqa: E402
from runtime.spec.tensors import ExpertId  # noqa: E402
from runtime.telemetry.recorder import Counters  # noqa: E402
from tests.support.hand_made_plans import exact_plan  # noqa: E402

DEMO = ROOT / "build" / "demo" / "larder-demo"
WORK = ROOT / "build" / "mix-bench"
HELD_OUT = ROOT / "resources" / "demo" / "heldout.jsonl"
MAX_DIFFERENCE = 1e-3
MAX_UNCHANGED_KL = 2e-3
"""Of the f32 model by either side's kernels. Rounding decides now and then who is the last of the
experts that are chosen, for them as for the reference."""
NUM_TOKENS, NUM_ROWS_PER_SET = 160, 1
CALIBRATED_TOKENS = 1024
CONTEXT_TOKENS = 512
UNIFORM = {
    "q3_g16": WeightFormat.Q3_G16,
    "q4a_g32": WeightFormat.Q4A_G32,
    "q6_g32": WeightFormat.Q6_G32,
}
"""Formats beside mixes of their size."""
BETWEEN = {"q2_g16": "q3_g16", "q3_g16": "q4a_g32"}
"""Formats beside mixes of the mean of their size and that of the next one, which has no room."""
PEERS = {"Q3_K_S": 11, "Q2_K": 10, "Q6_K": 18}
"""Types of llama.cpp's own tool beside mixes of the size of its file."""
EQUAL = {
    "q8_g32": (WeightFormat.Q8_G32, "Q8_0", 7),
    "q4a_g32": (WeightFormat.Q4A_G32, "Q4_K", 14),
}
"""Formats of equal bits on both sides, for all matrices."""
Floats = npt.NDArray[np.float32]
Figures = dict[str, float]
Row = dict[str, Any]


class EnoughError(Exception):
    """As many figures as were asked for were measured."""


class Bench:
    """The transformed demo, what both sides make of it, and what was measured before."""

    def __init__(self) -> None:
        WORK.mkdir(parents=True, exist_ok=True)
        self._kept_path = WORK / "kept.json"
        self.kept: dict[str, Figures] = {}
        if self._kept_path.exists():
            self.kept = json.loads(self._kept_path.read_text(encoding="utf-8"))
        self.folder, self.gguf = WORK / "model", WORK / "model.gguf"
        self.ids = _texts()
        self.most = 0
        """So many figures are measured in this run; 0: all."""
        self.is_kept_only = False
        self._measured: Measured | None = None
        self._exact: torch.Tensor | None = None

    def figures(self, name: str, measure: Callable[[], Figures]) -> Figures:
        """Return what was measured under a name, now or before."""
        if name not in self.kept:
            if self.is_kept_only:
                raise EnoughError
            self.kept[name] = measure()
            self._kept_path.write_text(json.dumps(self.kept, indent=1), encoding="utf-8")
            print(name, self.kept[name], flush=True)
            self.most -= 1
            if not self.most:
                raise EnoughError
        return self.kept[name]

    def write(self) -> Figures:
        """Write the transformed demo in both forms; return how much the transform changes logits.

        What is written chooses experts by a wider margin; its own logits in f32 are the exact ones.
        """
        config = json.loads((DEMO / "config.json").read_text(encoding="utf-8"))
        config, tensors = transformed(config, read_tensors(DEMO))
        write_folder(DEMO, self.folder, config, tensors)
        published = _logits_by_transformers(DEMO, self.ids)
        same = _logits_by_transformers(self.folder, self.ids)
        tensors = with_clear_choices(tensors)
        write_folder(DEMO, self.folder, config, tensors)
        self.gguf.unlink(missing_ok=True)
        write_gguf(self.gguf, config, tensors)
        exact = _logits_by_transformers(self.folder, self.ids)
        np.save(WORK / "exact.npy", exact.numpy())
        is_alike = exact.argmax(dim=-1) == published.argmax(dim=-1)
        return {
            "difference": float((published - same).abs().max()),
            "same_choice": float(is_alike.float().mean()),
        }

    @property
    def exact(self) -> torch.Tensor:
        """The logits in f32."""
        if self._exact is None:
            self._exact = torch.from_numpy(np.load(WORK / "exact.npy"))
        return self._exact

    @property
    def measured(self) -> Measured:
        """What each format would spoil of each part."""
        if self._measured is None:
            plan = exact_plan(self.folder, context_tokens=CONTEXT_TOKENS)
            found = calibrate(
                plan, read_text(), CALIBRATED_TOKENS, WORK / "kept.calibration.npz",
                lambda *_: None, CancelToken(),
            )  # fmt: skip
            path = WORK / "formats.json"
            inspection = inspect_folder(str(self.folder))
            assert inspection.spec is not None
            if not path.exists():
                path.write_text(_told(measure_formats(inspection, found, None, NeverStops())))
            importance = CalibratedImportance(found, inspection.spec)
            self._measured = dataclasses.replace(_read(path.read_text()), importance=importance)
        return self._measured

    def alone(self, wanted: WeightFormat) -> Figures:
        """Write and run a copy in which everything that could be mixed has one format."""
        names = [part.name for part in self.measured.parts]
        return self.ours(
            Mix(
                {name: wanted for name in names if isinstance(name, ExpertId)},
                {name: wanted for name in names if isinstance(name, str)},
                self.measured.importance,
            )
        )

    def mix(self, num_bytes: int) -> Figures:
        """Write and run a mix of a size."""
        return self.ours(self.measured.mix(num_bytes))

    def ours(self, mix: Mix) -> Figures:
        """Write a copy, run it by our kernels, remove it."""
        copy_folder = WORK / "copy"
        shutil.rmtree(copy_folder, ignore_errors=True)
        copy = prepare_model(
            inspect_folder(str(self.folder)), mix.most_common, str(copy_folder), mix=mix
        )
        plan = msgspec.structs.replace(
            exact_plan(self.folder, context_tokens=CONTEXT_TOKENS),
            store_folder=copy.folder,
            expert_format=copy.expert_format,
            is_exact=False,
            budgets=Budgets(ram_bytes=4 << 30),
        )
        with loaded(plan, Counters()) as parts:
            logits = torch.cat([_all_logits(parts, row) for row in self.ids])
        shutil.rmtree(copy_folder)
        return {"bytes": copy.records_bytes + copy.dense_ram_bytes, "kl": self._kl(logits)}

    def peers(self, process: peer.PeerProcess, kind: int, *, is_pure: bool) -> Figures:
        """Have the peer write a file and run it."""
        # It keeps what it has loaded from a path.
        path = WORK / f"peer-{kind}-{'pure' if is_pure else 'usual'}.gguf"
        process.quantise(self.gguf, path, kind, is_pure=is_pure)
        kl = self._peers_kl(process, path)
        num_bytes = sum(int(each.n_bytes) for each in gguf.GGUFReader(str(path)).tensors)
        path.unlink()
        return {"bytes": num_bytes, "kl": kl}

    def unchanged(self, process: peer.PeerProcess) -> Figures:
        """Run what both sides begin with, in f32."""
        with loaded(exact_plan(self.folder, context_tokens=CONTEXT_TOKENS), Counters()) as parts:
            mine = self._kl(torch.cat([_all_logits(parts, row) for row in self.ids]))
        return {"ours": mine, "peer": self._peers_kl(process, self.gguf)}

    def _peers_kl(self, process: peer.PeerProcess, path: Path) -> float:
        settings = peer.Settings(is_repacked=False, has_flash=False, threads=2, has_f32_kv=True)
        process.load(path, settings, context_tokens=CONTEXT_TOKENS)
        rows = [process.all_logits(list(row), WORK / "logits.npy") for row in self.ids]
        return self._kl(torch.from_numpy(np.concatenate(rows)))

    def _kl(self, logits: torch.Tensor) -> float:
        total, exact = 0.0, self.exact
        for first in range(0, len(exact), 64):
            true = torch.log_softmax(exact[first : first + 64].double(), dim=-1)
            found = torch.log_softmax(logits[first : first + 64].double(), dim=-1)
            total += float((true.exp() * (true - found)).sum())
        return total / len(exact)


def _told(measured: Measured) -> str:
    """Return what each format would spoil, to be kept."""
    parts = [
        [
            [part.name.layer, part.name.expert] if isinstance(part.name, ExpertId) else part.name,
            [[one.format, one.num_bytes, one.error] for one in part.choices],
        ]
        for part in measured.parts
    ]
    return json.dumps(
        {"fixed": measured.fixed_bytes, "least": measured.unavoidable, "parts": parts}
    )


def _read(text: str) -> Measured:
    """Return what was kept."""
    kept = json.loads(text)
    parts = [
        Part(
            name if isinstance(name, str) else ExpertId(*name),
            [Choice(WeightFormat(each), size, error) for each, size, error in choices],
        )
        for name, choices in kept["parts"]
    ]
    return Measured(parts, kept["fixed"], unavoidable=kept["least"])


def _texts() -> list[list[int]]:
    """Return the beginnings of the first long held-out texts of each set."""
    tokenizer = Tokenizer.from_file(str(DEMO / "tokenizer.json"))
    per_set: dict[str, list[list[int]]] = {}
    for each in load_held_out(HELD_OUT, tokenizer):
        kept = per_set.setdefault(each.name, [])
        if len(each.ids) >= NUM_TOKENS and len(kept) < NUM_ROWS_PER_SET:
            kept.append(each.ids[:NUM_TOKENS])
    return [ids for kept in per_set.values() for ids in kept]


@torch.no_grad()
def _logits_by_transformers(folder: Path, ids: list[list[int]]) -> torch.Tensor:
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    model.eval()
    return torch.cat([torch.as_tensor(model(torch.tensor([row])).logits[0]) for row in ids])


def _all_logits(parts: LoadedParts, ids: list[int]) -> torch.Tensor:
    parts.kv.truncate(0)
    parts.experts.begin_step()
    parts.kv.reserve(len(ids))
    hidden = parts.model.forward(ids, 0, parts.kv.layers)
    parts.kv.commit(ids)
    return parts.model.logits(hidden).clone()


def comparisons(bench: Bench, process: peer.PeerProcess | None, *, is_quick: bool) -> Iterator[Row]:
    """Yield the rows of the table, those of the peer only with its process."""

    def beside(name: str, theirs: Figures, said: str) -> Row:
        size = int(theirs["bytes"])
        mine = bench.figures(f"mix as large as {name}", functools.partial(bench.mix, size))
        return _row(f"a mix of the size of {said}", mine, theirs, is_strict=True)

    def alone(name: str, weight_format: WeightFormat) -> Figures:
        return bench.figures(f"{name} alone", functools.partial(bench.alone, weight_format))

    for name, weight_format in UNIFORM.items():
        yield beside(name, alone(name, weight_format), f"{name} alone, which is the peer")
        if is_quick:
            return
    for name, larger in BETWEEN.items():
        lower = alone(name, WeightFormat(name))
        size = int(lower["bytes"] + alone(larger, WeightFormat(larger))["bytes"]) // 2
        said = f"between {name} and {larger}"
        mine = bench.figures(f"mix {said}", functools.partial(bench.mix, size))
        yield _row(f"a mix {said}, beside {name} alone", mine, lower, is_strict=True)
    if process is None:
        print("the rows of llama.cpp are left out")
        return
    before = bench.figures("both in f32", functools.partial(bench.unchanged, process))
    yield reporting.row(
        what="KL, thousandths: the f32 model by either side's kernels",
        ours=round(1000 * before["ours"], 4),
        peer=round(1000 * before["peer"], 4),
        target=f"below {1000 * MAX_UNCHANGED_KL} on both sides",
        is_reached=max(before.values()) < MAX_UNCHANGED_KL,
    )
    if not max(before.values()) < MAX_UNCHANGED_KL:
        print("the sides do not compute the same model: nothing is compared with the peer")
        return
    for name, kind in PEERS.items():
        theirs = bench.figures(
            f"llama.cpp {name}", functools.partial(bench.peers, process, kind, is_pure=False)
        )
        yield beside(name, theirs, f"llama.cpp's {name}")
    for ours, (weight_format, name, kind) in EQUAL.items():
        theirs = bench.figures(
            f"llama.cpp {name} alone", functools.partial(bench.peers, process, kind, is_pure=True)
        )
        yield _row(f"{ours} and llama.cpp's {name}, alone", alone(ours, weight_format), theirs)


def _row(what: str, mine: Figures, theirs: Figures, *, is_strict: bool = False) -> Row:
    sizes = f"{mine['bytes'] / 1e6:.1f} and {theirs['bytes'] / 1e6:.1f} MB"
    is_lower, is_equal = mine["kl"] < theirs["kl"], mine["kl"] == theirs["kl"]
    # The same size too: one format was chosen, and this is its copy.
    is_same_copy = mine == theirs
    return reporting.row(
        what=f"KL, thousandths: {what} ({sizes})",
        ours=round(1000 * mine["kl"], 4),
        peer=round(1000 * theirs["kl"], 4),
        target="lower, or the same copy where a mix is not worth it" if is_strict else "not higher",
        is_reached=is_lower or (is_same_copy if is_strict else is_equal),
    )


def main() -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one comparison; nothing is written")
    parser.add_argument("--fresh", action="store_true", help="forget what was measured before")
    parser.add_argument("--kept", action="store_true", help="write what is known; measure nothing")
    parser.add_argument("--most", type=int, default=0, help="figures in one run; 0: all")
    parser.add_argument("--without-peer", action="store_true", help="leave out llama.cpp's rows")
    options = parser.parse_args()
    if options.fresh:
        shutil.rmtree(WORK, ignore_errors=True)
    bench = Bench()
    bench.most = options.most
    bench.is_kept_only = options.kept
    changed = bench.figures("transformed", bench.write)["difference"]
    if changed >= MAX_DIFFERENCE:
        sys.exit(f"the transformed model differs: a logit by {changed}")
    rows = [
        reporting.row(
            what="largest change of a logit by the transform",
            ours=changed,
            target=f"below {MAX_DIFFERENCE}",
            is_reached=True,
        )
    ]
    with contextlib.ExitStack() as stack:
        process = None
        if not options.without_peer:
            process = stack.enter_context(peer.PeerProcess(peer.environment("native")))
        try:
            for row in comparisons(bench, process, is_quick=options.quick):
                print(row["what"], row["ours"], row["peer"], row["is_reached"], flush=True)
                rows.append(row)
        except EnoughError:
            print("as many figures as were asked for; the rest comes with the next run")
    if options.quick:
        return
    path = reporting.write_result(
        "mix",
        rows,
        peer=peer.PACKAGE,
        num_positions=sum(map(len, bench.ids)),
        calibrated_tokens=CALIBRATED_TOKENS,
    )
    print(f"written: {path.name}")


if __name__ == "__main__":
    main()
