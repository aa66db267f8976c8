"""Chats out of files: our own, other programs', and files that hold none."""

import dataclasses
import json

import pytest
from pytestqt.qtbot import QtBot

from app.state.chat import ChatState
from app.state.chat_import import (
    ChatImportError,
    ImportedChat,
    ImportedMessage,
)
from app.state.chat_reading import HeldChats, ImportEnd, chats_of
from app.state.chat_store import ChatStore
from app.state.chat_values import AnswerEnd, ChatDetails
from app.state.import_flow import ImportFlow
from runtime.protocol.chat import Role
from tests.support.chat_talks import add_talk, titles
from tests.support.fake_client import FakeClient
from tests.support.played_answers import talk, texts

TREE = [
    {
        "title": "Bread",
        "create_time": 1_700_000_000.5,
        "current_node": "d",
        "mapping": {
            "a": {"message": None, "parent": None, "children": ["b"]},
            "s": {"message": {"author": {"role": "system"}, "content": {"parts": ["Be kind"]}}},
            "b": {
                "message": {"author": {"role": "user"}, "content": {"parts": ["Why sour?"]}},
                "parent": "a",
            },
            "c": {
                "message": {"author": {"role": "assistant"}, "content": {"parts": ["Old"]}},
                "parent": "b",
            },
            "d": {
                "message": {
                    "author": {"role": "assistant"},
                    "content": {"content_type": "text", "parts": ["Acids.", {"image": 1}]},
                },
                "parent": "b",
            },
        },
    }
]
VERSIONS = {
    "name": "Bread",
    "messages": [
        {
            "versions": [{"role": "user", "content": [{"type": "text", "text": "Why sour?"}]}],
            "currentlySelected": 0,
        },
        {
            "versions": [
                {"role": "assistant", "content": "Old"},
                {
                    "role": "assistant",
                    "steps": [
                        {
                            "type": "contentBlock",
                            "style": {"type": "thinking", "ended": True},
                            "content": [{"type": "text", "text": "hm"}],
                        },
                        {"type": "contentBlock", "content": [{"text": "Acids."}]},
                    ],
                },
            ],
            "currentlySelected": 7,
        },
    ],
}
BARE: list[dict[str, object]] = [
    {"role": "system", "content": "Be kind"},
    {"role": "user", "content": "Why sour?"},
    {"role": "assistant", "content": "<think>hm</think>Acids.", "model": "tiny"},
    {"role": "assistant", "content": " "},
    {"role": 7, "content": "x"},
]
TURNS = {"conversations": [{"from": "human", "value": "Why sour?"}, {"from": "gpt", "value": "A"}]}


PAIRS = {
    "internal": [["<|BEGIN-VISIBLE-CHAT|>", "Hello."], ["Why sour?", "Acids."], "x", [3]],
    "visible": [["", "Hello."], ["Why sour?", "<p>Acids.</p>"]],
}
LINES = (
    b'{"object": "thread.message", "role": "user", "content": [{"type": "text", "text": '
    b'{"value": "Why sour?", "annotations": []}}]}\n'
    b'{"role": "assistant", "content": [{"type": "text", "text": {"value": "Acids."}}]}\n'
)


def only(data: object) -> ImportedChat:
    (chat,) = chats_of(json.dumps(data).encode())
    return chat


def words(chat: ImportedChat) -> list[tuple[Role, str]]:
    return [(message.role, message.text) for message in chat.messages]


SOUR = [(Role.USER, "Why sour?"), (Role.ASSISTANT, "Acids.")]


def test_tree_gives_the_branch_of_its_current_node() -> None:
    chat = only(TREE)
    assert (chat.title, chat.changed_at_s) == ("Bread", 1_700_000_000.5)
    assert words(chat) == SOUR


def test_pairs_give_what_was_said_without_the_marks_of_the_program() -> None:
    assert words(only(PAIRS)) == [(Role.ASSISTANT, "Hello."), *SOUR]


def test_messages_one_on_each_line_are_one_chat() -> None:
    (chat,) = chats_of(LINES)
    assert words(chat) == SOUR


def test_what_a_model_says_to_a_tool_is_no_answer() -> None:
    call = {"role": "assistant", "content": "search()", "recipient": "browser"}
    assert words(only([*BARE, call])) == SOUR


def test_circle_in_a_tree_ends() -> None:
    node = {"message": {"author": {"role": "user"}, "content": {"parts": ["x"]}}, "parent": "a"}
    assert len(only({"mapping": {"a": node}, "current_node": "a"}).messages) == 1


@pytest.mark.parametrize("current", ["gone", 3])
def test_tree_without_its_node_holds_nothing(current: object) -> None:
    with pytest.raises(ChatImportError):
        only({"mapping": {"a": {}}, "current_node": current})


def test_versions_give_the_selected_one_or_the_last() -> None:
    chat = only(VERSIONS)
    assert words(chat) == SOUR
    assert chat.messages[1].thinking == "hm"
    first = {**VERSIONS["messages"][1], "currentlySelected": 0}  # type: ignore[dict-item]
    assert words(only([{"name": "n", "messages": [first]}])) == [(Role.ASSISTANT, "Old")]


def test_bare_messages_are_one_chat_with_its_thinking_apart() -> None:
    chat = only(BARE)
    assert words(chat) == SOUR
    assert chat.title == "Why sour?"
    assert chat.messages[1] == ImportedMessage(Role.ASSISTANT, "Acids.", "hm", "tiny")
    assert words(only(TURNS)) == [(Role.USER, "Why sour?"), (Role.ASSISTANT, "A")]


@pytest.mark.parametrize("moment", [0, -1, 1e30, "yesterday", None, True])
def test_moment_that_is_none_is_left_out(moment: object) -> None:
    chat = only({"messages": BARE, "update_time": moment})
    assert chat.changed_at_s in (0.0, 1.0)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"# Bread", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"{}", "an object with nothing in it"),
        (b'{"mapping": {}, "messages": [{"role": "system", "content": "x"}]}', "mapping, messages"),
        (b"[1, 2]", "a list of 2"),
        (b"[]", "a list of 0"),
        (b"3", "one number"),
    ],
)
def test_file_without_chats_says_what_it_holds(content: bytes, told: str) -> None:
    with pytest.raises(ChatImportError, match=told):
        chats_of(content)


def test_what_was_saved_comes_back_with_its_thinking(
    chat: ChatState, client: FakeClient, qtbot: QtBot
) -> None:
    talk(chat, client, "Why sour?", "Acids.")
    assert chat.chat_id is not None
    saved = chat.export_json(chat.chat_id).encode()
    again = chats_of(b"\xef\xbb\xbf" + saved)
    assert [words(each) for each in again] == [SOUR]
    with qtbot.waitSignal(chat.imported) as imported:
        chat.import_chats(HeldChats([*again, *chats_of(b'{"chats": [' + saved + b"]}")]))
    assert imported.args == [ImportEnd(2)]
    assert [heading.title for heading in chat.chats] == ["Why sour?"] * 3
    chat.open_chat(chat.chats[0].chat_id)
    assert texts(chat) == ["Why sour?", "Acids."]
    chat.search("Acids")
    assert len(chat.chats) == 3


def test_folder_preset_summary_and_ends_of_a_saved_chat_come_back(
    chat: ChatState, client: FakeClient, qtbot: QtBot
) -> None:
    talk(chat, client, "Why sour?", "Acids.")
    talk(chat, client, "And sweet?", "Sugars.")
    first = chat.chat_id
    assert first is not None
    store = chat._store
    store.move_chat(first, "Kitchen")
    store.set_preset(first, "Baker")
    store.pin_chat(first, is_pinned=True)
    store.set_told_from(first, chat.messages[2].message_id, "Of sour.")
    before = store.details(first)
    cut = dataclasses.replace(chat.messages[3], end=AnswerEnd.STOPPED)
    store.settle(first, cut)
    with qtbot.waitSignal(chat.imported):
        chat.import_chats(HeldChats(chats_of(chat.export_json(first).encode())))
    (second,) = (each.chat_id for each in chat.chats if each.chat_id != first)
    after = store.details(second)
    messages = store.messages(second)
    assert dataclasses.replace(after, told_from_id=0, changed_at_s=0.0) == dataclasses.replace(
        before, told_from_id=0, changed_at_s=0.0
    )
    assert after.told_from_id == messages[2].message_id
    assert [each.end for each in messages] == [AnswerEnd.FINISHED] * 3 + [AnswerEnd.STOPPED]
    assert messages[1].stats == chat.messages[1].stats
    assert messages[1].stats is not None
    assert store.details(0) == ChatDetails("")


def test_chat_of_which_nothing_is_told_stays_so_until_more_is_asked(store: ChatStore) -> None:
    saved = {"messages": [BARE[3], *BARE[1:3]], "num_untold": 3, "summary": "Of sour."}
    chat_id = store.add_chat(only(saved))
    newest = store.messages(chat_id)[-1].message_id
    assert store.told_from(chat_id) == newest + 1
    assert store.add_message(chat_id, newest, Role.USER, "And?") > newest


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"num_untold": -1}, 0),
        ({"num_untold": "all"}, 0),
        ({"num_untold": 99}, 2),
        ({"num_untold": 1}, 0),
        ({"num_untold": 2}, 1),
    ],
)
def test_number_of_untold_messages_counts_those_that_are_read(
    changed: dict[str, object], expected: int
) -> None:
    assert only({"messages": BARE, **changed}).num_untold == expected


@pytest.mark.parametrize("end", ["growing", "never", 3, None, []])
def test_end_or_statistics_that_are_none_are_left_out(end: object) -> None:
    answer: dict[str, object] = {**BARE[2], "end": end, "stats": {"tokens": "many"}}
    message = only([answer]).messages[0]
    assert (message.end, message.stats) == (AnswerEnd.FINISHED, None)


def test_import_that_is_cut_short_by_the_end_is_carried_out(chat: ChatState, qtbot: QtBot) -> None:
    chat.import_chats(HeldChats(chats_of(json.dumps(BARE).encode())))
    chat._imports.finish()
    assert [heading.title for heading in chat.chats] == ["Why sour?"]
    chat._imports.finish()


def test_long_import_gives_the_window_back(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.state.import_flow.SLICE_S", 0.0)
    kept: list[ImportedChat] = []
    flow = ImportFlow(kept.append)
    one, two = (ImportedChat(name, (ImportedMessage(Role.USER, "x"),)) for name in "ab")
    flow.start(HeldChats([one, two]))
    assert kept == []
    with qtbot.waitSignal(flow.ended) as ended:
        pass
    assert ended.args == [ImportEnd(2)]
    assert [chat.title for chat in kept] == ["a", "b"]
    assert kept[0].changed_at_s > kept[1].changed_at_s > 0, "the first of a file is the newest"


def test_pinned_chat_stays_on_top_until_it_is_let_go(store: ChatStore) -> None:
    old = add_talk(store, "old")
    add_talk(store, "new")
    store.pin_chat(old, is_pinned=True)
    assert titles(store) == ["old", "new"]
    assert [heading.is_pinned for heading in store.headings()] == [True, False]
    assert titles(store, "Because") == ["old", "new"]
    store.pin_chat(old, is_pinned=False)
    assert titles(store) == ["new", "old"]


def test_pin_of_the_state_shows_in_the_list(chat: ChatState, client: FakeClient) -> None:
    talk(chat, client, "one", "first")
    assert chat.chat_id is not None
    chat.pin_chat(chat.chat_id, is_pinned=True)
    assert [heading.is_pinned for heading in chat.chats] == [True]
