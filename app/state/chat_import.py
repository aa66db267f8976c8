"""Reads chats out of files: our own JSON, and the exports of common programs.

Known are, each alone or in a list: a chat as Larder saves it; messages with ``role`` and
``content``, also one on each line; messages in versions of which one is selected; turns with
``from`` and ``value``; pairs of a question and an answer; a tree of messages with a current node;
messages with a ``sender``; a chat inside of a row with what a program keeps about it.
"""

import contextlib
import dataclasses
import datetime as dt
from collections.abc import Mapping, Sequence

import msgspec

from app.state.chat_titles import title_of
from app.state.chat_values import AnswerEnd
from app.state.thinking import split_thinking
from runtime.protocol.chat import GenerationStats, Role

MAX_IMPORT_BYTES = 64 << 20
"""A larger file would hold up the window while it is read."""
_MAX_TIME_S = 1 << 33
"""Larger numbers are milliseconds."""
_TIMES = ("update_time", "updated_at", "create_time", "created_at", "createdAt")
_THINKING = ("reasoning", "thinking")
_UNSAID = ("reasoning_recap", "user_editable_context", "model_editable_context")
"""Kinds of content that a program notes in a tree and does not show as something said."""
_BEGIN = "<|BEGIN-VISIBLE-CHAT|>"
"""Stands for the question before an answer that nobody asked for."""
_ENDS = frozenset(end.value for end in AnswerEnd if end is not AnswerEnd.GROWING)
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
    end: AnswerEnd = AnswerEnd.FINISHED
    stats: GenerationStats | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class ImportedChat:
    """One chat of a file, with at least one message."""

    title: str
    messages: tuple[ImportedMessage, ...]
    changed_at_s: float = 0.0
    """Seconds since 1970; 0 if the file does not say."""
    is_pinned: bool = False
    folder: str = ""
    preset: str = ""
    summary: str = ""
    num_untold: int = 0
    """Messages at the beginning that the model is not told; the summary stands for them."""


def chats_of(content: bytes) -> list[ImportedChat]:
    """Return the chats of a file, in its order; raise ``ChatImportError`` if there are none."""
    if len(content) > MAX_IMPORT_BYTES:
        raise ChatImportError(
            f"larger than the {MAX_IMPORT_BYTES >> 20} MiB that are read; export fewer chats"
        )
    data = _decoded(content.removeprefix(b"\xef\xbb\xbf"))
    found = [chat for chat in map(_chat_of, _candidates(data)) if chat is not None]
    if not found:
        raise ChatImportError(f"JSON without messages: {_outline(data)}")
    return found


def _decoded(content: bytes) -> object:
    """Return what a file of JSON holds, or in a list what each of its lines does."""
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return msgspec.json.Decoder().decode_lines(content)
        raise ChatImportError(f"not JSON: {error}") from error


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
    inner = data.get("chat")
    data = {**data, **inner} if isinstance(inner, dict) else data
    rows = (
        _said(_branch(data))
        or _mappings(data.get("messages"))
        or _mappings(data.get("conversations"))
        or _mappings(data.get("chat_messages"))
        or _turns(data.get("internal"))
    )
    read = [_message_of(row) for row in rows]
    found = [message for message in read if message is not None]
    if not found:
        return None
    untold = read[: _count(data.get("num_untold"))]
    return ImportedChat(
        _line(data.get("title") or data.get("name")) or title_of(found[0].text),
        tuple(found),
        _time(data) or _time(rows[-1]),
        is_pinned=data.get("is_pinned") is True,
        folder=_line(data.get("folder")),
        preset=_line(data.get("preset")),
        summary=_text(data.get("summary")),
        num_untold=sum(message is not None for message in untold),
    )


def _turns(pairs: object) -> list[Mapping[str, object]]:
    """Return the messages of pairs; one that is only a mark of the program is none."""
    rows: list[Mapping[str, object]] = []
    for pair in pairs if isinstance(pairs, list) else []:
        if isinstance(pair, list):
            roles = zip((Role.USER, Role.ASSISTANT), pair, strict=False)
            rows += [{"role": role.value, "text": text} for role, text in roles if text != _BEGIN]
    return rows


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


def _said(branch: list[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Return the messages that were shown, each answer with the thoughts that came before it."""
    said: list[Mapping[str, object]] = []
    thoughts: list[str] = []
    for row in branch:
        content, metadata = _mapping(row.get("content")), _mapping(row.get("metadata"))
        kind = content.get("content_type")
        if kind == "thoughts":
            thoughts += [_text(each.get("content")) for each in _mappings(content.get("thoughts"))]
        elif kind not in _UNSAID and not metadata.get("is_visually_hidden_from_conversation"):
            is_answer = _is_shown(row) and _role_of(row) is Role.ASSISTANT
            said.append({"thinking": _text(thoughts), **row} if is_answer else row)
            if is_answer or _role_of(row) is Role.USER:
                thoughts = []
    return said


def _is_shown(row: Mapping[str, object]) -> bool:
    """Whether a message is to all: what a model says to a tool is no answer."""
    return row.get("recipient", "all") == "all"


def _role_of(row: Mapping[str, object]) -> Role | None:
    author = row.get("author")
    names = (row.get(key) for key in ("role", "from", "sender"))
    name = author.get("role") if isinstance(author, dict) else next(filter(None, names), None)
    return _ROLES.get(name) if isinstance(name, str) else None


def _model_of(row: Mapping[str, object]) -> str:
    """Return the name of the model that wrote a message."""
    metadata, sender = _mapping(row.get("metadata")), _mapping(row.get("senderInfo"))
    return _line(row.get("model") or metadata.get("model_slug") or sender.get("senderName"))


def _message_of(row: Mapping[str, object]) -> ImportedMessage | None:
    """Return a message; None for one of another role, or without a text."""
    row = _selected(row)
    role = _role_of(row)
    if role is None or not _is_shown(row):
        return None
    value = next((row[key] for key in ("text", "content", "value") if key in row), None)
    thought = [part for part in _mappings(row.get("content")) if part.get("type") in _THINKING]
    thinking = _text(row.get("thinking") or row.get("reasoning_content") or thought)
    if isinstance(value, list):
        value = [part for part in value if part not in thought]
    text = _text(value)
    if value is None:
        steps = _mappings(row.get("steps"))
        thinking = _text([step for step in steps if _is_thinking(step)])
        text = _text([step for step in steps if not _is_thinking(step)])
    if role is Role.ASSISTANT and not thinking:
        thinking, text = split_thinking(text)
    if not text.strip():
        return None
    end, stats = row.get("end"), None
    with contextlib.suppress(msgspec.ValidationError):
        stats = msgspec.convert(row.get("stats"), GenerationStats | None)
    return ImportedMessage(
        role,
        text.strip(),
        thinking,
        _model_of(row),
        AnswerEnd(end) if isinstance(end, str) and end in _ENDS else AnswerEnd.FINISHED,
        stats,
    )


def _is_thinking(step: Mapping[str, object]) -> bool:
    style = step.get("style")
    return isinstance(style, dict) and style.get("type") == "thinking"


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
        names = ("parts", "text", "content", "value", "thinking")
        return _text(next((value[name] for name in names if value.get(name)), None))
    if isinstance(value, list):
        return "\n\n".join(text for text in map(_text, value) if text)
    return ""


def _line(value: object) -> str:
    """Return a text as a name that stands in one line."""
    return " ".join(_text(value).split())


def _count(value: object) -> int:
    """Return a number of messages; 0 for what cannot be that."""
    return value if isinstance(value, int) and value > 0 else 0


def _time(row: Mapping[str, object]) -> float:
    """Return when something was last changed or made, in seconds since 1970; 0 if it is not told.

    Programs write it in seconds, in milliseconds, or as a date.
    """
    value = next((row[key] for key in _TIMES if row.get(key)), None)
    if isinstance(value, str):
        with contextlib.suppress(ValueError, OverflowError, OSError):
            value = dt.datetime.fromisoformat(value).timestamp()
    if isinstance(value, int | float) and _MAX_TIME_S <= value < _MAX_TIME_S * 1000:
        value /= 1000
    return float(value) if isinstance(value, int | float) and 0 < value < _MAX_TIME_S else 0.0


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _mappings(value: object) -> list[Mapping[str, object]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _outline(data: object) -> str:
    """Say what JSON holds, for a person who looks into the file."""
    if isinstance(data, dict):
        return "an object with " + (_listed(list(data)) or "nothing in it")
    return f"a list of {len(data)}" if isinstance(data, list) else f"one {type(data).__name__}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(name[:40] for name in names[:6])
