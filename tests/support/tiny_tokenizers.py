"""Small tokenizers of the kinds that published models use, written as model folders."""

import json
from collections.abc import Iterable
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

CHAT_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|start_of_role|>",
    "<|end_of_role|>",
    "<|end_of_text|>",
    "<|user|>",
    "<|assistant|>",
    "<|system|>",
    "<|end|>",
    "[INST]",
    "[/INST]",
    "<s>",
    "</s>",
    "<｜User｜>",
    "<｜Assistant｜>",
    "<｜end▁of▁sentence｜>",
)
PLAIN_TAGS = ("<think>", "</think>")
STRIPPING = ("<|end|>", "<|user|>")
"""Tokens that swallow the white space after them, as in one published family."""
NOT_SPECIAL = ("<｜User｜>", "<｜Assistant｜>")
"""Control tokens that their authors did not mark as special."""
WORDS = ("the", "cat", "Paris", "is", "user", "assistant", "system", "hello", "world")


def byte_level(words: Iterable[str] = WORDS) -> Tokenizer:
    """Return a byte-level BPE tokenizer with merges that make the words single tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {character: index for index, character in enumerate(alphabet)}
    merges: list[tuple[str, str]] = []
    for form in ("ĊĊ", *words, *("Ġ" + word for word in words)):
        _add_merges(form, vocabulary, merges)
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    _add_chat_tokens(tokenizer)
    return tokenizer


def sentencepiece_like(words: Iterable[str] = WORDS, *, is_legacy: bool = False) -> Tokenizer:
    """Return a BPE tokenizer with ▁ for spaces and byte tokens for unknown characters.

    ``is_legacy`` puts the space before every section, otherwise before the first one only.
    """
    names = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    characters = "▁\n abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:;?!<>|/_[]é"
    vocabulary = {name: index for index, name in enumerate([*names, *characters])}
    merges: list[tuple[str, str]] = []
    for form in (*words, *("▁" + word for word in words)):
        _add_merges(form, vocabulary, merges)
    vocabulary |= {"</s>": len(vocabulary)}
    tokenizer = Tokenizer(
        models.BPE(
            vocab=vocabulary, merges=merges, byte_fallback=True, unk_token="<unk>", fuse_unk=True
        )
    )
    if is_legacy:
        tokenizer.normalizer = normalizers.Sequence(
            [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
        )
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    _add_chat_tokens(tokenizer)
    return tokenizer


def id_of(tokenizer: Tokenizer, token: str) -> int:
    """Return the id of a token that exists."""
    token_id = tokenizer.token_to_id(token)
    assert token_id is not None, token
    return token_id


def write_folder(
    folder: Path,
    tokenizer: Tokenizer,
    template: str | None,
    *,
    bos_token: str = "<s>",
    eos_token: str = "<|im_end|>",
) -> Path:
    """Write the files that a chat tokenizer is loaded from."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings: dict[str, object] = {
        "bos_token": {"content": bos_token, "special": True},
        "eos_token": eos_token,
    }
    if template is not None:
        settings["chat_template"] = template
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    eos_id = tokenizer.token_to_id(eos_token)
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [eos_id, 0]}))
    (folder / "config.json").write_text(json.dumps({"eos_token_id": eos_id}))
    return folder


def _add_merges(word: str, vocabulary: dict[str, int], merges: list[tuple[str, str]]) -> None:
    for end in range(2, len(word) + 1):
        if word[:end] not in vocabulary:
            vocabulary[word[:end]] = len(vocabulary)
            merges.append((word[: end - 1], word[end - 1]))


def _add_chat_tokens(tokenizer: Tokenizer) -> None:
    for content in (*CHAT_TOKENS, *PLAIN_TAGS):
        token = AddedToken(content, rstrip=content in STRIPPING, normalized=False)
        if content in (*NOT_SPECIAL, *PLAIN_TAGS):
            tokenizer.add_tokens([token])
        else:
            tokenizer.add_special_tokens([token])
