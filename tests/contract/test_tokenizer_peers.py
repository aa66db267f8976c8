"""Real vocabularies give the ids and texts that transformers gives.

``LARDER_MORE_MODELS`` and ``LARDER_MORE_TEXTS`` name folders with further model folders and texts.
"""

import argparse
import os
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from runtime.protocol.chat import ChatMessage, Role
from runtime.tokenizer.chat import ChatTokenizer

DEMO = Path(__file__).parents[2] / "build" / "demo" / "larder-demo"
MORE_MODELS = os.environ.get("LARDER_MORE_MODELS")
MORE_TEXTS = os.environ.get("LARDER_MORE_TEXTS")
FOLDERS = [DEMO, *(sorted(Path(MORE_MODELS).iterdir()) if MORE_MODELS else [])]
POEM = "床前明月光，疑是地上霜。\n舉頭望明月，低頭思故鄉。\n"
PROSE = (
    "È una verità universalmente riconosciuta, che uno scapolo in possesso di un'ampia fortuna…\n"
    "Straße, Ærøskøbing, Łódź; «ça va?» – “naïve café”.\r\n\tПривет, мир!"
    "  שלום  مرحبا 👩\u200d🚀 🇫🇷\n"
)


def texts() -> Iterator[str]:
    yield Path(argparse.__file__).read_text(encoding="utf-8")
    yield POEM * 3 + PROSE
    yield "".join(map(chr, [*range(1, 0x250), *range(0x3040, 0x3100), *range(0x1F600, 0x1F650)]))
    yield "\n".join(unicodedata.name(chr(code), "") for code in range(0x2000, 0x2100))
    yield " " * 70 + "\n" * 9 + "\t \t" + "1234567890" * 7
    for path in sorted(Path(MORE_TEXTS).glob("*.txt")) if MORE_TEXTS else []:
        yield path.read_text(encoding="utf-8")


@pytest.fixture(scope="module", params=FOLDERS, ids=lambda folder: folder.name)
def folder(request: pytest.FixtureRequest) -> Path:
    chosen: Path = request.param
    assert (chosen / "tokenizer.json").is_file(), f"no model at {chosen}: run make setup"
    return chosen


@pytest.fixture(scope="module")
def reference(folder: Path) -> Any:
    load: Any = AutoTokenizer.from_pretrained
    return load(folder)


def test_text_has_the_same_ids_and_comes_back(folder: Path, reference: Any) -> None:
    chat = ChatTokenizer.load(folder)
    for text in texts():
        ids = reference.encode(text, add_special_tokens=False)
        assert chat.encode_text(text) == ids
        assert chat.decode(ids) == reference.decode(ids, clean_up_tokenization_spaces=False)


def test_conversation_has_the_same_ids(folder: Path, reference: Any) -> None:
    chat = ChatTokenizer.load(folder)
    talk = [(Role.SYSTEM, "Be kind."), (Role.USER, POEM)]
    for number, line in enumerate(PROSE.splitlines()):
        talk += [(Role.ASSISTANT, f"{number} {line}"), (Role.USER, line)]
    for count in range(2, len(talk) + 1, 2):
        turns = talk[:count]
        expected = reference.apply_chat_template(
            [{"role": role.value, "content": text} for role, text in turns],
            add_generation_prompt=True,
            tokenize=True,
            return_dict=False,
        )
        messages = [ChatMessage(role=role, text=text) for role, text in turns]
        assert chat.encode_conversation(messages) == expected
