"""`make bench-calibration`: whether calibrated models route as recorded, here and in llama.cpp.

For each shape the sequence is fed to the Hugging Face folder by our engine and to the GGUF file by
the peer, and the experts of each token are compared with the trace, and with each other. Beside
that it is told how far the repeated part is from its whole trace. Files are written below build/
one shape after the other and removed. The peer reads DeepSeek-V2-Lite with all of its 27 layers
alone: it is compared with narrow ones, and `--deepseek` adds the true widths, 17 GB on the drive.

    python benchmarks/calibration.py --keep FOLDER --shape qwen3-30b-a3b --layers 8

writes one model into a folder and keeps it; `--vocabulary` and `--tokens` change it further.
"""

from __future__ import annotations

import argparse
import dataclasses
import resource
import sys
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
import peer
from reporting import load_averages, row, write_result

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.calibrated.feeding import routed  # noqa: E402
from benchmarks.calibrated.gguf_file import write_gguf  # noqa: E402
from benchmarks.calibrated.hugging_face import write_folder  # noqa: E402
from benchmarks.calibrated.likeness import (  # noqa: E402
    MAX_POINTS,
    beginning,
    points_apart,
    typical_part,
)
from benchmarks.calibrated.model import CalibratedModel  # noqa: E402
from benchmarks.calibrated.shapes import SHAPES, TRACES  # noqa: E402
from runtime.protocol.values import WeightFormat  # noqa: E402
from runtime.simulate.trace_files import read_trace  # noqa: E402
from tests.support.hand_made_plans import exact_plan, prepared_plan  # noqa: E402

LAYERS = {"qwen3-30b-a3b": 8, "gpt-oss-20b": 4, "qwen3-235b-a22b": 2}
DEEPSEEK = "deepseek-v2-lite"
NARROW = {
    "hidden_size": 512,
    "moe_intermediate_size": 64,
    "intermediate_size": 96,
    "vocab_size": 1024,
}
"""Of DeepSeek-V2-Lite, whose sequence is then of 512 tokens."""
VOCABULARY = 32_000
MAX_TOKENS = 2048
FED_TOKENS = 96
"""Tokens that both sides are fed; the sequence that is like the whole trace has 2048."""


def main() -> None:
    """Keep one model, or compare all and write the result."""
    parser = argparse.ArgumentParser(description="calibrated models, here and in llama.cpp")
    parser.add_argument("--keep", type=Path, help="a folder for one model, which is kept")
    parser.add_argument("--shape", choices=sorted(SHAPES), default="qwen3-30b-a3b")
    parser.add_argument("--layers", type=int, help="layers of the model that is kept")
    parser.add_argument("--vocabulary", type=int, help="tokens of its vocabulary")
    parser.add_argument("--tokens", type=int, default=MAX_TOKENS, help="tokens of its sequence")
    parser.add_argument("--deepseek", action="store_true", help="compare DeepSeek-V2-Lite too")
    wishes = parser.parse_args()
    if wishes.keep:
        shape = SHAPES[wishes.shape].changed(wishes.layers, wishes.vocabulary)
        write_both(wishes.keep, CalibratedModel(shape, num_tokens=wishes.tokens))
        print(wishes.keep)
        return
    shapes = {name: SHAPES[name].changed(number, VOCABULARY) for name, number in LAYERS.items()}
    deepseek = SHAPES[DEEPSEEK]
    config = {**deepseek.config, **NARROW}
    shapes[f"{DEEPSEEK}, narrow"] = dataclasses.replace(deepseek, config=config)
    if wishes.deepseek:
        shapes[DEEPSEEK] = deepseek.changed(vocabulary=VOCABULARY)
    rows: list[dict[str, object]] = []
    (ROOT / "build").mkdir(exist_ok=True)
    for name, shape in shapes.items():
        with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
            model = CalibratedModel(shape, num_tokens=min(MAX_TOKENS, shape.hidden))
            rows += compare(Path(folder), name, model)
    for name in SHAPES:
        rows += likeness_rows(name)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows.append(row(what="most memory of writing and feeding, MiB", ours=round(peak_mb)))
    print(write_result("calibration", rows, load_averages=load_averages(), fed_tokens=FED_TOKENS))


def write_both(folder: Path, model: CalibratedModel) -> None:
    """Write a model for both sides."""
    write_folder(folder / "folder", model)
    write_gguf(folder / "peer.gguf", model)


def compare(folder: Path, name: str, model: CalibratedModel) -> list[dict[str, object]]:
    """Return the lines of one shape."""
    write_both(folder, model)
    fed = model.sequence[:FED_TOKENS]
    if model.is_mxfp4:
        plan = prepared_plan(folder / "folder", folder / "copy", WeightFormat.MXFP4)
    else:
        plan = exact_plan(folder / "folder", num_slots=2 * model.routing.trace.top_k)
    ours, likeliest = routed(plan, fed, folder / "routing")
    with peer.PeerProcess(peer.environment("native")) as process:
        settings = peer.Settings(is_repacked=False, has_flash=False, threads=2)
        process.load(folder / "peer.gguf", settings, is_watched=True)
        found, follows = process.routes(fed)
    theirs = np.array(found).transpose(1, 0, 2)
    recorded = model.routing.trace.ids[:FED_TOKENS]
    what = f"{name}, {model.shape.num_layers} layers: share of tokens and layers with the experts"
    shares = {
        f"{what} of the recording": (equal(ours.ids, recorded), equal(theirs, recorded)),
        f"{what} of the other side": (equal(ours.ids, theirs),) * 2,
    }
    rows = [
        row(
            what=told, ours=round(mine, 4), peer=round(other, 4), target="1",
            is_reached=mine == other == 1,
        )
        for told, (mine, other) in shares.items()
    ]  # fmt: skip
    rows.append(
        row(
            what=f"{name}: the likeliest token after {FED_TOKENS}", ours=likeliest, peer=follows,
            target=str(FED_TOKENS), is_reached=likeliest == follows == FED_TOKENS,
        )
    )  # fmt: skip
    for each in rows:
        print(f"{each['what']}: {each['ours']} {each['peer']}", flush=True)
    return rows


def likeness_rows(name: str) -> list[dict[str, object]]:
    """Return the lines that tell how far the part that a shape repeats is from its trace."""
    rows: list[dict[str, object]] = []
    whole = read_trace(TRACES / SHAPES[name].trace)
    step = range(0, whole.num_layers, 3)
    part = typical_part(whole, MAX_TOKENS)
    whole = beginning(whole)
    for mark, points in points_apart(part.only_layers(step), whole.only_layers(step)).items():
        rows.append(
            row(
                what=f"{name}: {mark}, points from the trace", ours=round(points, 2),
                target=f"within {MAX_POINTS:.0f}", is_reached=abs(points) <= MAX_POINTS,
            )
        )  # fmt: skip
    for each in rows:
        print(f"{each['what']}: {each['ours']}", flush=True)
    return rows


def equal(one: npt.NDArray[np.generic], other: npt.NDArray[np.generic]) -> float:
    """Return in which share of tokens and layers the same experts were chosen."""
    return float((np.sort(one, axis=2) == np.sort(other, axis=2)).all(axis=2).mean())


if __name__ == "__main__":
    main()
