"""``docs/models.md``: which models are read, and how exactly they are computed.

``python -m tests.support.models_page`` measures and writes the page. Tiny random checkpoints of
each family go through the engine and through transformers; what is known of published models comes
from their configs.
"""

import contextlib
import dataclasses
import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from unittest import mock

import torch

from runtime.inspect.families.registry import FAMILIES
from runtime.inspect.folder import inspect_folder
from runtime.kernels.base import Kernels
from runtime.kernels.dispatch import choose_kernels
from runtime.kernels.reference import ReferenceKernels
from runtime.protocol.errors import ErrorCode
from tests.support.level_folders import STATED
from tests.support.packed_folders import write_packed, write_plain
from tests.support.tiny_checkpoints import reference_model, tiny_checkpoint
from tests.support.tiny_variants import VARIANTS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "models.md"
CONFIGS = ROOT / "tests" / "golden" / "model-configs"
_PLAIN = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
_EIGHT_BITS = "fp8"
_INT4, _MXFP4 = "int4", "mxfp4"
_LEVELS = ("gptq", "awq")
FORMATS = (*_PLAIN, _EIGHT_BITS, _INT4, *_LEVELS, _MXFP4)
_KEPT = (*_LEVELS, _MXFP4)
"""Whose experts stay in few bits."""
NUM_PROMPT_TOKENS = 40
NUM_GREEDY_TOKENS = 64
SEEDS = (0, 1, 2)
_NONE = "–"

_HEAD = f"""# Models

Written by `python -m tests.support.models_page`; a test keeps it complete.

## Families

A family is what one `model_type` stands for. For each, tiny random checkpoints with the structure
of the published ones, {len(SEEDS)} of different seeds, are stored in every format that is read, and
computed by Larder and by transformers, both in fp32: a prompt of {NUM_PROMPT_TOKENS} tokens in
pieces, then {NUM_GREEDY_TOKENS} tokens one by one, each the likeliest. A cell has the greatest
difference between two logits, and how many of the {NUM_GREEDY_TOKENS} tokens are those that
transformers takes. Weights in fp8 have a scale for each block, those in int4 (compressed-tensors),
of GPTQ (symmetric), AWQ and in MXFP4 have four bits; transformers computes what they stand for.
Experts of GPTQ, AWQ and in MXFP4 stay in few bits, exactly as published; the kernels round what
they are multiplied with to eight bits, which is left out here: the figures tell of the weights.

"""
_BETWEEN = f"""
{_NONE}: not read so. Experts that are stacked in one tensor are read as plain numbers, and in MXFP4
for `gpt_oss` alone.
Of `gemma4`, `kimi_k25` and `qwen3_vl_moe` the language model is computed, pictures are not read.
Prepared copies in fewer bits are rounded, and [weight formats](formats.md) says how.

## Published models

Configs of these are held to what is known of them: layers, experts, parameters, bytes of an expert,
numbers kept of each position. What is refused is named when the folder is dropped, with what to
choose instead.

"""


@dataclasses.dataclass(frozen=True, slots=True)
class Parity:
    """How near a family comes to transformers in one stored format."""

    greatest_difference: str
    """In powers of ten, so that the page does not change with the machine more than it must."""
    num_equal_tokens: int

    def __str__(self) -> str:
        return f"{self.greatest_difference}, {self.num_equal_tokens}/{NUM_GREEDY_TOKENS}"


Table = Mapping[str, Mapping[str, Parity | None]]
"""By family and format; None: there is nothing to compare with."""


def family_names() -> list[str]:
    """Every family by the name that its files have."""
    return sorted({family.model_type for family in FAMILIES.values()})


def render(table: Table) -> str:
    """Return the page."""
    rows = [
        (f"`{name}`", *(str(cell) if cell else _NONE for cell in table[name].values()))
        for name in family_names()
    ]
    families = _table(("`model_type`", *FORMATS), rows)
    return _HEAD + families + _BETWEEN + _table(("model", "is read as"), _published())


def parse(page: str) -> Table:
    """Return the figures of a page."""
    table: dict[str, dict[str, Parity | None]] = {}
    cell = rf"(?:(\S+), (\d+)/{NUM_GREEDY_TOKENS}|{_NONE})"
    cells = r" \| ".join([cell] * len(FORMATS))
    row = re.compile(rf"\| `(\w+)` \| {cells} \|")
    for found in row.finditer(page):
        name, *figures = found.groups()
        pairs = zip(figures[::2], figures[1::2], strict=True)
        read = [Parity(size, int(count)) if size else None for size, count in pairs]
        table[name] = dict(zip(FORMATS, read, strict=True))
    return table


def _published() -> list[tuple[str, str]]:
    """Return each published model with what its config is taken for."""
    paths = sorted(CONFIGS.glob("*.json"), key=lambda path: path.name.lower())
    return [
        (path.name.removesuffix(".config.json").replace("--", "/"), _taken_for(path))
        for path in paths
    ]


def _taken_for(path: Path) -> str:
    """Return what a folder with nothing but this config is told to be."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copyfile(path, Path(folder, "config.json"))
        report = inspect_folder(folder).report
    for problem in report.problems:
        if problem.code is ErrorCode.ARCHITECTURE_UNSUPPORTED:
            return f"refused: `{problem.parameters['architecture']}`"
        if problem.code is ErrorCode.QUANTIZATION_UNSUPPORTED:
            return f"`{report.model_type}`, refused as {problem.parameters['method']}"
    return f"`{report.model_type}`"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def measure(root: Path) -> Table:
    """Return the figures of all families; checkpoints are made below ``root``."""
    return {
        name: {each: _worst(root, name, each) if name in VARIANTS else None for each in FORMATS}
        for name in family_names()
    }


def _worst(root: Path, name: str, weight_format: str) -> Parity | None:
    """Return the worst of all seeds, None if the family's tensors cannot have the format."""
    measured = []
    for seed in SEEDS:
        folders = _folders(root, name, weight_format, seed)
        if folders is None:
            return None
        with _plain_activations(weight_format):
            kernels = ReferenceKernels() if weight_format in _KEPT else choose_kernels()
            measured.append(_compare(*folders, seed, kernels))
    difference = max(each for each, _ in measured)
    return Parity(f"{difference:.0e}", min(count for _, count in measured))


def _folders(root: Path, name: str, weight_format: str, seed: int) -> tuple[Path, Path] | None:
    """Return a checkpoint in a format and one for transformers, None if nobody has such."""
    if weight_format != _MXFP4:
        return _stored(tiny_checkpoint(root, name, seed=seed), weight_format)
    if name != "gpt_oss":
        return None
    packed = write_packed(root / f"packed-{seed}", seed)
    return packed, write_plain(root / f"unpacked-{seed}", seed)


def _stored(folder: Path, weight_format: str) -> tuple[Path, Path] | None:
    """Return a copy stored in a format, and one that transformers reads with the same weights."""
    from safetensors.torch import load_file, save_file

    from tests.support.eight_bit_checkpoints import both_folders
    from tests.support.int4_checkpoints import both_int4_folders
    from tests.support.level_checkpoints import both_level_folders

    tensors = load_file(folder / "model.safetensors")
    copy = folder.with_name(f"{folder.name}-{weight_format}")
    if weight_format not in _PLAIN:
        if any(tensor.ndim == 3 and "vision" not in name for name, tensor in tensors.items()):
            return None
        if weight_format == _EIGHT_BITS:
            return both_folders(folder, copy)
        if weight_format == _INT4:
            return both_int4_folders(folder, copy)
        return both_level_folders(folder, copy, STATED[weight_format])
    shutil.copytree(folder, copy)
    dtype = _PLAIN[weight_format]
    save_file(
        {name: tensor.to(dtype) for name, tensor in tensors.items()}, copy / "model.safetensors"
    )
    return copy, copy


@contextlib.contextmanager
def _plain_activations(weight_format: str) -> Iterator[None]:
    """Multiply grouped weights with activations as they are, which no kernel does."""
    if weight_format not in _KEPT:
        yield
        return
    with mock.patch("runtime.kernels.reference.as_input", lambda weight_format, x: x):
        yield


def _compare(folder: Path, reference: Path, seed: int, kernels: Kernels) -> tuple[float, int]:
    """Return the greatest difference of logits, and how many likeliest tokens are the same."""
    from tests.support.model_bench import open_bench

    generator = torch.Generator().manual_seed(seed)
    shape = (NUM_PROMPT_TOKENS,)
    config = json.loads((folder / "config.json").read_text())
    num_words: int = config.get("text_config", config)["vocab_size"]
    ids: list[int] = torch.randint(3, num_words, shape, generator=generator).tolist()
    with open_bench(folder, kernels) as bench:
        rows = [bench.feed_in_chunks(ids, [11, 2])]
        for _ in range(NUM_GREEDY_TOKENS):
            ids.append(int(rows[-1][-1].argmax()))
            rows.append(bench.feed(ids[-1:]))
    ours = torch.cat(rows)
    with torch.no_grad():
        theirs = reference_model(reference)(torch.tensor([ids])).logits[0]
    # As long as all tokens before agree, the likeliest next one is the one that is taken.
    taken = theirs[NUM_PROMPT_TOKENS - 1 : -1].argmax(dim=-1)
    is_equal = (taken == torch.tensor(ids[NUM_PROMPT_TOKENS:])).tolist()
    num_equal = NUM_GREEDY_TOKENS if all(is_equal) else is_equal.index(False)
    return float((ours - theirs).abs().max()), num_equal


if __name__ == "__main__":
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(render(measure(Path(folder))), encoding="utf-8")
