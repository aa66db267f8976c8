"""The tokenizer of a calibrated model: words that are its sequence, and bytes."""

import json
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

_NUM_BYTES = 256
END = _NUM_BYTES
"""Number of the end of a turn behind the words."""
_NUM_BEHIND = END + 1
_END_TEXT = "<|end|>"
_TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"


def text_of(token_ids: list[int]) -> str:
    """Return the text that is encoded as these tokens of the sequence."""
    return "".join(_word(token_id) for token_id in token_ids)


def write_tokenizer(folder: Path, num_words: int, vocabulary: int) -> None:
    """Write the files; raise ``ValueError`` if words, bytes and the end are more than there are."""
    if num_words + _NUM_BEHIND > vocabulary:
        raise ValueError(
            f"{num_words} tokens of a sequence and {_NUM_BEHIND} others, of {vocabulary} in all"
        )
    vocabulary_of = {_word(number): number for number in range(num_words)}
    vocabulary_of |= {letter: num_words + byte for byte, letter in enumerate(_byte_letters())}
    vocabulary_of[_END_TEXT] = num_words + END
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary_of, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens(
        [AddedToken(_word(number), normalized=False) for number in range(num_words)]
    )
    tokenizer.add_special_tokens([_END_TEXT])
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": _END_TEXT,
        "chat_template": _TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")


def _word(token_id: int) -> str:
    return f" w{token_id:04d}"


def _byte_letters() -> list[str]:
    """Return the letter that stands for each byte, as byte-level vocabularies have it."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(_NUM_BYTES, 2 * _NUM_BYTES))
    return [chr(byte if byte in shown else next(others)) for byte in range(_NUM_BYTES)]
