"""Thinking and answer parted: the same however the text is cut, and without any marker."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer

from runtime.tokenizer.answer import AnswerMarks, AnswerStream, opening_tag, separator_of
from runtime.tokenizer.channels import CHANNEL_MARKS
from runtime.tokenizer.separation import Parted, Separator
from runtime.tokenizer.spoken import ANNOUNCEMENTS
from runtime.tokenizer.stream import DecodeTable
from runtime.tokenizer.tags import TAGS, THINKING_TAGS
from tests.support import tiny_tokenizers as tiny

GRANITE_3_3 = (
    Path(__file__).parents[2] / "golden/chat-templates/ibm-granite-granite-3.3-2B-Instruct.jinja"
)
HARMONY = (
    "<|channel|>analysis<|message|>We think.\n<|end|><|start|>assistant"
    "<|channel|>commentary to=functions.look <|constrain|>json<|message|>{}<|end|>"
    "<|start|>assistant<|channel|>final<|message|>It is **Paris**.<|return|>"
)


def parted(separator: Separator, pieces: list[str]) -> Parted:
    whole = Parted()
    for piece in pieces:
        whole += separator.feed(piece)
    return whole + separator.finish()


def tagged(text: str, opened_by: str = "") -> Parted:
    return parted(separator_of(has_channels=False, opened_by=opened_by), [text])


def announced(text: str) -> Parted:
    return parted(separator_of(has_channels=False, is_announced=True), [text])


def in_channels(text: str) -> Parted:
    return parted(separator_of(has_channels=True), [text])


@pytest.mark.parametrize(
    "marks", [TAGS, CHANNEL_MARKS, ANNOUNCEMENTS], ids=["tags", "channels", "words"]
)
def test_markers_never_overlap(marks: tuple[str, ...]) -> None:
    for one, other in itertools.product(marks, repeat=2):
        assert one[0] not in other[1:]
        assert one == other or not one.startswith(other)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Paris.", Parted("", "Paris.")),
        ("  \nParis. ", Parted("", "  \nParis. ")),
        (" \n", Parted("", " \n")),
        ("", Parted()),
        ("<think>\nhm\nso\n</think>\n\nParis.", Parted("hm\nso", "Paris.")),
        ("\n<think>hm</think>Paris.\n", Parted("hm", "Paris.\n")),
        ("<think>\n\n</think>\n\nParis.", Parted("", "Paris.")),
        ("<think>hm", Parted("hm", "")),
        ("<think>hm </thi", Parted("hm", "")),
        ("<think>1 <", Parted("1 <", "")),
        ("<think>hm </seed", Parted("hm </seed", "")),
        ("<thi", Parted()),
        ("<", Parted("", "<")),
        ("<think>a</think>\n<think>b</think>c", Parted("a\n\nb", "c")),
        ("<think>a <think> b</think>c", Parted("a <think> b", "c")),
        ("<think>a</think>use <think>x</think> so", Parted("a", "use <think>x</think> so")),
        ("use <think>x</think>", Parted("", "use <think>x</think>")),
        ("</think>\n\nParis.", Parted("", "Paris.")),
        ("Paris.</think> So.", Parted("", "Paris. So.")),
        ("<think>a</think>b</think>", Parted("a", "b")),
        ("<think>a</think><response>b</response>\n", Parted("a", "b\n")),
        ("<response>b</response>", Parted("", "<response>b</response>")),
        ("<seed:think>a</seed:think>b", Parted("a", "b")),
        ("[THINK]a[/THINK]b", Parted("a", "b")),
        ("◁think▷a◁/think▷b", Parted("a", "b")),
        ("<|channel>thought\na<channel|>b", Parted("a", "b")),
        ("1 < 2 <thin", Parted("", "1 < 2 <thin")),
    ],
)
def test_tags_are_parted_and_gone(text: str, expected: Parted) -> None:
    assert tagged(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hm\n</think>\n\nParis.", Parted("hm", "Paris.")),
        ("<think>\nhm</think>Paris.", Parted("hm", "Paris.")),
        ("hm", Parted("hm", "")),
        ("</think>Paris.", Parted("", "Paris.")),
    ],
)
def test_tags_opened_by_the_prompt_begin_inside(text: str, expected: Parted) -> None:
    assert tagged(text, opened_by="<think>") == expected


@pytest.mark.parametrize("tag", sorted(THINKING_TAGS))
def test_opening_tag_at_the_end_of_a_prompt_is_found(tag: str) -> None:
    assert opening_tag(f"<|assistant|>{tag}\n") == tag
    assert opening_tag(f"{tag}{THINKING_TAGS[tag]}\n\n") == ""
    assert opening_tag(f"{tag} what") == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HARMONY, Parted("We think.\n\n{}", "It is **Paris**.")),
        ("<|channel|>final<|message|> x", Parted("", " x")),
        ("<|channel|>analysis<|message|>We thi", Parted("We thi", "")),
        ("<|channel|>analysis<|mess", Parted()),
        ("<|channel|>anal", Parted()),
        ("Paris", Parted("", "Paris")),
        ("t", Parted("", "t")),
        ("<", Parted("", "<")),
        ("<|channel|>final<|message|>Paris<|en", Parted("", "Paris")),
        (" to=functions.f<|channel|>commentary json<|message|>{}<|call|>", Parted("{}", "")),
        ("to be<|end|>", Parted("", "to be")),
        ("<|start|>assistant<|message|>Paris", Parted("", "Paris")),
        (
            "<|channel|>final<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b",
            Parted("", "a\n\nb"),
        ),
        ("<|channel|>final " + "word " * 60, Parted("", "word " * 60)),
        ("<|start|>assistant " + "word " * 60, Parted("", "word " * 60)),
        ("<|message|>Paris<|constrain|>", Parted("", "Paris")),
        ("<|channel|>thoughts<|message|>hm<|channel|>final<|message|>x", Parted("hm", "x")),
    ],
)
def test_channels_are_parted_and_gone(text: str, expected: Parted) -> None:
    assert in_channels(text) == expected


@pytest.mark.parametrize("end", range(len(HARMONY) + 1))
def test_channels_cut_at_every_place_show_no_marker(end: int) -> None:
    separator = separator_of(has_channels=True)
    first = separator.feed(HARMONY[:end])
    whole = first + separator.feed(HARMONY[end:]) + separator.finish()
    assert whole == in_channels(HARMONY)
    assert not any("<" in text for text in (first.thinking, first.answer))


def test_is_thinking_follows_the_text() -> None:
    for has_channels, thought, end in (
        (False, "<think>hm", "</think>"),
        (True, "<|channel|>analysis<|message|>hm", "<|channel|>final<|message|>"),
    ):
        separator = separator_of(has_channels=has_channels)
        assert not separator.is_thinking
        separator.feed(thought)
        assert separator.is_thinking
        separator.feed(end)
        assert not separator.is_thinking


WORDS = ("a", " ", "\n", "<", "assistant", "final", "analysis", " to=", "t", "thought", "|>")


@pytest.mark.parametrize("has_channels", [False, True])
@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_any_cutting_gives_the_same_parts(has_channels: bool, data: st.DataObject) -> None:
    marks = CHANNEL_MARKS if has_channels else TAGS
    text = "".join(data.draw(st.lists(st.sampled_from((*marks, *WORDS)), max_size=25)))
    opened_by = "" if has_channels else data.draw(st.sampled_from(("", *THINKING_TAGS)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pieces = [text[start:end] for start, end in itertools.pairwise([0, *cuts, len(text)])]

    def separator() -> Separator:
        return separator_of(has_channels=has_channels, opened_by=opened_by)

    whole = parted(separator(), [text])
    assert parted(separator(), pieces) == whole
    assert parted(separator(), list(text)) == whole
    if has_channels:
        assert not any(mark in whole.answer + whole.thinking for mark in CHANNEL_MARKS)


@settings(max_examples=200, deadline=None)
@given(
    thinking=st.text("ab \n</>t", max_size=20),
    answer=st.text("ab \n<t>", max_size=20).filter(lambda text: bool(text.strip())),
)
def test_thinking_and_answer_come_back(thinking: str, answer: str) -> None:
    assert tagged(f"<think>\n{thinking}\n</think>\n\n{answer}") == (
        Parted(thinking.strip(), answer.lstrip())
    )


def with_special(*names: str) -> Tokenizer:
    tokenizer = tiny.byte_level()
    tokenizer.add_special_tokens([AddedToken(name) for name in names])
    return tokenizer


def streamed(tokenizer: Tokenizer, template: str, text: str) -> Parted:
    table = DecodeTable(tokenizer)
    marks = AnswerMarks.of(table, template)
    stream = AnswerStream(
        table.stream(marks.shown_ids), separator_of(has_channels=marks.has_channels)
    )
    whole = Parted()
    for token_id in tokenizer.encode(text).ids:
        whole += stream.push([token_id])
    return whole + stream.finish()


def test_answer_stream_special_tokens_that_are_markers_are_heard() -> None:
    tokenizer = with_special(*CHANNEL_MARKS)
    template = "<|start|>assistant<|channel|>final<|message|>"
    assert streamed(tokenizer, template, HARMONY) == in_channels(HARMONY)
    tokenizer = with_special("[THINK]", "[/THINK]")
    assert streamed(tokenizer, "", "[THINK]hm[/THINK]the cat</s>") == Parted("hm", "the cat")
    tokenizer = with_special("<|channel>", "<channel|>")
    assert streamed(tokenizer, "", "<|channel>thought\nhm<channel|>cat") == Parted("hm", "cat")


def test_answer_stream_of_another_family_has_no_channels() -> None:
    assert streamed(tiny.byte_level(), "<|im_start|>", "say <|channel|>final<|message|>") == (
        Parted("", "say <|channel|>final<|message|>")
    )


def test_answer_stream_character_cut_in_bytes_arrives_whole() -> None:
    assert streamed(tiny.byte_level(), "", "<think>😀</think>猫") == Parted("😀", "猫")


THOUGHT, RESPONSE = "Here is my thought process:", "Here is my response:"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Paris.", Parted("", "Paris.")),
        ("  \nParis. ", Parted("", "  \nParis. ")),
        (" \n", Parted("", " \n")),
        ("", Parted()),
        (f"{THOUGHT}\nhm\nso\n\n{RESPONSE}\n\nParis.\n", Parted("hm\nso", "Paris.\n")),
        (f"\n{THOUGHT} hm {RESPONSE} Paris.", Parted("hm", "Paris.")),
        ("Here's my thought process: a Here's my response: b", Parted("a", "b")),
        (f"{THOUGHT} hm", Parted("hm", "")),
        (f"{THOUGHT} hm {RESPONSE}", Parted("hm", "")),
        (f"{THOUGHT} hm {RESPONSE} \n", Parted("hm", "")),
        (f"{THOUGHT} hm. Here is my resp", Parted("hm. Here is my resp", "")),
        (f"{RESPONSE} Paris.", Parted("", "Paris.")),
        (f"{THOUGHT} a {THOUGHT} b {RESPONSE} c", Parted(f"a {THOUGHT} b", "c")),
        (f"{THOUGHT} a {RESPONSE} {RESPONSE} c", Parted("a", f"{RESPONSE} c")),
        (f"{THOUGHT} a {RESPONSE} c {RESPONSE} d", Parted("a", f"c {RESPONSE} d")),
        (f"{THOUGHT} a {RESPONSE} c {THOUGHT} d", Parted("a", f"c {THOUGHT} d")),
        (f"Well. {THOUGHT} a", Parted("", f"Well. {THOUGHT} a")),
        ("Here is my", Parted("", "Here is my")),
    ],
)
def test_announced_thinking_is_parted_and_the_words_are_gone(text: str, expected: Parted) -> None:
    assert announced(text) == expected


@settings(max_examples=200)
@given(data=st.data())
def test_announced_thinking_is_parted_alike_over_any_cut(data: st.DataObject) -> None:
    words = (*ANNOUNCEMENTS, "Here is", " my ", "\n", " ", "response", "H", "<think>", ":", "x")
    text = "".join(data.draw(st.lists(st.sampled_from(words), max_size=8)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=12)))
    pieces = [text[begin:end] for begin, end in itertools.pairwise((0, *cuts, len(text)))]
    separator = separator_of(has_channels=False, is_announced=True)
    assert parted(separator, pieces) == announced(text)


def test_thinking_is_announced_where_the_template_says_so() -> None:
    """Granite 3.2 tells its model these words; the template of 3.3 asks for tags instead."""
    table = DecodeTable(tiny.byte_level())
    words = f"Write your thoughts after '{THOUGHT}' and write your response after '{RESPONSE}'"
    assert AnswerMarks.of(table, words).is_announced
    assert not AnswerMarks.of(table, f"Write your thoughts after '{THOUGHT}'").is_announced
    template = GRANITE_3_3.read_text(encoding="utf-8")
    assert not AnswerMarks.of(table, template).is_announced
    separator = separator_of(has_channels=False, is_announced=True)
    assert not separator.is_thinking
    separator.feed(THOUGHT)
    assert separator.is_thinking
    separator.feed(RESPONSE)
    assert not separator.is_thinking
