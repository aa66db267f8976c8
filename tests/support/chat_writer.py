"""A program that writes a growing answer until it is killed, telling each save on its output."""

import sys
from pathlib import Path

from app.state.chat_store import ChatStore
from app.state.chat_values import Message
from runtime.protocol.chat import Role


def main() -> None:
    """Write to the database that the first argument names."""
    store = ChatStore(Path(sys.argv[1]))
    chat_id = store.new_chat("Killed")
    question = store.add_message(chat_id, None, Role.USER, "Why?")
    answer = store.add_message(chat_id, question, Role.ASSISTANT, "", "tiny")
    for number in range(1, 1_000_000):
        ids = list(range(number))
        text = "".join(f"{item} " for item in ids)
        store.grow(chat_id, Message(answer, Role.ASSISTANT, text), ids)
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
