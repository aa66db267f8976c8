"""The vocabulary in a GGUF file gives the ids that its model was trained with."""

import struct
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

from runtime.errors import LarderError
from runtime.inspect.gguf import header
from runtime.protocol.chat import ChatMessage, Role
from runtime.protocol.errors import ErrorCode
from runtime.tokenizer import gguf_file
from runtime.tokenizer.chat import ChatTokenizer
from runtime.tokenizer.cuts import CUTS
from runtime.tokenizer.judge import template_problem
from tests.support.gguf_files import Raw, tiny_llama, vocabulary_values, write_gguf
from tests.unit.tokenizer.test_vocabulary import SENTENCES, trained

HELLO = [ChatMessage(role=Role.USER, text="Hello <|im_end|>")]


def write(path: Path, **values: Any) -> Path:
    """Write a file that has a vocabulary; keys without their prefix, None: without it."""
    own, _ = tiny_llama()
    own |= {f"tokenizer.ggml.{key}": value for key, value in values.items()}
    return write_gguf(path, {key: each for key, each in own.items() if each is not None}, {})


def refusal(path: Path) -> str:
    with pytest.raises(LarderError) as caught:
        ChatTokenizer.load(path)
    assert caught.value.code is ErrorCode.TOKENIZER_INVALID
    return str(caught.value.parameters["reason"])


def test_chat_of_a_file_is_written_with_its_template(tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf")
    chat = ChatTokenizer.load(path)
    ids = chat.encode_conversation(HELLO)
    assert ids[0] == 257
    assert ids.count(258) == 1
    assert chat.decode(ids) == "user\nHello <|im_end|>\nassistant\n"
    assert (chat.bos_id, chat.eos_ids) == (256, (258,))
    assert template_problem(path) is None


@pytest.mark.parametrize("way", sorted(CUTS))
def test_every_way_of_cutting_gives_back_the_text(tmp_path: Path, way: str) -> None:
    chat = ChatTokenizer.load(write(tmp_path / "m.gguf", pre=way))
    for sentence in SENTENCES:
        text = sentence.replace("e\u0301", "e") if CUTS[way].is_composed else sentence
        assert chat.decode(chat.encode_text(text)) == text


def test_merges_make_words_and_whole_words_need_none(tmp_path: Path) -> None:
    values = vocabulary_values(272)
    names = [*values["tokenizer.ggml.tokens"], "he", "ll", "hell", "hello", "Ġhe"]
    kinds = [*values["tokenizer.ggml.token_type"], 1, 1, 1, 1, 1]
    merges = ["h e", "l l", "he ll", "Ġ he"]
    path = write(tmp_path / "m.gguf", tokens=names, token_type=kinds, merges=merges)
    o = ord("o")
    assert ChatTokenizer.load(path).encode_text("hello he") == [274, o, 276]
    path = write(
        tmp_path / "m.gguf", tokens=names, token_type=kinds, merges=merges, pre="llama-bpe"
    )
    assert ChatTokenizer.load(path).encode_text("hello he") == [275, 276]


@pytest.fixture(scope="module")
def pieces() -> dict[str, list[Any]]:
    model = sentencepiece.SentencePieceProcessor(model_proto=trained("bpe"))
    numbers = range(model.get_piece_size())

    def kind(number: int) -> int:
        flags = (model.is_unknown, model.is_control, model.is_unused, model.is_byte)
        return next(
            (value for is_it, value in zip(flags, (2, 3, 5, 6), strict=True) if is_it(number)), 1
        )

    return {
        "tokens": [model.id_to_piece(number) for number in numbers],
        "scores": [float(model.get_score(number)) for number in numbers],
        "token_type": [kind(number) for number in numbers],
    }


def test_pieces_with_scores_give_the_ids_of_sentencepiece(
    tmp_path: Path, pieces: dict[str, list[Any]]
) -> None:
    model = sentencepiece.SentencePieceProcessor(model_proto=trained("bpe"))
    path = write(
        tmp_path / "m.gguf",
        model="llama",
        unknown_token_id=model.unk_id(),
        add_space_prefix=True,
        **pieces,
    )
    chat = ChatTokenizer.load(path)
    for sentence in SENTENCES[:6]:
        if "  " not in sentence:
            assert chat.encode_text(sentence) == model.encode(sentence)
    kinds = [3 if kind == 2 else kind for kind in pieces["token_type"]]
    path = write(tmp_path / "m.gguf", model="llama", **{**pieces, "token_type": kinds})
    assert ChatTokenizer.load(path).encode_text("The larder") == model.encode("The larder")


def test_sign_for_spaces_is_written_and_read(tmp_path: Path) -> None:
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    names = ["<unk>", *bytes_, "▁", "a", "b", "▁a", "\n", "<|im_start|>", "<|im_end|>", "<tool>"]
    kinds = [2, *[6] * 256, 1, 1, 1, 1, 1, 3, 3, 4]
    path = write(
        tmp_path / "m.gguf",
        model="gemma4",
        tokens=names,
        token_type=kinds,
        merges=["▁ a"],
        unknown_token_id=0,
        bos_token_id=None,
        eos_token_id=263,
    )
    chat = ChatTokenizer.load(path)
    assert chat.encode_text("b a") == [259, 260]
    assert chat.encode_text("猫") == [1 + byte for byte in "猫".encode()]
    assert chat.decode(chat.encode_text("b a\n猫 a")) == "b a\n猫 a"
    path = write(
        tmp_path / "m.gguf",
        model="gemma4",
        tokens=names,
        token_type=kinds,
        merges=[],
        unknown_token_id=None,
    )
    assert ChatTokenizer.load(path).encode_text("b a") == [259, 257, 258]


def test_large_lists_are_read_from_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pieces: dict[str, list[Any]]
) -> None:
    path = write(tmp_path / "m.gguf", model="llama", unknown_token_id=0, **pieces)
    before = ChatTokenizer.load(path).encode_text(SENTENCES[0])
    monkeypatch.setattr(header, "MAX_KEPT_ITEMS", 3)
    assert ChatTokenizer.load(path).encode_text(SENTENCES[0]) == before
    monkeypatch.setattr(gguf_file, "MAX_LIST_BYTES", 100)
    with pytest.raises(LarderError) as caught:
        ChatTokenizer.load(path)
    assert "at most 100" in str(caught.value.parameters["reason"])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"pre": "strange"}, "called strange"),
        ({"pre": 7}, "called 7"),
        ({"model": "bert"}, "the kind bert"),
        ({"tokens": None}, "no vocabulary"),
        ({"tokens": [1, 2, 3]}, "no vocabulary"),
        ({"token_type": [1]}, "kinds of 1"),
        ({"tokens": ["x" * 600]}, "600 characters"),
        ({"merges": ["ab"]}, "merge number 0"),
        ({"model": "llama", "scores": [0.5]}, "scores of 1"),
        ({"tokens": Raw(9, struct.pack("<IQ", 0, 5000) + bytes(5000))}, "no list of texts"),
        (
            {"token_type": Raw(9, struct.pack("<IQ", 0, 5000) + bytes(5000))},
            "list of a type 0",
        ),
    ],
)
def test_broken_vocabulary_is_told(tmp_path: Path, values: dict[str, Any], words: str) -> None:
    assert words in refusal(write(tmp_path / "m.gguf", **values))


def test_files_without_template_or_that_are_gone_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, _ = tiny_llama()
    del own["tokenizer.chat_template"]
    path = write_gguf(tmp_path / "m.gguf", own, {})
    with pytest.raises(LarderError) as caught:
        ChatTokenizer.load(path)
    assert caught.value.code is ErrorCode.CHAT_TEMPLATE_MISSING
    with pytest.raises(LarderError) as caught:
        gguf_file.read_gguf_files(tmp_path / "none.gguf")
    assert caught.value.code is ErrorCode.TOKENIZER_MISSING
    path = write(tmp_path / "m.gguf")
    monkeypatch.setattr(gguf_file, "read_range", lambda path, offset, count: b"")
    assert "shorter" in refusal(path)
