"""Tests of the rebuilt tokenizer on a small vocabulary with known ids."""

from __future__ import annotations

import json

import pytest
from tokenizers import Tokenizer

from resources.demo.gguf_source import Vocabulary
from resources.demo.tokenizer_files import tokenizer_config, tokenizer_json

_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
_TOKENS += [*"abcdefghijklmnopqrstuvwxyz0123456789.", "Ġ", "Ċ", "Ã", "©"]
_MERGES = ["h e", "l l", "he ll", "hell o", "Ġ w", "o r", "Ġw or", "Ã ©", "1 2"]
_TOKENS += [merge.replace(" ", "") for merge in _MERGES]


@pytest.fixture(name="vocabulary")
def _vocabulary() -> Vocabulary:
    return Vocabulary(
        tokens=_TOKENS,
        control_ids=[0, 1, 2],
        merges=_MERGES,
        bos_token_id=1,
        eos_token_id=2,
        unknown_token_id=0,
        padding_token_id=2,
        chat_template="{{ messages }}",
    )


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("hello world", ["hello", "Ġwor", "l", "d"]),
        ("12", ["1", "2"]),  # digits never join, though a merge for them exists
        (" 12", ["Ġ", "1", "2"]),
        ("hello  world", ["hello", "Ġ", "Ġwor", "l", "d"]),
        ("é", ["Ã©"]),
        ("<|im_start|>a\n<|im_end|>", ["<|im_start|>", "a", "Ċ", "<|im_end|>"]),
    ],
)
def test_tokenizer_splits_as_the_smollm_rule_says(
    vocabulary: Vocabulary, text: str, tokens: list[str]
) -> None:
    tokenizer = Tokenizer.from_str(json.dumps(tokenizer_json(vocabulary)))
    encoded = tokenizer.encode(text)
    assert encoded.tokens == tokens
    assert tokenizer.decode(encoded.ids, skip_special_tokens=False) == text


def test_tokenizer_config_names_special_tokens_by_their_text(vocabulary: Vocabulary) -> None:
    config = tokenizer_config(vocabulary, 8192)
    assert (config["bos_token"], config["eos_token"]) == ("<|im_start|>", "<|im_end|>")
    assert config["chat_template"] == vocabulary.chat_template
    assert config["model_max_length"] == 8192
