"""Ids to text: the same text however the ids are divided, never a broken character."""

import itertools
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models

from runtime.tokenizer.stream import DecodeTable
from tests.support import tiny_tokenizers as tiny

BYTE_LEVEL = tiny.byte_level()
SENTENCEPIECE = tiny.sentencepiece_like()
KINDS = {"byte-level": BYTE_LEVEL, "sentencepiece": SENTENCEPIECE}
PLAIN_IDS = sorted(
    token_id for token, token_id in SENTENCEPIECE.get_vocab().items() if not token.startswith("<0x")
)


def streamed(tokenizer: Tokenizer, groups: list[list[int]]) -> list[str]:
    stream = DecodeTable(tokenizer).stream()
    return [*(stream.push(group) for group in groups), stream.finish()]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.lists(st.integers(0, BYTE_LEVEL.get_vocab_size() - 1), max_size=8), max_size=12))
def test_stream_byte_level_random_ids_equals_decode_of_all(groups: list[list[int]]) -> None:
    ids = [token_id for group in groups for token_id in group]
    assert "".join(streamed(BYTE_LEVEL, groups)) == BYTE_LEVEL.decode(ids)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.lists(st.sampled_from(PLAIN_IDS), max_size=8), max_size=12))
def test_stream_sentencepiece_random_ids_equals_decode_of_all(groups: list[list[int]]) -> None:
    ids = [token_id for group in groups for token_id in group]
    assert "".join(streamed(SENTENCEPIECE, groups)) == SENTENCEPIECE.decode(ids)


@pytest.mark.parametrize("kind", sorted(KINDS))
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_stream_any_division_gives_the_same_text(kind: str, data: st.DataObject) -> None:
    tokenizer = KINDS[kind]
    ids = data.draw(st.lists(st.integers(0, tokenizer.get_vocab_size() - 1), max_size=60))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(ids)), max_size=5)))
    bounds = [0, *cuts, len(ids)]
    groups = [ids[start:end] for start, end in itertools.pairwise(bounds)]
    assert "".join(streamed(tokenizer, groups)) == (
        "".join(streamed(tokenizer, [[token_id] for token_id in ids]))
    )


@pytest.mark.parametrize("kind", sorted(KINDS))
@settings(max_examples=200, deadline=None)
@given(text=st.text(st.characters(codec="utf-8", exclude_characters="▁\ufffd"), max_size=40))
def test_stream_encoded_text_comes_back_without_broken_pieces(kind: str, text: str) -> None:
    tokenizer = KINDS[kind]
    tokenizer.encode_special_tokens = True
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    pieces = streamed(tokenizer, [[token_id] for token_id in ids])
    assert "".join(pieces) == tokenizer.decode(ids)
    assert not any("\ufffd" in piece for piece in pieces)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_stream_character_of_four_bytes_appears_when_complete(kind: str) -> None:
    tokenizer = KINDS[kind]
    if kind == "byte-level":
        ids = tokenizer.encode("😀").ids
    else:
        ids = [tiny.id_of(tokenizer, f"<0x{byte:02X}>") for byte in "😀".encode()]
    pieces = streamed(tokenizer, [[token_id] for token_id in ids])
    assert len(ids) == 4
    assert pieces == ["", "", "", "😀", ""]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_stream_ends_inside_a_character_finish_shows_it(kind: str) -> None:
    tokenizer = KINDS[kind]
    if kind == "byte-level":
        ids = tokenizer.encode("😀").ids[:2]
    else:
        ids = [tiny.id_of(tokenizer, f"<0x{byte:02X}>") for byte in "😀".encode()[:2]]
    assert streamed(tokenizer, [ids]) == ["", "\ufffd"]


def test_stream_special_token_between_words_keeps_the_space() -> None:
    names = ["▁hello", "<|im_end|>", "▁world", "</s>", "▁cat"]
    ids = [tiny.id_of(SENTENCEPIECE, name) for name in names]
    assert streamed(SENTENCEPIECE, [[token_id] for token_id in ids]) == [
        "hello", "", " world", "", " cat", "",
    ]  # fmt: skip


def test_stream_bytes_at_beginning_keep_the_space_after_them() -> None:
    ids = [tiny.id_of(SENTENCEPIECE, name) for name in ("<0x41>", "▁world", "<0xC3>", "▁cat")]
    pieces = streamed(SENTENCEPIECE, [[token_id] for token_id in ids])
    assert pieces == ["A", " world", "", "\ufffd cat", ""]


def test_stream_long_answer_decodes_a_bounded_window() -> None:
    table = DecodeTable(SENTENCEPIECE)
    stream = table.stream()
    widest = 0

    class Counting:
        def decode(self, ids: list[int], skip_special_tokens: bool) -> str:
            nonlocal widest
            widest = max(widest, len(ids))
            return SENTENCEPIECE.decode(ids, skip_special_tokens=skip_special_tokens)

        def id_to_token(self, token_id: int) -> str | None:
            return SENTENCEPIECE.id_to_token(token_id)

    table.tokenizer = Counting()  # type: ignore[assignment]
    space = tiny.id_of(SENTENCEPIECE, "▁")
    ids = [space, tiny.id_of(SENTENCEPIECE, "cat")] * 2000
    text = stream.push(ids) + stream.finish()
    assert text == ("cat " * 2000)[:-1]
    assert widest <= 17


def test_stream_broken_characters_without_end_are_let_go() -> None:
    tokenizer = Tokenizer(models.WordLevel({"\ufffd": 0, "a": 1}, unk_token="a"))
    tokenizer.decoder = decoders.Fuse()
    pieces = streamed(tokenizer, [[0]] * 20)
    assert "".join(pieces) == "\ufffd" * 20
    assert pieces[15] == "\ufffd" * 16
    assert streamed(tokenizer, [[0], [1]]) == ["", "\ufffda", ""]


def test_stream_without_decoder_puts_spaces_between() -> None:
    tokenizer = Tokenizer(models.WordLevel({"a": 0, "b": 1}, unk_token="a"))
    assert "".join(streamed(tokenizer, [[0], [1], [0]])) == tokenizer.decode([0, 1, 0]) == "a b a"


def test_stream_added_token_with_a_space_shows_as_written() -> None:
    tokenizer = tiny.byte_level()
    tokenizer.add_tokens(["<two words>"])
    token_id = tiny.id_of(tokenizer, "<two words>")
    assert streamed(tokenizer, [[token_id]]) == ["<two words>", ""]


def test_import_is_cheap() -> None:
    script = (
        "import sys; import runtime.tokenizer.chat, runtime.tokenizer.stream;"
        "sys.exit(bool({'jinja2', 'tokenizers'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
