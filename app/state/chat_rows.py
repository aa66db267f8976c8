"""Reads the tree of messages of a chat."""

import sqlite3
from array import array

import msgspec

from app.state.chat_values import AnswerEnd, Message
from runtime.protocol.chat import GenerationStats, Role

_stats_decoder = msgspec.msgpack.Decoder(GenerationStats)


def branch_of(connection: sqlite3.Connection, chat_id: int) -> list[Message]:
    """Return the branch that is shown, from the first message on."""
    children = _children(connection, chat_id)
    parents = {child: parent for parent, below in children.items() for child in below}
    row = connection.execute("SELECT leaf_id FROM chats WHERE chat_id=?", (chat_id,)).fetchone()
    message_id: int | None = row[0] if row else None
    branch: list[Message] = []
    while message_id in parents:
        parent = parents[message_id]
        branch.append(_message(connection, message_id, children[parent]))
        message_id = parent
    return branch[::-1]


def tree_of(connection: sqlite3.Connection, chat_id: int) -> list[tuple[int | None, Message]]:
    """Return all messages, oldest first, each with the id of what it follows."""
    children = _children(connection, chat_id)
    found = [
        (parent, _message(connection, message_id, variants))
        for parent, variants in children.items()
        for message_id in variants
    ]
    return sorted(found, key=lambda each: each[1].message_id)


def leaf_below(connection: sqlite3.Connection, chat_id: int, message_id: int) -> int:
    """Return the newest end of the branches that go through a message."""
    children = _children(connection, chat_id)
    while message_id in children:
        message_id = children[message_id][-1]
    return message_id


def sibling_of(
    connection: sqlite3.Connection, chat_id: int, message_id: int, step: int
) -> int | None:
    """Return the variant so many steps after a message; None beyond the ends."""
    for variants in _children(connection, chat_id).values():
        if message_id in variants:
            position = variants.index(message_id) + step
            return variants[position] if 0 <= position < len(variants) else None
    return None


def _children(connection: sqlite3.Connection, chat_id: int) -> dict[int | None, list[int]]:
    """Return the messages of a chat by what they follow, oldest first."""
    children: dict[int | None, list[int]] = {}
    for message_id, parent_id in connection.execute(
        "SELECT message_id, parent_id FROM messages WHERE chat_id=? ORDER BY message_id",
        (chat_id,),
    ):
        children.setdefault(parent_id, []).append(message_id)
    return children


def _message(connection: sqlite3.Connection, message_id: int, variants: list[int]) -> Message:
    role, text, token_ids, ending, stats, model_name, thinking = connection.execute(
        "SELECT role, text, token_ids, ending, stats, model_name, thinking FROM messages"
        " WHERE message_id=?",
        (message_id,),
    ).fetchone()
    return Message(
        message_id=message_id,
        role=Role(role),
        text=text,
        token_ids=tuple(array("i", token_ids)),
        end=AnswerEnd(ending),
        stats=_stats_of(stats),
        model_name=model_name,
        variant_index=variants.index(message_id),
        num_variants=len(variants),
        thinking=thinking,
    )


def _stats_of(packed: bytes | None) -> GenerationStats | None:
    """Return kept statistics; None if there are none, or from a version that had others."""
    if packed is None:
        return None
    try:
        return _stats_decoder.decode(packed)
    except msgspec.DecodeError:
        return None
