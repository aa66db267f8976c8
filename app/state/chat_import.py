"""Reads chats out of files: our own JSON, and the exports of common programs.

Known are, each alone or in a list: a chat as Larder saves it; messages with ``role`` and
``content``; messages in versions of which one is selected; turns with ``from`` and ``value``; a
tree of messages with a current node.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import msgspec

from app.state.chat_titles import title_of
from app.state.thinking import split_thinking
from runtime.protocol.chat import Role

MAX_IMPORT_BYTES = 64 << 20
"""A larger file would hold up the window while it is read."""
_MAX_TIME_S = 1 << 33
_ROLES = {
    "user": Role.USER,
    "human": Role.USER,
    "assistant": Role.ASSISTANT,
    "gpt": Role.ASSISTANT,
    "model": Role.ASSISTANT,
}


class ChatImportError(Exception):
    """No chat was found; the text says what the file holds instead, in technical words."""


@dataclasses.dataclass(frozen=True, slots=True)
class ImportedMessage:
    """One question or answer of a file."""

    role: Role
    text: str
    thinking: str = ""
    model_name: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ImportedChat:
    """One chat of a file, with at least one message."""

    title: str
    messages: tuple[ImportedMessage, ...]
    changed_at_s: float = 0.0
    """Seconds since 1970; 0 if the file does not say."""


def chats_of(content: bytes) -> list[ImportedChat]:
    """Return the chats of a file, in its order; raise ``ChatImportError`` if there are none."""
    if len(content) > MAX_IMPORT_BYTES:
        raise ChatImportError(
            f"larger than the {MAX_IMPORT_BYTES >> 20} MiB that are read; export fewer chats"
        )
    try:
        data = msgspec.json.decode(content.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ChatImportError(f"not JSON: {error}") from error
    found = [chat for chat in map(_chat_of, _candidates(data)) if chat is not None]
    if not found:
        raise ChatImportError(f"JSON without messages: {_outline(data)}")
    return found


def _candidates(data: object) -> list[Mapping[str, object]]:
    """Return what may be chats."""
    if isinstance(data, list):
        rows = _mappings(data)
        is_bare = bool(rows) and all("role" in row or "from" in row for row in rows)
        return [{"messages": rows}] if is_bare else rows
    if not isinstance(data, dict):
        return []
    return _mappings(data.get("chats")) or [data]


def _chat_of(data: Mapping[str, object]) -> ImportedChat | None:
    rows = _branch(data) or _mappings(data.get("messages")) or _mappings(data.get("conversations"))
    found = [message for message in map(_message_of, rows) if message is not None]
    if not found:
        return None
    title = " ".join(_text(data.get("title") or data.get("name")).split())
    changed_at_s = _time(data.get("update_time") or data.get("create_time"))
    return ImportedChat(title or title_of(found[0].text), tuple(found), changed_at_s)


def _branch(data: Mapping[str, object]) -> list[Mapping[str, object]]:
    """Return the messages from the root of a tree to its current node."""
    nodes = data.get("mapping")
    if not isinstance(nodes, dict):
        return []
    branch: list[Mapping[str, object]] = []
    node_id = data.get("current_node")
    # A file may be in a circle; no branch is longer than the tree.
    for _ in range(len(nodes)):
        node = nodes.get(node_id) if isinstance(node_id, str) else None
        if not isinstance(node, dict):
            break
        branch += _mappings([node.get("message")])
        node_id = node.get("parent")
    return branch[::-1]


def _message_of(row: Mapping[str, object]) -> ImportedMessage | None:
    """Return a message; None for one of another role, or without a text."""
    row = _selected(row)
    author = row.get("author")
    name = author.get("role") if isinstance(author, dict) else row.get("role") or row.get("from")
    role = _ROLES.get(name) if isinstance(name, str) else None
    if role is None:
        return None
    value = next((row[key] for key in ("text", "content", "value", "steps") if key in row), None)
    text, thinking = _text(value), _text(row.get("thinking") or row.get("reasoning_content"))
    if role is Role.ASSISTANT and not thinking:
        thinking, text = split_thinking(text)
    if not text.strip():
        return None
    return ImportedMessage(role, text.strip(), thinking, _text(row.get("model")))


def _selected(row: Mapping[str, object]) -> Mapping[str, object]:
    """Return the version of a message that was shown."""
    versions = _mappings(row.get("versions"))
    chosen = row.get("currentlySelected")
    if not versions:
        return row
    if isinstance(chosen, int) and 0 <= chosen < len(versions):
        return versions[chosen]
    return versions[-1]


def _text(value: object) -> str:
    """Return the text of a value that is one, or that has parts of which some are."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return _text(value.get("parts") or value.get("text") or value.get("content"))
    if isinstance(value, list):
        return "\n\n".join(text for text in map(_text, value) if text)
    return ""


def _time(value: object) -> float:
    """Return seconds since 1970; 0 for what cannot be that."""
    if isinstance(value, int | float) and 0 < value < _MAX_TIME_S:
        return float(value)
    return 0.0


def _mappings(value: object) -> list[Mapping[str, object]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _outline(data: object) -> str:
    """Say what JSON holds, for a person who looks into the file."""
    if isinstance(data, dict):
        return "an object with " + (_listed(list(data)) or "nothing in it")
    return f"a list of {len(data)}" if isinstance(data, list) else f"one {type(data).__name__}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(name[:40] for name in names[:6])
