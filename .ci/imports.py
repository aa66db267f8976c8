"""Which module imports which, read from source alone: nothing is executed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from console import ROOT


@dataclass(frozen=True)
class Import:
    """One import statement, or `importlib.import_module` of a literal name."""

    source: str
    target: str
    path: Path
    line: int
    is_lazy: bool
    is_for_types: bool
    """Whether it stands under `if TYPE_CHECKING`."""

    @property
    def place(self) -> str:
        """File and line, as an editor opens them."""
        return f"{self.path.as_posix()}:{self.line}"


def module_name(path: Path, root: Path = ROOT) -> str:
    """The dotted name of a file below the root."""
    parts = list(path.relative_to(root).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def python_files(*folders: str, root: Path = ROOT) -> list[Path]:
    """Every Python file of these top folders, in order."""
    found = [path for folder in folders for path in (root / folder).rglob("*.py")]
    return sorted(path for path in found if "__pycache__" not in path.parts)


def of_file(path: Path, root: Path = ROOT) -> list[Import]:
    """Every import in a file, inside functions and type-checking blocks too."""
    name = module_name(path, root)
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    return [
        Import(name, target, path.relative_to(root), line, lazy, types)
        for target, line, lazy, types in _walk(tree, package, lazy=False, types=False)
    ]


def _walk(
    node: ast.AST, package: str, *, lazy: bool, types: bool
) -> Iterator[tuple[str, int, bool, bool]]:
    """Targets of the imports below a node, each with where and how."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom | ast.Call):
            for target in _targets(child, package):
                yield target, child.lineno, lazy, types
        inside = lazy or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            for part in child.body:
                yield from _walk(_wrapped(part), package, lazy=inside, types=True)
            for part in child.orelse:
                yield from _walk(_wrapped(part), package, lazy=inside, types=types)
        else:
            yield from _walk(child, package, lazy=inside, types=types)


def _wrapped(statement: ast.stmt) -> ast.Module:
    """A statement as the only child of a node, so that it is itself looked at."""
    return ast.Module(body=[statement], type_ignores=[])


def _targets(node: ast.AST, package: str) -> list[str]:
    """What one statement imports; `from a import b` counts as `a.b`, since b may be a module."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            parts = package.split(".")
            parts = parts[: len(parts) - node.level + 1]
            base = ".".join([*parts, base] if base else parts)
        return [f"{base}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        called = ast.unparse(node.func).rpartition(".")[2]
        name = node.args[0].value
        if called in {"import_module", "__import__"} and isinstance(name, str):
            return [name]
    return []


def is_within(name: str, package: str) -> bool:
    """Whether a dotted name is a package or something in it."""
    return name == package or name.startswith(f"{package}.")
