"""Trees of messages as other programs save them, as rows that say which follows which.

Each row gets a ``number``, and the number of its ``parent``, which is smaller.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from runtime.protocol.chat import Role

Rows = list[Mapping[str, object]]
_UNSAID = ("reasoning_recap", "user_editable_context", "model_editable_context")
"""Kinds of content that a program notes in a tree and does not show as something said."""


class _Walk(NamedTuple):
    """A node to look at, below a number, with what was thought before it."""

    node_id: str
    parent: int | None
    thoughts: tuple[str, ...]


def nodes_of(
    nodes: Mapping[str, object],
    current: object,
    kind_of: Callable[[Mapping[str, object]], Role | None],
) -> tuple[Rows, Rows]:
    """Return the messages on the way to the current node of a tree, and all others.

    ``kind_of`` says whose a message is, None if it was not shown. A file may be in a circle, which
    is cut where the way to the current node begins, or name nodes that are not there: what no root
    leads to is left out.
    """
    path = _path_to(nodes, current)
    first = next(reversed(path), None)
    below: dict[object, list[str]] = {}
    for node_id, node in nodes.items():
        parent = mapping(node).get("parent")
        is_root = node_id == first or not isinstance(parent, str) or parent not in nodes
        below.setdefault(None if is_root else parent, []).append(node_id)
    shown: Rows = []
    others: Rows = []
    waiting = [_Walk(node_id, None, ()) for node_id in reversed(below.get(None, []))]
    number = 0
    while waiting:
        node_id, parent, thoughts = waiting.pop()
        row = mapping(mapping(nodes[node_id]).get("message"))
        if row:
            row, thoughts = _said(row, thoughts, kind_of(row))
        if row:
            number += 1
            (shown if node_id in path else others).append(
                {**row, "number": number, "parent": parent}
            )
            parent = number
        children = below.get(node_id, [])
        waiting += [_Walk(child, parent, thoughts) for child in reversed(children)]
    return (shown, others) if shown else ([], [])


def _path_to(nodes: Mapping[str, object], current: object) -> dict[str, None]:
    """Return the nodes on the way up from one."""
    path: dict[str, None] = {}
    while isinstance(current, str) and current in nodes and current not in path:
        path[current] = None
        current = mapping(nodes[current]).get("parent")
    return path


def _said(
    row: Mapping[str, object], thoughts: tuple[str, ...], kind: Role | None
) -> tuple[Mapping[str, object], tuple[str, ...]]:
    """Return a message that was shown, an answer with the thoughts that came before it.

    Empty for others; and the thoughts that still wait for their answer.
    """
    content, metadata = mapping(row.get("content")), mapping(row.get("metadata"))
    named = content.get("content_type")
    if named == "thoughts":
        found = [each.get("content") for each in mappings(content.get("thoughts"))]
        return {}, (*thoughts, *(text for text in found if isinstance(text, str)))
    if named in _UNSAID or metadata.get("is_visually_hidden_from_conversation"):
        return {}, thoughts
    if kind is Role.ASSISTANT:
        return {"thinking": list(thoughts), **row}, ()
    return row, () if kind is Role.USER else thoughts


def with_versions(rows: Rows) -> tuple[Rows, Rows]:
    """Return messages, and the versions of them that were not chosen; nothing if there are none."""
    shown: Rows = []
    others: Rows = []
    number = 0
    parent: int | None = None
    own: int | None = None
    for row in rows:
        chosen = selected(row)
        for version in mappings(row.get("versions")) or [row]:
            number += 1
            (shown if version is chosen else others).append(
                {**version, "number": number, "parent": parent}
            )
            if version is chosen:
                own = number
        parent = own
    return (shown, others) if others else ([], [])


def selected(row: Mapping[str, object]) -> Mapping[str, object]:
    """Return the version of a message that was shown."""
    versions = mappings(row.get("versions"))
    chosen = row.get("currentlySelected")
    if not versions:
        return row
    if isinstance(chosen, int) and 0 <= chosen < len(versions):
        return versions[chosen]
    return versions[-1]


def mapping(value: object) -> Mapping[str, object]:
    """Return what is an object of JSON, else an empty one."""
    return value if isinstance(value, dict) else {}


def mappings(value: object) -> Rows:
    """Return the objects of a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
