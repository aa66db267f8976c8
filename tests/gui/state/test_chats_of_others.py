"""What else other programs' exports have: hidden notes, thoughts, names of models, moments."""

import json

import pytest

from app.state.chat_import import ImportedChat
from app.state.chat_reading import chats_of
from runtime.protocol.chat import Role

ASKED, ANSWERED = (Role.USER, "Why sour?"), (Role.ASSISTANT, "Acids.")
SOUR = [{"role": "user", "content": "Why sour?"}, {"role": "assistant", "content": "Acids."}]


def only(data: object) -> ImportedChat:
    (chat,) = chats_of(json.dumps(data).encode())
    return chat


def words(chat: ImportedChat) -> list[tuple[Role, str]]:
    return [(message.role, message.text) for message in chat.messages]


def note(role: str, kind: str, **content: object) -> dict[str, object]:
    return {"author": {"role": role}, "content": {"content_type": kind, **content}}


def tree(*messages: dict[str, object]) -> dict[str, object]:
    nodes = {str(n): {"message": each, "parent": str(n - 1)} for n, each in enumerate(messages)}
    return {"mapping": nodes, "current_node": str(len(messages) - 1)}


def test_tree_gives_no_hidden_notes_and_thoughts_as_thinking() -> None:
    hidden = {"metadata": {"is_visually_hidden_from_conversation": True}}
    chat = only(
        tree(
            note("user", "user_editable_context", text="I bake"),
            {**note("user", "text", parts=["Instructions are gone"]), **hidden},
            note("user", "text", parts=["Why sour?"]),
            note("assistant", "thoughts", thoughts=[{"summary": "S", "content": "hm"}]),
            {**note("assistant", "code", text="look()"), "recipient": "python"},
            note("tool", "execution_output", text="1"),
            note("assistant", "thoughts", thoughts=[{"content": "so"}, "x"]),
            note("assistant", "reasoning_recap", content="Thought for 5 seconds"),
            {**note("assistant", "text", parts=["Acids."]), "metadata": {"model_slug": "m-5"}},
        )
    )
    assert words(chat) == [ASKED, ANSWERED]
    assert chat.messages[1].thinking == "hm\n\nso"
    assert chat.messages[1].model_name == "m-5"


def test_thoughts_before_a_question_do_not_go_to_the_next_answer() -> None:
    chat = only(
        tree(
            note("assistant", "thoughts", thoughts=[{"content": "stopped"}]),
            note("user", "text", parts=["Why sour?"]),
            note("assistant", "text", parts=["Acids."]),
        )
    )
    assert [message.thinking for message in chat.messages] == ["", ""]


def test_chat_inside_of_a_row_is_read_with_what_stands_around_it() -> None:
    row = {"title": "Bread", "updated_at": 1_700_000_000, "chat": {"messages": SOUR}}
    chat = only([row])
    assert words(chat) == [ASKED, ANSWERED]
    assert (chat.title, chat.changed_at_s) == ("Bread", 1_700_000_000.0)


def test_messages_with_a_sender_are_read_with_their_date() -> None:
    rows = [
        {"sender": "human", "text": "Why sour?"},
        {
            "sender": "assistant",
            "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Acids."}],
        },
    ]
    chat = only([{"name": "Bread", "created_at": "2023-11-14T22:13:20Z", "chat_messages": rows}])
    assert words(chat) == [ASKED, ANSWERED]
    assert chat.messages[1].thinking == "hm"
    assert chat.changed_at_s == 1_700_000_000.0


def test_parts_that_are_reasoning_become_the_thinking() -> None:
    parts = [
        {"type": "reasoning", "text": {"value": "hm"}},
        {"type": "text", "text": {"value": "Acids."}},
    ]
    rows = [SOUR[0], {"role": "assistant", "content": parts, "created_at": 1_700_000_000_000}]
    chat = only(rows)
    assert words(chat) == [ASKED, ANSWERED]
    assert chat.messages[1].thinking == "hm"
    assert chat.changed_at_s == 1_700_000_000.0


def test_name_of_the_sender_is_the_model() -> None:
    answer = {"role": "assistant", "senderInfo": {"senderName": "tiny"}, "content": "Acids."}
    assert only([{"versions": [answer], "role": ""}]).messages[0].model_name == "tiny"


@pytest.mark.parametrize("moment", [1e30, "2023-99-99", "9" * 30, [], {}])
def test_moment_that_is_none_is_no_moment(moment: object) -> None:
    assert only({"messages": SOUR, "createdAt": moment}).changed_at_s == 0.0


def test_message_whose_text_stands_in_its_parts_alone_is_read() -> None:
    parts = [{"type": "text", "text": "Why sour?"}]
    chat = only({"chat_messages": [{"sender": "human", "text": "", "content": parts}]})
    assert words(chat) == [ASKED]


def test_answer_that_was_stopped_while_it_was_thought_of_is_read() -> None:
    stopped = {"role": "assistant", "text": "", "thinking": "Perhaps", "end": "stopped"}
    others = [{"role": name, "text": "", "thinking": "x"} for name in ("assistant", "user")]
    chat = only({"messages": [SOUR[0], stopped, *others]})
    assert words(chat) == [ASKED, (Role.ASSISTANT, "")]
    assert chat.messages[1].thinking == "Perhaps"
    assert chat.messages[1].end.value == "stopped"
    assert only({"messages": [stopped]}).title == "Perhaps"


@pytest.mark.parametrize(
    ("text", "thinking", "answer"),
    [
        ("{0}&gt; 1 &lt; 2\n&gt; so\n</details>\nAcids.", "1 < 2\nso", "Acids."),
        ("\n{0}> hm\n</details>\n\n{0}> so\n</details>Acids.", "hm\n\nso", "Acids."),
        ("{0}> never ends", "", "{0}> never ends"),
        ("Acids. {0}> later</details>", "", "Acids. {0}> later</details>"),
    ],
)
def test_thinking_that_folds_away_is_no_answer(text: str, thinking: str, answer: str) -> None:
    fold = '<details type="reasoning" done="true" duration="3">\n<summary>Thought</summary>\n'
    content = text.replace("{0}", fold)
    chat = only({"messages": [{"role": "assistant", "content": content}]})
    assert chat.messages[0].thinking == thinking
    assert chat.messages[0].text == answer.replace("{0}", fold)
