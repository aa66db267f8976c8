"""Every text of the source that a person reads: the keys of the translations.

Texts are found in the syntax tree: the first argument of ``Word`` and ``tr``, both of ``trn``, and
the values of the tables of sentences.
"""

import ast
import dataclasses
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SENTENCES = ("runtime/protocol/hub_sentences.py", "runtime/protocol/sentences.py")
_CALLS = {"Word": 1, "tr": 1, "trn": 2}


@dataclasses.dataclass(frozen=True, slots=True)
class SourceText:
    """A text that is translated, with its form for many where it has one."""

    one: str
    many: str
    place: str
    """The file it is first found in, from the root."""


def collect(root: Path = ROOT) -> list[SourceText]:
    """Return all texts, each once, file by file in the order of the source."""
    found: dict[str, SourceText] = {}
    for path in [*sorted((root / "app").rglob("*.py")), *(root / each for each in SENTENCES)]:
        place = path.relative_to(root).as_posix()
        tree = ast.parse(path.read_text(encoding="utf-8"))
        texts = _values(tree) if place in SENTENCES else _arguments(tree)
        for one, many in texts:
            before = found.get(one)
            if before is None or (many and not before.many):
                found[one] = SourceText(one, many, before.place if before else place)
    return list(found.values())


def _arguments(tree: ast.Module) -> list[tuple[str, str]]:
    """Return what is handed to the functions that translate, in the order of the lines."""
    found: list[tuple[int, int, str, str]] = []
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            continue
        number = _CALLS.get(node.func.id, 0)
        texts = [
            argument.value
            for argument in node.args[:number]
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
        ]
        if texts and len(texts) == number:
            found.append((node.lineno, node.col_offset, texts[0], "".join(texts[1:])))
    return [(one, many) for _, _, one, many in sorted(found)]


def _values(tree: ast.Module) -> list[tuple[str, str]]:
    """Return the texts that stand as values in dictionaries."""
    return [
        (value.value, "")
        for node in ast.walk(tree)
        if isinstance(node, ast.Dict)
        for value in node.values
        if isinstance(value, ast.Constant) and isinstance(value.value, str)
    ]
