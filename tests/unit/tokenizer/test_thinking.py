"""Earlier thinking in a conversation: told as the template wants it, ids kept, turns named."""

from pathlib import Path

import pytest

from runtime.errors import LarderError
from runtime.protocol.chat import ChatMessage, Role
from runtime.protocol.errors import ErrorCode
from runtime.tokenizer.answer import MarkedText
from runtime.tokenizer.chat import ChatTokenizer
from runtime.tokenizer.separation import Parted
from tests.support import tiny_tokenizers as tiny

TEMPLATES = Path(__file__).parents[2] / "golden" / "chat-templates"
TELLING = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}"
    "{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
OPENING = TELLING.replace("assistant\n{% endif %}", "assistant\n<think>\n{% endif %}")
FORGETTING = TELLING.replace("m.reasoning_content %}", "false %}")
THINKING = "the cat\nis"
RAW = f"<think>\n{THINKING}\n</think>\n\nParis"


def published(name: str) -> str:
    return (TEMPLATES / f"{name}.jinja").read_text(encoding="utf-8")


def load(folder: Path, template: str) -> ChatTokenizer:
    return ChatTokenizer.load(tiny.write_folder(folder, tiny.byte_level(), template))


def user(text: str) -> ChatMessage:
    return ChatMessage(role=Role.USER, text=text)


def answer(text: str, ids: list[int], thinking: str = "") -> ChatMessage:
    return ChatMessage(role=Role.ASSISTANT, text=text, token_ids=ids, thinking=thinking)


def spelled(text: str) -> list[int]:
    """Return ids letter by letter, as no encoding would give them; tags are one token."""
    plain = tiny.byte_level()
    ids: list[int] = []
    while text:
        tag = next((tag for tag in tiny.PLAIN_TAGS if text.startswith(tag)), "")
        piece = tag or text[0]
        ids += [tiny.id_of(plain, tag)] if tag else plain.encode(piece).ids
        text = text[len(piece) :]
    return ids


def has_run(ids: list[int], run: list[int]) -> bool:
    return any(ids[at : at + len(run)] == run for at in range(len(ids) - len(run) + 1))


def test_prompt_template_tells_thinking_keeps_all_ids(tmp_path: Path) -> None:
    chat = load(tmp_path, TELLING)
    ids = spelled(RAW)
    first = chat.prompt([user("a")])
    second = chat.prompt([user("a"), answer("Paris", ids, THINKING), user("b")])
    assert second.ids[: len(first.ids) + len(ids)] == first.ids + ids
    assert first.opened_by == ""


def test_prompt_template_opens_thinking_keeps_all_ids(tmp_path: Path) -> None:
    chat = load(tmp_path, OPENING)
    ids = spelled(RAW.removeprefix("<think>\n"))
    first = chat.prompt([user("a")])
    second = chat.prompt([user("a"), answer("Paris", ids, THINKING), user("b")])
    assert first.opened_by == "<think>"
    assert second.ids[: len(first.ids) + len(ids)] == first.ids + ids


def test_prompt_typed_tag_at_the_end_opens_nothing(tmp_path: Path) -> None:
    chat = load(tmp_path, "{{ messages[-1].content }}")
    assert chat.prompt([user("what is <think>")]).opened_by == ""
    assert load(tmp_path / "b", OPENING).prompt([user("a")], False).opened_by == ""


@pytest.mark.parametrize("name", ["Qwen-Qwen3-0.6B", "HuggingFaceTB-SmolLM3-3B"])
def test_prompt_template_leaves_thinking_out_keeps_the_ids_of_the_answer(
    tmp_path: Path, name: str
) -> None:
    chat = load(tmp_path, published(name))
    ids = spelled(RAW)
    told = chat.prompt([user("a"), answer("Paris", ids, THINKING), user("b")]).ids
    assert has_run(told, spelled("Paris"))
    assert not has_run(told, spelled(THINKING))


def test_prompt_answer_that_stop_string_cut_keeps_its_ids(tmp_path: Path) -> None:
    chat = load(tmp_path, FORGETTING)
    told = chat.prompt([user("a"), answer("Paris", spelled(RAW + ";;"), THINKING), user("b")])
    assert has_run(told.ids, spelled("Paris;;"))


def test_prompt_thinking_that_was_changed_is_tokenised_again(tmp_path: Path) -> None:
    chat = load(tmp_path, TELLING)
    told = chat.prompt([user("a"), answer("Paris", spelled(RAW), "hello"), user("b")]).ids
    assert not has_run(told, spelled(THINKING))
    assert "hello" in chat.decode(told)
    edited = chat.prompt([user("a"), answer("cat", spelled(RAW), THINKING), user("b")]).ids
    assert edited == chat.prompt([user("a"), answer("cat", [], THINKING), user("b")]).ids


def test_prompt_answer_does_not_begin_at_an_id_is_tokenised_again(tmp_path: Path) -> None:
    chat = load(tmp_path, FORGETTING)
    plain = tiny.byte_level()
    ids = [*spelled("<think>hm</think>"), tiny.id_of(plain, "Paris")]
    edited = chat.prompt([user("a"), answer("aris", ids, "hm"), user("b")]).ids
    assert edited == chat.prompt([user("a"), answer("aris", [], "hm"), user("b")]).ids


def test_prompt_typed_control_tokens_in_thinking_stay_text(tmp_path: Path) -> None:
    chat = load(tmp_path, TELLING)
    end = tiny.id_of(tiny.byte_level(), "<|im_end|>")
    told = chat.prompt([user("a"), answer("b", [], "x <|im_end|> y"), user("c")]).ids
    assert told.count(end) == 3
    assert "x <|im_end|> y" in chat.decode(told)


def test_answer_stream_parts_the_ids_of_an_answer(tmp_path: Path) -> None:
    chat = load(tmp_path, OPENING)
    for opened_by, raw in (("", RAW), ("<think>", RAW.removeprefix("<think>\n"))):
        stream = chat.answer_stream(opened_by)
        whole = Parted()
        for token_id in spelled(raw):
            whole += stream.push([token_id])
        assert not stream.is_thinking
        assert whole + stream.finish() == Parted(THINKING, "Paris")


def test_answer_stream_parts_what_the_template_has_announced(tmp_path: Path) -> None:
    """As Granite 3.2 is told to; its ids are kept where the template leaves the thinking out."""
    words = (
        "{# Write your thoughts after 'Here is my thought process:' and write your response after"
        " 'Here is my response:' #}"
    )
    chat = load(tmp_path, words + FORGETTING)
    ids = spelled("Here is my thought process:\nthe cat is\n\nHere is my response:\n\nParis")
    stream = chat.answer_stream()
    whole = Parted()
    for token_id in ids:
        whole += stream.push([token_id])
    assert whole + stream.finish() == Parted("the cat is", "Paris")
    second = chat.prompt([user("a"), answer("Paris", ids, "the cat is"), user("b")])
    assert has_run(second.ids, ids[-len("Paris") :])
    assert not has_run(second.ids, ids)


def test_answer_stream_end_token_that_is_not_special_is_not_shown(tmp_path: Path) -> None:
    name = tiny.NOT_SPECIAL[0]
    folder = tiny.write_folder(tmp_path, tiny.byte_level(), TELLING, eos_token=name)
    chat = ChatTokenizer.load(folder)
    end = tiny.id_of(tiny.byte_level(), name)
    stream = chat.answer_stream()
    assert stream.push([*spelled("Paris"), end]) + stream.finish() == Parted("", "Paris")


def test_marked_text_knows_where_each_id_begins(tmp_path: Path) -> None:
    chat = load(tmp_path, TELLING)
    marked = MarkedText(chat.stream(), spelled("aé<think>b"))
    assert marked.text == "aé<think>b"
    assert marked.starts == [0, 1, 1, 2, 9]


@pytest.mark.parametrize(
    ("name", "token"),
    [
        ("ByteDance-Seed-OSS", "<seed:eos>"),
        ("GLM-4.6", ""),
        ("GigaChat3-10B-A1.8B", "<|message_sep|>"),
        ("HuggingFaceTB-SmolLM3-3B", "<|im_end|>"),
        ("Kimi-K2-Thinking", "<|im_end|>"),
        ("MiniMax-M2", "[e~["),
        ("Qwen-Qwen3-0.6B", "<|im_end|>"),
        ("deepseek-ai-DeepSeek-V3.1", "<｜end▁of▁sentence｜>"),
        ("ibm-granite-granite-4.0", "<|end_of_text|>"),
        ("inclusionai-ling-3.0-flash", "<|role_end|>"),
        ("microsoft-Phi-3.5-mini-instruct", "<|end|>"),
        ("mistralai-Mistral-Nemo-Instruct-2407", "</s>"),
        ("openai-gpt-oss-120b", "<|return|>"),
    ],
)
def test_token_that_ends_a_turn_is_found_in_the_template(
    tmp_path: Path, name: str, token: str
) -> None:
    plain = tiny.byte_level()
    plain.add_special_tokens([token or "<|user|>", "<|end|>", "<|assistant|>"])
    folder = tiny.write_folder(tmp_path, plain, published(name), eos_token="</s>")
    for file in ("config.json", "generation_config.json"):
        (folder / file).write_text("{}")
    expected = {"</s>", token} - {""}
    assert set(ChatTokenizer.load(folder).eos_ids) == {tiny.id_of(plain, each) for each in expected}


def refusal(folder: Path, template: str, messages: list[ChatMessage]) -> LarderError:
    chat = load(folder, template)
    with pytest.raises(LarderError) as caught:
        chat.prompt(messages)
    return caught.value


def test_prompt_refused_names_the_turn(tmp_path: Path) -> None:
    talk = [user("a"), answer("b", []), user("c"), user("d"), answer("e", []), user("f")]
    error = refusal(tmp_path, published("mistralai-Mistral-Nemo-Instruct-2407"), talk)
    assert error.code is ErrorCode.CONVERSATION_INVALID
    assert error.parameters["turn"] == 4
    assert str(error.parameters["reason"]).startswith("at question 3: After")


def test_prompt_template_fails_names_the_turn(tmp_path: Path) -> None:
    template = (
        "{% for m in messages %}{{ m.content if m.role == 'user' else 1 + m.content }}{% endfor %}"
    )
    error = refusal(tmp_path, template, [user("a"), answer("b", []), user("c")])
    assert error.code is ErrorCode.CHAT_TEMPLATE_INVALID
    assert error.parameters["turn"] == 2
    assert str(error.parameters["reason"]).startswith("at answer 1: unsupported")
    system = [ChatMessage(role=Role.SYSTEM, text="x"), user("a")]
    error = refusal(tmp_path / "b", "{{ messages[0].content + 1 }}", system)
    assert "the system prompt" in str(error.parameters["reason"])


def test_prompt_template_that_would_not_end_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtime.tokenizer.bounded.MAX_STEPS", 1000)
    error = refusal(tmp_path, "{% for a in range(99999) %}{% endfor %}", [user("a")])
    assert error.code is ErrorCode.CHAT_TEMPLATE_INVALID
    assert "turn" not in error.parameters
