"""A prompt's pieces as ids, where the tokenizer does not play along."""

import pytest
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode
from runtime.tokenizer.encoder import PromptEncoder, Words
from runtime.tokenizer.placing import Span

KNOWN = "hello"


def whole_words() -> Tokenizer:
    """A tokenizer of whole words, whose token for unknown ones is a control token."""
    vocabulary = {"[UNK]": 0, KNOWN: 1}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens([AddedToken("[UNK]", special=True)])
    return tokenizer


def test_vocabulary_that_takes_every_unknown_word_for_a_control_token_is_refused() -> None:
    encoder = PromptEncoder(whole_words())
    text = f"{KNOWN} stranger"
    assert encoder.encode(KNOWN, [Words(Span(0, len(KNOWN)))]) == [1]
    with pytest.raises(LarderError) as caught:
        encoder.encode(text, [Words(Span(0, len(text)))])
    assert caught.value.code is ErrorCode.TOKENIZER_INVALID
    assert "ordinary characters" in str(caught.value.parameters["reason"])
