"""Vocabularies of sentencepiece and tiktoken give the ids that those libraries give."""

import base64
import functools
import io
import itertools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st
from sentencepiece import sentencepiece_model_pb2

from runtime.errors import LarderError
from runtime.protocol.chat import ChatMessage, Role
from runtime.protocol.errors import ErrorCode
from runtime.tokenizer import sentencepiece_file, tiktoken_file, vocabulary
from runtime.tokenizer.chat import ChatTokenizer
from tests.support import tiny_tokenizers as tiny

MESSAGES: Any = sentencepiece_model_pb2
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SENTENCES = (
    "The capital of France is Paris, and the river there is called the Seine.",
    "In the larder stand bread, butter, cheese and 12 jars of jam; the cellar has 345 bottles.",
    "It's late, we'll go: don't wait for me, I've seen it.",
    "def add(left, right):\n    return left + right  # 1,234.5",
    "Così è la vita, e perché no? Übermorgen früh um sieben.",
    "天地玄黃，宇宙洪荒。日月盈昃，辰宿列張。",
    "子曰：學而時習之，不亦說乎？有朋自遠方來，不亦樂乎？",
    "Привет, мир! ｆｕｌｌ ｗｉｄｔｈ ﬁne ①②③ é e\u0301",
)
TEXTS = (
    *SENTENCES,
    "",
    " ",
    "   two  spaces  ",
    "\n\n\ttabs\r\nand lines\n",
    "😀🥐 \u200d👩\u200d🚀",
    "<|x|> [a] </a>",
    "zzzqqqxxx" * 9,
    "CamelCaseWORDS don't 2024年12月",
)
KINDS: dict[str, dict[str, Any]] = {
    "unigram": {"model_type": "unigram", "normalization_rule_name": "identity"},
    "unigram-nfkc": {"model_type": "unigram", "normalization_rule_name": "nmt_nfkc"},
    "bpe": {"model_type": "bpe", "normalization_rule_name": "identity"},
    "bpe-nfkc": {"model_type": "bpe", "normalization_rule_name": "nfkc"},
    "bpe-whole": {
        "model_type": "bpe",
        "normalization_rule_name": "identity",
        "user_defined_symbols": ["<mask>", "bread"],
        "remove_extra_whitespaces": False,
    },
    "bpe-bare": {
        "model_type": "bpe",
        "normalization_rule_name": "identity",
        "add_dummy_prefix": False,
        "remove_extra_whitespaces": False,
        "byte_fallback": False,
    },
}


@functools.cache
def trained(kind: str) -> bytes:
    """Return a small model file, as the library writes it."""
    written = io.BytesIO()
    options: dict[str, Any] = {"byte_fallback": True, **KINDS[kind]}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 20),
        model_writer=written,
        vocab_size=520,
        hard_vocab_limit=False,
        minloglevel=2,
        **options,
    )
    return written.getvalue()


def write(folder: Path, name: str, data: bytes, model_type: str = "", **settings_: object) -> Path:
    """Write a model folder whose vocabulary is this file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)
    (folder / "config.json").write_text(json.dumps({"model_type": model_type}))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"chat_template": TEMPLATE, **settings_})
    )
    return folder


@functools.cache
def processor(kind: str) -> sentencepiece.SentencePieceProcessor:
    return sentencepiece.SentencePieceProcessor(model_proto=trained(kind))


@pytest.fixture(scope="module")
def chats(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ChatTokenizer]:
    root = tmp_path_factory.mktemp("sentencepiece")
    return {
        kind: ChatTokenizer.load(write(root / kind, "tokenizer.model", trained(kind), legacy=True))
        for kind in KINDS
    }


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("kind", KINDS)
def test_sentencepiece_ids_equal_the_library(
    chats: dict[str, ChatTokenizer], kind: str, text: str
) -> None:
    ids = processor(kind).encode(text)
    assert chats[kind].encode_text(text) == ids
    assert chats[kind].decode(ids) == processor(kind).decode(ids).replace(" \u2047 ", "<unk>")


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=150, deadline=None)
@given(text=st.text(st.sampled_from("aeotrdbn hLI'.,1\n\té猫天😀<"), max_size=40))
def test_sentencepiece_any_text_equals_the_library(
    chats: dict[str, ChatTokenizer], kind: str, text: str
) -> None:
    assert chats[kind].encode_text(text) == processor(kind).encode(text)


def test_sentencepiece_newer_setting_puts_a_space_before_the_first_word_alone(
    tmp_path: Path,
) -> None:
    declared = {
        str(processor("bpe").vocab_size() + number): {"content": name, "special": True}
        for number, name in enumerate(("<|im_start|>", "<|im_end|>"))
    }
    data = trained("bpe")
    newer = ChatTokenizer.load(
        write(tmp_path / "a", "tokenizer.model", data, added_tokens_decoder=declared)
    )
    older = ChatTokenizer.load(
        write(tmp_path / "b", "tokenizer.model", data, added_tokens_decoder=declared, legacy=True)
    )
    assert (
        newer.encode_text("bread") == older.encode_text("bread") == processor("bpe").encode("bread")
    )
    talk = [ChatMessage(role=Role.USER, text="bread")]
    start = processor("bpe").vocab_size()
    assert older.encode_conversation(talk)[0] == newer.encode_conversation(talk)[0] == start
    bare = processor("bpe").encode(" user")
    assert older.encode_conversation(talk)[1 : 1 + len(bare)] == bare
    assert newer.decode(newer.encode_conversation(talk)) == "user\nbread\nassistant\n"


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_typed_names_of_control_pieces_stay_text(
    chats: dict[str, ChatTokenizer], kind: str
) -> None:
    controls = {processor(kind).piece_to_id(name) for name in ("<s>", "</s>")}
    ids = chats[kind].encode_text("<s>hello</s> <unk> <0x41>")
    assert controls.isdisjoint(ids)
    assert "hello" in chats[kind].decode(ids)


def test_declared_tokens_have_their_numbers_and_gaps_are_filled(tmp_path: Path) -> None:
    size = processor("bpe").vocab_size()
    folder = write(
        tmp_path,
        "tokenizer.model",
        trained("bpe"),
        eos_token="<|im_end|>",
        added_tokens_decoder={
            "1": {"content": "<s>", "special": True},
            str(size + 1): {"content": "<|im_start|>", "special": True},
            str(size + 4): {"content": "<think>", "special": False},
            "x": {"content": "no number"},
            "-3": {"content": "below"},
            "7": "no object",
        },
    )
    (folder / "added_tokens.json").write_text(json.dumps({"<|im_end|>": size + 2, "y": True}))
    chat = ChatTokenizer.load(folder)
    assert chat.vocabulary_size == size + 5
    assert chat.eos_ids == (size + 2,)
    ids = chat.encode_conversation([ChatMessage(role=Role.USER, text="<think>")])
    assert (ids[0], size + 4 in ids, ids.count(size + 2)) == (size + 1, False, 1)
    assert chat.decode([size + 4, size + 1, size + 3]) == "<think>"


@pytest.mark.parametrize(
    ("token_id", "content", "reason"),
    [
        (0, "<|im_end|>", "cannot have the number 0"),
        (10**6, "<|im_end|>", "too high"),
        (600, "<s>", "cannot have the number 600"),
    ],
)
def test_declared_token_that_cannot_have_its_number_is_refused(
    tmp_path: Path, token_id: int, content: str, reason: str
) -> None:
    declared = {str(token_id): {"content": content, "special": True}}
    folder = write(tmp_path, "tokenizer.model", trained("bpe"), added_tokens_decoder=declared)
    assert reason in refusal(folder)


def test_declared_tokens_of_a_tokenizer_json_are_added_where_they_fit(tmp_path: Path) -> None:
    folder = tiny.write_folder(tmp_path, tiny.byte_level(), TEMPLATE)
    size = tiny.byte_level().get_vocab_size()
    settings_ = json.loads((folder / "tokenizer_config.json").read_text())
    settings_["added_tokens_decoder"] = {
        str(size): {"content": "<|more|>", "special": True},
        str(size + 9): {"content": "<|far|>", "special": True},
        str(tiny.id_of(tiny.byte_level(), "<think>")): {"content": "<think>", "special": True},
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings_))
    chat = ChatTokenizer.load(folder)
    assert chat.vocabulary_size == size + 1
    assert chat.decode([size, tiny.id_of(tiny.byte_level(), "<think>")]) == ""


def refusal(folder: Path) -> str:
    """Return why a folder is refused."""
    with pytest.raises(LarderError) as caught:
        ChatTokenizer.load(folder)
    assert caught.value.code is ErrorCode.TOKENIZER_INVALID
    assert Path(str(caught.value.parameters["file"])).parent == folder
    return str(caught.value.parameters["reason"])


def changed(**changes: object) -> bytes:
    """Return a model file with other settings."""
    model = MESSAGES.ModelProto.FromString(trained("bpe"))
    for name, value in changes.items():
        part = model.normalizer_spec if name == "precompiled_charsmap" else model.trainer_spec
        setattr(part, name, value)
    return model.SerializeToString()


def with_pieces(*names: str) -> bytes:
    model = MESSAGES.ModelProto.FromString(trained("bpe"))
    for name in names:
        model.pieces.add(piece=name, score=-900.0)
    return model.SerializeToString()


def with_piece_of(data: bytes) -> bytes:
    """A vocabulary whose first piece has these four bytes."""
    model = MESSAGES.ModelProto.FromString(trained("bpe"))
    model.pieces[0].piece = "four"
    return bytes(model.SerializeToString()).replace(b"four", data, 1)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it has no pieces"),
        (b"\xff" * 50, "no sentencepiece model"),
        (b"version https://git-lfs.github.com/spec/v1\n", "no sentencepiece model"),
        (changed(model_type=3), "its kind is 3"),
        (changed(unk_id=-1), "unknown piece is number -1"),
        (changed(unk_id=10**6), "unknown piece"),
        (changed(unk_id=1), "unknown piece is a control piece"),
        (with_pieces("bread", "bread"), "twice"),
        (with_pieces("z" * 600), "a piece of 600 characters"),
        (with_piece_of(b"\xff\xfe\xff\xfe"), "piece number 0 of its vocabulary is not UTF-8 text"),
        (with_piece_of(b"\xed\xa0\x80\x80"), "piece number 0 of its vocabulary is not UTF-8 text"),
        (with_piece_of(b"cut\xc3"), "piece number 0 of its vocabulary is not UTF-8 text"),
        (changed(precompiled_charsmap=b"x"), "precompiled_charsmap"),
        (changed(precompiled_charsmap=b"\x04\0\0\0abcd"), "its tables are broken"),
    ],
    ids=[
        "empty",
        "bytes",
        "pointer",
        "kind",
        "unknown",
        "beyond",
        "control",
        "twice",
        "long",
        "no-text",
        "surrogate",
        "cut-letter",
        "map",
        "panic",
    ],
)
def test_broken_sentencepiece_file_is_named(tmp_path: Path, data: bytes, reason: str) -> None:
    assert reason in refusal(write(tmp_path, "tokenizer.model", data))


def test_huge_vocabulary_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "MAX_VOCABULARY_BYTES", 10)
    folder = write(tmp_path, "tokenizer.model", trained("bpe"))
    assert "at most 10 are read" in refusal(folder)


@settings(max_examples=150, deadline=None)
@given(
    position=st.integers(0, 4000),
    inserted=st.binary(max_size=6),
    num_lost=st.integers(0, 40),
)
def test_changed_bytes_give_a_tokenizer_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, position: int, inserted: bytes, num_lost: int
) -> None:
    data = trained("unigram-nfkc")
    position %= len(data)
    folder = tmp_path_factory.mktemp("changed")
    write(folder, "tokenizer.model", data[:position] + inserted + data[position + num_lost :])
    assert outcome(folder) in (None, ErrorCode.TOKENIZER_INVALID)


def outcome(folder: Path) -> ErrorCode | None:
    """Return why a folder is refused, None if it is not."""
    try:
        ChatTokenizer.load(folder).encode_text("The capital of France")
    except LarderError as error:
        return error.code
    return None


@functools.cache
def ranks() -> dict[bytes, int]:
    """Return a small byte-pair vocabulary as tiktoken knows it."""
    known = {bytes([byte]): byte for byte in range(256)}
    parts = [[bytes([byte]) for byte in sentence.encode()] for sentence in SENTENCES]
    while len(known) < 600:
        counts: dict[bytes, int] = {}
        for part in parts:
            for left, right in itertools.pairwise(part):
                counts[left + right] = counts.get(left + right, 0) + 1
        best = max((pair for pair in counts if pair not in known), key=lambda pair: counts[pair])
        known[best] = len(known)
        parts = [merged(part, best) for part in parts]
    return known


def merged(part: list[bytes], pair: bytes) -> list[bytes]:
    result: list[bytes] = []
    for piece in part:
        if result and result[-1] + piece == pair:
            result[-1] = pair
        else:
            result.append(piece)
    return result


def tiktoken_bytes(known: dict[bytes, int]) -> bytes:
    return b"".join(base64.b64encode(piece) + b" %d\n" % rank for piece, rank in known.items())


def write_tiktoken(folder: Path, family: str, name: str = "tiktoken.model") -> Path:
    declared = {
        str(len(ranks()) + number): {"content": content, "special": True}
        for number, content in enumerate(("<|im_start|>", "<|im_end|>"))
    }
    data = tiktoken_bytes(ranks())
    return write(folder, name, data, family, added_tokens_decoder=declared)


@pytest.fixture(scope="module")
def families(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ChatTokenizer]:
    root = tmp_path_factory.mktemp("tiktoken")
    return {
        family: ChatTokenizer.load(write_tiktoken(root / family, family))
        for family in ("kimi_k2", "glm4")
    }


def reference(family: str) -> tiktoken.Encoding:
    return tiktoken.Encoding(
        name=family,
        pat_str=tiktoken_file.PATTERNS[family],
        mergeable_ranks=ranks(),
        special_tokens={},
    )


@pytest.mark.parametrize("family", ["kimi_k2", "glm4"])
def test_tiktoken_ids_equal_the_library(families: dict[str, ChatTokenizer], family: str) -> None:
    encoding = reference(family)
    for text in TEXTS:
        ids = encoding.encode_ordinary(text)
        assert families[family].encode_text(text) == ids
        assert families[family].decode(ids) == text


@settings(max_examples=150, deadline=None)
@given(text=st.text(st.sampled_from("aetTHE's hé猫天12 \n\r\t.,😀<"), max_size=40))
def test_tiktoken_any_text_equals_the_library(
    families: dict[str, ChatTokenizer], text: str
) -> None:
    for family, chat in families.items():
        assert chat.encode_text(text) == reference(family).encode_ordinary(text)


@pytest.mark.parametrize("name", ["tokenizer.model", "tiktoken.model", "some.tiktoken"])
def test_tiktoken_file_is_known_by_its_content(tmp_path: Path, name: str) -> None:
    chat = ChatTokenizer.load(write_tiktoken(tmp_path, "llama", name))
    start = len(ranks())
    talk = [ChatMessage(role=Role.USER, text="<|im_end|>")]
    ids = chat.encode_conversation(talk)
    assert (ids[0], ids.count(start + 1)) == (start, 1)
    assert chat.eos_ids == (start + 1,)


def test_tiktoken_of_an_unknown_family_says_what_is_needed(tmp_path: Path) -> None:
    assert "a tokenizer.json is needed" in refusal(write_tiktoken(tmp_path, "else"))
    assert "without a name" in refusal(write_tiktoken(tmp_path / "b", ""))


def without(known: dict[bytes, int], pieces: Iterable[bytes]) -> bytes:
    rest = [piece for piece in known if piece not in pieces]
    return tiktoken_bytes({piece: rank for rank, piece in enumerate(rest)})


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (tiktoken_bytes({b"a": 0}) + b"nonsense\n", "line 2 is not"),
        (tiktoken_bytes({b"a": 0}) + b"a* 1\n", "line 2 is not"),
        (tiktoken_bytes({b"a": 0}) + b"YQ== x\n", "line 2 is not"),
        (tiktoken_bytes({b"a": 0, b"z" * 900: 1}), "line 2 has a piece of 900 bytes"),
        (tiktoken_bytes({b"a": 0, b"b": 2}), "not 0, 1, 2"),
        (tiktoken_bytes({b"a": 0}) + b"\n", "no piece for the byte 0"),
    ],
)
def test_broken_tiktoken_file_is_named(tmp_path: Path, data: bytes, reason: str) -> None:
    assert reason in refusal(write(tmp_path, "tiktoken.model", data, "llama"))


def test_tokenizer_json_goes_before_other_files(tmp_path: Path) -> None:
    folder = tiny.write_folder(tmp_path, tiny.byte_level(), TEMPLATE)
    (folder / "tokenizer.model").write_bytes(b"nonsense")
    assert ChatTokenizer.load(folder).vocabulary_size == tiny.byte_level().get_vocab_size()


def test_tokenizer_json_with_broken_tables_is_named(tmp_path: Path) -> None:
    folder = tiny.write_folder(tmp_path, tiny.byte_level(), TEMPLATE)
    document = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    table = base64.b64encode(b"\x04\0\0\0abcd").decode()
    document["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": table}
    (folder / "tokenizer.json").write_text(json.dumps(document), encoding="utf-8")
    assert refusal(folder) == "its tables are broken"


def test_two_files_that_end_alike_are_none(tmp_path: Path) -> None:
    folder = write_tiktoken(tmp_path, "llama", "a.tiktoken")
    (folder / "b.tiktoken").write_bytes(b"")
    with pytest.raises(LarderError) as caught:
        ChatTokenizer.load(folder)
    assert caught.value.code is ErrorCode.TOKENIZER_MISSING


def test_kinds_of_pieces_are_those_of_the_library() -> None:
    kinds = MESSAGES.ModelProto.SentencePiece.Type
    assert {kind.name: kind.value for kind in sentencepiece_file.PieceKind} == dict(kinds.items())
