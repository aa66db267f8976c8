"""Chats to fill a store with, and a time of day that a test moves."""

from pathlib import Path

from app.state.chat_store import ChatStore
from app.state.chat_values import AnswerEnd, ChatNotice, Message
from runtime.protocol.chat import Role
from tests.support.window_values import some_stats


class Clock:
    """A time of day that the test moves."""

    def __init__(self) -> None:
        self.now_s = 1_800_000_000.0

    def __call__(self) -> float:
        self.now_s += 1.0
        return self.now_s


def add_talk(store: ChatStore, title: str, answer: str = "Because.") -> int:
    """Make a chat with one question and a finished answer; return its id."""
    chat_id = store.new_chat(title)
    question = store.add_message(chat_id, None, Role.USER, title)
    message_id = store.add_message(chat_id, question, Role.ASSISTANT, "", "tiny")
    store.settle(
        chat_id,
        Message(message_id, Role.ASSISTANT, answer, (1, 2), AnswerEnd.FINISHED, some_stats()),
    )
    return chat_id


def titles(store: ChatStore, search: str = "") -> list[str]:
    return [heading.title for heading in store.headings(search)]


def notices(store: ChatStore) -> list[ChatNotice]:
    return [notice for notice, _ in store.take_notices()]


def fill(path: Path, num_chats: int) -> None:
    """Make a file with chats of four messages each, the last of them the newest."""
    store = ChatStore(path)
    connection = store._database.connection
    connection.execute("BEGIN")
    for number in range(1, num_chats + 1):
        connection.execute(
            "INSERT INTO chats VALUES (?, ?, ?, NULL, ?, 0, 0, '', '', '')",
            (number, f"chat {number}", float(number), number * 10 + 3),
        )
        for turn in range(4):
            connection.execute(
                "INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, 'finished', NULL, 'tiny', '')",
                (number * 10 + turn, number, number * 10 + turn - 1 if turn else None,
                 "assistant" if turn % 2 else "user", "many words " * 100, b"\0" * 800),
            )  # fmt: skip
            connection.execute(
                "INSERT INTO words (rowid, text) VALUES (?, ?)",
                (number * 10 + turn, f"many words in chat {number}"),
            )
    connection.execute("COMMIT")
    store.close()
