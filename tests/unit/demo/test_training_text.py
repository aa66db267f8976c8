"""Tests that what measures the demo model has not taught it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from resources.demo.derive import training_text
from resources.demo.derive.measure import HeldOutRow
from resources.demo.derive.overlap import RUN_TOKENS, overlapping_rows

_NUM_CHARACTERS = 300_000
_HELD_OUT_CHARACTERS = 24_000
_WORD_CHARACTERS = 10
_TASKS = {"gsm8k-test-200": ("gsm", 200, 184), "humaneval-164-prompts": ("human", 164, 148)}
"""Of each file the word that marks its rows, their number, and the first that is held out."""


def _prose_words() -> list[str]:
    """A word for every ten characters, which tells where it stands."""
    return [f"w{at}" for at in range(0, _NUM_CHARACTERS, _WORD_CHARACTERS)]


@pytest.fixture(scope="module", name="tokenizer")
def _tokenizer() -> Tokenizer:
    """An id for every word, so that ids tell where a block comes from."""
    words = _prose_words()
    words += [f"{key}{row}" for key, num_rows, _ in _TASKS.values() for row in range(num_rows)]
    vocabulary = {word: index for index, word in enumerate(["?", *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return tokenizer


@pytest.fixture(scope="module", name="data")
def _data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder laid out like the one that derivation reads, every place in it recognisable."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "text").mkdir()
    (folder / "prompts").mkdir()
    prose = "".join(word.ljust(_WORD_CHARACTERS) for word in _prose_words())
    (folder / "text" / "english-prose-austen.txt").write_text(prose, encoding="utf-8")
    for name, (key, num_rows, _) in _TASKS.items():
        said = [" ".join([f"{key}{row}"] * 40) for row in range(num_rows)]
        rows = [json.dumps({"question": text, "answer": text, "prompt": text}) for text in said]
        (folder / "prompts" / f"{name}.jsonl").write_text("\n".join(rows), encoding="utf-8")
    return folder


def _words(tokenizer: Tokenizer, data: Path) -> set[str]:
    """Every word that clustering, routers or distillation read."""
    blocks = training_text.fit_blocks(tokenizer, data)
    blocks += training_text.distil_blocks(tokenizer, data)
    return {str(tokenizer.id_to_token(each)) for block in blocks for each in block}


def test_training_reads_no_row_and_no_prose_that_is_held_out(
    tokenizer: Tokenizer, data: Path
) -> None:
    words = _words(tokenizer, data)
    places = [int(word.removeprefix("w")) for word in words if word.startswith("w")]
    assert min(places) >= 20_000
    assert max(places) < _NUM_CHARACTERS - _HELD_OUT_CHARACTERS
    for key, _, first_held_out in _TASKS.values():
        rows = [int(word.removeprefix(key)) for word in words if word.startswith(key)]
        assert rows
        assert max(rows) < first_held_out


def test_overlap_of_a_copied_run_is_found_wherever_it_stands() -> None:
    held_out = [HeldOutRow("a", list(range(100)), 1), HeldOutRow("b", list(range(200, 300)), 1)]
    copied = [7, 7, *range(240, 240 + RUN_TOKENS), 7]
    assert [row.name for row in overlapping_rows([copied], held_out)] == ["b"]


def test_overlap_of_a_shorter_run_and_of_other_texts_is_none() -> None:
    held_out = [HeldOutRow("a", list(range(100)), 1)]
    shorter = [7, 7, *range(40, 40 + RUN_TOKENS - 1), 7]
    assert overlapping_rows([shorter, [], list(range(500, 700))], held_out) == []
