"""The texts that clustering and routers were fitted on; none of them is held out.

- chats that the dense model writes with itself (``chats.py``), questions invented by it;
- "Pride and Prejudice", characters 20,000 to 60,000 (fit) and 70,000 to 150,000 (distillation) of
  the shared text file; its last 24,000 characters are held out;
- source files of the interpreter's standard library, named below;
- GSM8K test rows 0 to 59 with their answers and HumanEval prompts 0 to 59; GSM8K rows from 184 and
  HumanEval prompts from 148 are held out, as are all MT-bench questions.
"""

from __future__ import annotations

import json
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer

BLOCK_TOKENS = 400
FIT_PROSE_BLOCKS = 12
_FIT_CODE = ("argparse.py", "json/decoder.py", "textwrap.py", "heapq.py")
_DISTIL_CODE = ("csv.py", "copy.py", "ast.py", "difflib.py", "pathlib.py", "random.py")
_CODE_BLOCKS_PER_FILE = 2
_NUM_TASK_ROWS = 60
_PROSE = "text/english-prose-austen.txt"

Blocks = list[list[int]]


def cut_blocks(ids: Sequence[int]) -> Blocks:
    """Return the whole blocks of a run of ids, leaving the rest."""
    last = len(ids) - BLOCK_TOKENS
    return [list(ids[at : at + BLOCK_TOKENS]) for at in range(0, last + 1, BLOCK_TOKENS)]


def fit_blocks(tokenizer: Tokenizer, data: Path) -> Blocks:
    """Return prose and code for clustering and ridge routers."""
    prose = (data / _PROSE).read_text("utf-8")
    blocks = cut_blocks(tokenizer.encode(prose[20_000:60_000]).ids)[:FIT_PROSE_BLOCKS]
    for name in _FIT_CODE:
        code = _library_text(name)[2_000:12_000]
        blocks += cut_blocks(tokenizer.encode(code).ids)[:_CODE_BLOCKS_PER_FILE]
    return blocks


def distil_blocks(tokenizer: Tokenizer, data: Path) -> Blocks:
    """Return prose, code and tasks for distillation."""
    prose = (data / _PROSE).read_text("utf-8")
    blocks = cut_blocks(tokenizer.encode(prose[70_000:150_000]).ids)
    for name in _DISTIL_CODE:
        blocks += cut_blocks(tokenizer.encode(_library_text(name)[1_000:9_000]).ids)
    end_id = 0
    tasks: list[int] = []
    for row in _rows(data / "prompts" / "gsm8k-test-200.jsonl"):
        tasks += [*tokenizer.encode(f"{row['question']}\n{row['answer']}\n").ids, end_id]
    for row in _rows(data / "prompts" / "humaneval-164-prompts.jsonl"):
        tasks += [*tokenizer.encode(row["prompt"]).ids, end_id]
    return blocks + cut_blocks(tasks)


def _rows(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()[:_NUM_TASK_ROWS]]


def _library_text(name: str) -> str:
    return (Path(sysconfig.get_path("stdlib")) / name).read_text("utf-8")
