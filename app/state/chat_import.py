"""Reads chats out of JSON: our own, and the exports of common programs.

Known are, each alone or in a list: a chat as Larder saves it; messages with ``role`` and
``content``, also one on each line; messages in versions of which one is selected; turns with
``from`` and ``value``; pairs of a question and an answer; a tree of messages with a current node;
messages with a ``sender``; a chat inside of a row with what a program keeps about it.
"""

import contextlib
import dataclasses
import datetime as dt
from collections.abc import Mapping

import msgspec

from app.state.chat_titles import title_of
from app.state.chat_trees import Rows, mapping, mappings, nodes_of, selected, with_versions
from app.state.chat_values import AnswerEnd
from app.state.thinking import split_folds, split_thinking
from runtime.protocol.chat import GenerationStats, Role

_MAX_TIME_S = 1 << 33
"""Larger numbers are milliseconds."""
_TIMES = ("update_time", "updated_at", "create_time", "created_at", "createdAt")
_THINKING = ("reasoning", "thinking")
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
class Branched:
    """A message of a chat with several branches."""

    message: ImportedMessage
    parent: int | None
    """The place of the one before it, among all of the chat; None for a first one."""


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
    branches: tuple[Branched, ...] = ()
    """All messages, those that are shown too, oldest first; empty where there is one branch."""
    shown: tuple[int, ...] = ()
    """The places of ``messages`` among them."""


def rows_of(
    chat: ImportedChat,
) -> tuple[list[ImportedMessage], list[int | None], tuple[int, ...]]:
    """Return all messages of a chat, the place of what each follows, and those of the shown."""
    if chat.branches:
        messages = [each.message for each in chat.branches]
        return messages, [each.parent for each in chat.branches], chat.shown
    places = range(len(chat.messages))
    return list(chat.messages), [place - 1 if place else None for place in places], tuple(places)


def chat_of(data: Mapping[str, object]) -> ImportedChat | None:
    """Return the chat that an object is; None if it is none, or says nothing."""
    inner = data.get("chat")
    data = {**data, **inner} if isinstance(inner, dict) else data
    shown, others = _tree_of(data)
    rows = shown or _rows_of(data)
    if not shown:
        shown, others = with_versions(rows)
    read = [_message_of(row) for row in rows]
    found = [message for message in read if message is not None]
    if not found:
        return None
    untold = read[: _count(data.get("num_untold"))]
    branches, path = _branches(shown, others) if others else ((), ())
    return ImportedChat(
        _line(data.get("title") or data.get("name"))
        or title_of(found[0].text or found[0].thinking),
        tuple(found),
        _time(data) or _time(rows[-1]),
        is_pinned=data.get("is_pinned") is True,
        folder=_line(data.get("folder")),
        preset=_line(data.get("preset")),
        summary=_text(data.get("summary")),
        num_untold=sum(message is not None for message in untold),
        branches=branches,
        shown=path,
    )


def _rows_of(data: Mapping[str, object]) -> Rows:
    return (
        mappings(data.get("messages"))
        or mappings(data.get("conversations"))
        or mappings(data.get("chat_messages"))
        or _turns(data.get("internal"))
    )


def _tree_of(data: Mapping[str, object]) -> tuple[Rows, Rows]:
    """Return the messages of a tree that are shown and the others; nothing if it is none."""
    others = mappings(data.get("branches"))
    if others:
        return mappings(data.get("messages")), others
    nodes, current = mapping(data.get("mapping")), data.get("current_node")
    if not nodes:
        history = mapping(data.get("history"))
        current = history.get("currentId")
        nodes = {
            node_id: {"parent": mapping(row).get("parentId"), "message": row}
            for node_id, row in mapping(history.get("messages")).items()
        }
    return nodes_of(nodes, current, _kind_of)


def _kind_of(row: Mapping[str, object]) -> Role | None:
    """Return whose message a node has that was shown to a person; None for what was not."""
    return _role_of(row) if _is_shown(row) else None


def _branches(shown: Rows, others: Rows) -> tuple[tuple[Branched, ...], tuple[int, ...]]:
    """Return all messages with what each follows, and which are shown; nothing if that is not told.

    Each has a number, larger than that of what it follows.
    """
    numbered = {_number(row.get("number")): row for row in (*shown, *others)}
    kept: list[Branched] = []
    place: dict[int | None, int | None] = {None: None}
    """By number where the message is, or what comes before one that says nothing."""
    for number, row in sorted(numbered.items()):
        parent = row.get("parent")
        parent = None if parent is None else _number(parent)
        if parent not in place:
            return (), ()
        place[number] = above = place[parent]
        message = _message_of(row)
        if message is not None:
            place[number] = len(kept)
            kept.append(Branched(message, above))
    path = [place[_number(row.get("number"))] for row in shown if _message_of(row) is not None]
    followed = [kept[each].parent for each in path if each is not None]
    if len(numbered) < len(shown) + len(others) or followed != [None, *path][: len(path)]:
        return (), ()
    return tuple(kept), tuple(each for each in path if each is not None)


def _turns(pairs: object) -> list[Mapping[str, object]]:
    """Return the messages of pairs; one that is only a mark of the program is none."""
    rows: list[Mapping[str, object]] = []
    for pair in pairs if isinstance(pairs, list) else []:
        if isinstance(pair, list):
            roles = zip((Role.USER, Role.ASSISTANT), pair, strict=False)
            rows += [{"role": role.value, "text": text} for role, text in roles if text != _BEGIN]
    return rows


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
    metadata, sender = mapping(row.get("metadata")), mapping(row.get("senderInfo"))
    return _line(row.get("model") or metadata.get("model_slug") or sender.get("senderName"))


def _message_of(row: Mapping[str, object]) -> ImportedMessage | None:
    """Return a message; None for one of another role, or that neither says nor thinks."""
    row = selected(row)
    role = _role_of(row)
    if role is None or not _is_shown(row):
        return None
    value = next((row[key] for key in ("text", "content", "value") if row.get(key)), None)
    thought = [part for part in mappings(row.get("content")) if part.get("type") in _THINKING]
    thinking = _text(row.get("thinking") or row.get("reasoning_content") or thought)
    if isinstance(value, list):
        value = [part for part in value if part not in thought]
    text = _text(value)
    if value is None and (steps := mappings(row.get("steps"))):
        thinking = _text([step for step in steps if _is_thinking(step)])
        text = _text([step for step in steps if not _is_thinking(step)])
    if role is Role.ASSISTANT and not thinking:
        thinking, text = split_folds(text)
    if role is Role.ASSISTANT and not thinking:
        thinking, text = split_thinking(text)
    end, stats = row.get("end"), None
    # Of other programs what was only thought comes before an answer that says something.
    is_told = role is Role.ASSISTANT and end is not None and bool(thinking.strip())
    if not text.strip() and not is_told:
        return None
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


def _number(value: object) -> int:
    """Return the number of a message; -1 for what is none."""
    return value if type(value) is int and value >= 0 else -1


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
