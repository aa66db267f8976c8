"""Prompts that end with an answer which is to go on."""

from pathlib import Path

import pytest

from runtime.errors import LarderError
from runtime.protocol.chat import ChatMessage, Role
from runtime.protocol.errors import ErrorCode
from runtime.tokenizer.chat import Begun
from runtime.tokenizer.separation import Parted
from tests.support import tiny_tokenizers as tiny
from tests.unit.tokenizer.test_chat import (
    KINDS,
    NAMES,
    QWEN,
    SIMPLE,
    TEMPLATES,
    answer,
    load,
    user,
)


@pytest.mark.parametrize(
    ("name", "kind"), [(name, sorted(KINDS)[at % len(KINDS)]) for at, name in enumerate(NAMES)]
)
def test_continued_text_stands_at_the_end_of_its_prompt(
    tmp_path: Path, name: str, kind: str
) -> None:
    template = (TEMPLATES / f"{name}.jinja").read_text(encoding="utf-8")
    chat, plain = load(tmp_path, template, kind)
    talk = [user("hello"), answer("Paris is the")]
    prompt = chat.continued(talk)
    rendered = chat._template.render(
        [{"role": item.role.value, "content": item.text} for item in talk], False
    )
    end = rendered.rindex("Paris is the") + len("Paris is the")
    assert prompt.ids == plain.encode(rendered[:end], add_special_tokens=False).ids
    assert prompt.begun is not None
    stream = chat.answer_stream(prompt.opened_by)
    assert stream.push(prompt.begun.ids) + stream.finish() == Parted(answer="Paris is the")


def test_continued_ids_follow_the_prompt_of_their_question(tmp_path: Path) -> None:
    chat, plain = load(tmp_path, QWEN)
    ids = [tiny.id_of(plain, character) for character in "Paris"]
    prompt = chat.continued([user("a"), answer("Paris", [*ids, chat.eos_ids[0]])])
    assert prompt.ids == [*chat.encode_conversation([user("a")]), *ids]
    assert prompt.begun == Begun(ids)


def test_continued_answer_that_was_cut_while_thinking_goes_on_thinking(tmp_path: Path) -> None:
    chat, plain = load(tmp_path, SIMPLE)
    ids = plain.encode("<think>hello the", add_special_tokens=False).ids
    thought = ChatMessage(role=Role.ASSISTANT, text="", thinking="hello the", token_ids=ids)
    prompt = chat.continued([user("a"), thought])
    assert prompt.begun is not None
    stream = chat.answer_stream(prompt.opened_by)
    assert stream.push(prompt.begun.ids).thinking == "hello the"
    assert stream.is_thinking


def test_continued_thinking_without_ids_is_thought_again(tmp_path: Path) -> None:
    chat, _ = load(tmp_path, SIMPLE)
    thought = ChatMessage(role=Role.ASSISTANT, text="", thinking="hello the")
    assert chat.continued([user("a"), thought]) == chat.prompt([user("a")])


def test_continued_ids_of_other_words_give_way_to_the_text(tmp_path: Path) -> None:
    chat, _ = load(tmp_path, SIMPLE)
    changed = chat.continued([user("a"), answer("edited", chat.encode_text("other"))])
    assert changed == chat.continued([user("a"), answer("edited")])


def test_continued_text_that_the_template_changes_follows_its_question(tmp_path: Path) -> None:
    chat, _ = load(tmp_path, SIMPLE.replace("message.content", "message.content | upper"))
    prompt = chat.continued([user("a"), answer("cat")])
    asked = chat.encode_conversation([user("a")])
    assert prompt.ids == [*asked, *chat.encode_text("cat")]


def test_continued_answer_that_the_template_refuses_names_the_turn(tmp_path: Path) -> None:
    refusing = "{% if messages[-1].role == 'assistant' %}{{ raise_exception('no') }}{% endif %}"
    chat, _ = load(tmp_path, refusing + SIMPLE)
    with pytest.raises(LarderError) as caught:
        chat.continued([user("a"), answer("cat")])
    assert caught.value.code is ErrorCode.CONVERSATION_INVALID
    assert caught.value.parameters["turn"] == 2
    assert str(caught.value.parameters["reason"]).startswith("at answer 1: ")
