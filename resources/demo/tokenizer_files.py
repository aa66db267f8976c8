"""Tokenizer files of the demo model, rebuilt from the vocabulary that the GGUF carries."""

from __future__ import annotations

from typing import Any

from resources.demo.gguf_source import Vocabulary


def tokenizer_json(vocabulary: Vocabulary) -> dict[str, Any]:
    """Return the content of tokenizer.json: byte-level BPE behind the 'smollm' splitting.

    That splitting cuts every digit off first and then applies GPT-2's expression.
    """
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": token_id,
                "content": vocabulary.tokens[token_id],
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for token_id in vocabulary.control_ids
        ],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Digits", "individual_digits": True},
                {
                    "type": "ByteLevel",
                    "add_prefix_space": False,
                    "trim_offsets": True,
                    "use_regex": True,
                },
            ],
        },
        "post_processor": None,
        "decoder": {
            "type": "ByteLevel",
            "add_prefix_space": True,
            "trim_offsets": True,
            "use_regex": True,
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: token_id for token_id, token in enumerate(vocabulary.tokens)},
            "merges": [list(merge.split(" ", 1)) for merge in vocabulary.merges],
        },
    }


def tokenizer_config(vocabulary: Vocabulary, context_tokens: int) -> dict[str, Any]:
    """Return the content of tokenizer_config.json, chat template included."""
    return {
        "add_prefix_space": False,
        "added_tokens_decoder": {
            str(token_id): {
                "content": vocabulary.tokens[token_id],
                "lstrip": False,
                "normalized": False,
                "rstrip": False,
                "single_word": False,
                "special": True,
            }
            for token_id in vocabulary.control_ids
        },
        "bos_token": vocabulary.tokens[vocabulary.bos_token_id],
        "chat_template": vocabulary.chat_template,
        "clean_up_tokenization_spaces": False,
        "eos_token": vocabulary.tokens[vocabulary.eos_token_id],
        "model_max_length": context_tokens,
        "pad_token": vocabulary.tokens[vocabulary.padding_token_id],
        "tokenizer_class": "GPT2Tokenizer",
        "unk_token": vocabulary.tokens[vocabulary.unknown_token_id],
        "vocab_size": len(vocabulary.tokens),
    }
