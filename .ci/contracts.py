"""The import contracts of the house, checked over the source of `app`, `runtime` and `resources`.

The order of the runtime's packages is the table in docs/architecture.md, top to bottom. Imports
inside functions and type-checking blocks count like all others, unless a rule says so.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import imports
from imports import Import, is_within

# Rows of the table; a package may import its own row and those below. The interface that engines
# implement stands low, among the value types (docs/decisions/0004-engine-interface.md).
LAYERS: tuple[tuple[str, ...], ...] = (
    ("cli",),
    ("service",),
    ("hub",),
    ("engine",),
    ("generate",),
    ("prepare",),
    ("residency",),
    ("models",),
    ("kernels",),
    ("tokenizer",),
    ("device",),
    ("memory",),
    ("store",),
    ("telemetry",),
    ("simulate",),
    ("plan",),
    ("policy",),
    ("hardware",),
    ("inspect",),
    ("engine.base", "errors", "spec"),
    ("native",),
    ("protocol",),
)
TORCH_PACKAGES = (
    "runtime.generate",
    "runtime.prepare.quantise",
    "runtime.residency",
    "runtime.models",
    "runtime.kernels",
    "runtime.device",
    "runtime.memory",
)
TORCH_LIKE = ("torch", "triton")
# The torch-free half may reach the torch half only here, and only inside a function.
TORCH_DOORS = ("runtime.service.engine_loader", "runtime.prepare")
WINDOW_LIBRARIES = ("PySide6", "shiboken6", "pyqtgraph", "qtpy", "app")
PURE = ("runtime.plan", "runtime.policy", "runtime.store.coalesce", "app.graphs.series")
WORLD = ("os", "io", "pathlib", "time", "random", "threading", "subprocess", "socket")
NUMPY_IN_WINDOW = ("app.graphs", "app.state.telemetry")
TESTING = ("runtime.testing",)
PROTOCOL_MAY = ("msgspec", "runtime.protocol")
WITHOUT_QT = ("app.text", "app.graphs.series")
WITHOUT_WIDGETS = ("app.state", "app.link")
PAGES = ("chat", "models", "monitor", "settings")
LATE_WIDGETS = ("app.early", "app.__main__")


def problems(found: Sequence[Import]) -> list[str]:
    """One sentence for each import that breaks a contract."""
    texts = [f"{item.place}: {item.source} {text}" for item in found for text in _broken(item)]
    return sorted({*texts, *_reaches_torch(found)})


def _broken(item: Import) -> Iterable[str]:
    """The contracts that one import breaks."""
    if is_within(item.source, "runtime"):
        yield from _runtime(item)
    if is_within(item.source, "app"):
        yield from _window(item)
    if _within(item.source, PURE) and item.target.partition(".")[0] in WORLD:
        yield f"is pure and may not import {item.target}"
    if _within(item.target, TESTING) and not _within(item.source, TESTING):
        yield "may not import runtime.testing, which is for tests"
    if _within(item.target, ("tests",)):
        yield "may not import tests"


def _runtime(item: Import) -> Iterable[str]:
    """What the runtime's packages may not do."""
    if _within(item.target, WINDOW_LIBRARIES):
        yield f"may not import {item.target}: the runtime knows no window"
    if not _within(item.source, TESTING):
        yield from _order(item)
        yield from _torch_half(item)
    outside = item.target.partition(".")[0] not in sys.stdlib_module_names
    beyond = outside and not _within(item.target, PROTOCOL_MAY)
    if beyond and _within(item.source, ("runtime.protocol",)):
        yield f"may not import {item.target}: the standard library and msgspec are enough"


def _order(item: Import) -> Iterable[str]:
    """The order of the table."""
    above, below = _layer(item.source), _layer(item.target)
    if above is None:
        if item.source not in ("runtime", "runtime.__main__"):
            yield "has no row in the table of packages (.ci/contracts.py, docs/architecture.md)"
    elif below is not None and below < above:
        yield f"may not import {item.target}, which stands above it"


def _torch_half(item: Import) -> Iterable[str]:
    """Who may import torch, and where the other half may reach those who do."""
    if _within(item.source, TORCH_PACKAGES):
        return
    if _within(item.target, TORCH_LIKE):
        yield f"may not import {item.target}: it belongs to the half without torch"
    is_call = item.is_lazy and not item.is_for_types
    if is_call and _within(item.target, TORCH_PACKAGES) and not _within(item.source, TORCH_DOORS):
        yield f"may not import {item.target}: the one door is {TORCH_DOORS[0]}"


def _window(item: Import) -> Iterable[str]:
    """What the window's packages may not do."""
    if is_within(item.target, "runtime") and not is_within(item.target, "runtime.protocol"):
        yield f"may not import {item.target}: of the runtime the window knows the protocol alone"
    if _within(item.target, (*TORCH_LIKE, "transformers")):
        yield f"may not import {item.target}"
    if _within(item.target, ("numpy",)) and not _within(item.source, NUMPY_IN_WINDOW):
        yield "may not import numpy, which makes the window slow to appear"
    if _within(item.source, WITHOUT_QT) and _within(item.target, ("PySide6", "pyqtgraph")):
        yield f"may not import {item.target}: it is free of Qt"
    widgets = _within(item.target, ("PySide6.QtWidgets", "pyqtgraph", "app.views"))
    if widgets and _within(item.source, WITHOUT_WIDGETS):
        yield f"may not import {item.target}: it is free of widgets"
    if widgets and item.source in LATE_WIDGETS and not (item.is_lazy or item.is_for_types):
        yield f"may import {item.target} only inside a function"
    if is_within(item.source, "app.views"):
        if _within(item.target, ("app.link", "app.main")):
            yield f"may not import {item.target}: a view shows state and emits intent"
        page = _page(item.target)
        if page is not None and page != _page(item.source):
            yield f"may not import {item.target}: a view knows no other view"


def _page(name: str) -> str | None:
    """The page that a module of app.views is; None for a piece that pages are made of."""
    parts = name.split(".")
    if parts[:2] != ["app", "views"] or len(parts) < 3:
        return None
    word = parts[2].removesuffix("_view").removesuffix("_page")
    return word if word in PAGES else None


def _reaches_torch(found: Sequence[Import]) -> Iterable[str]:
    """Torch-free modules whose plain imports end in torch, with the first step of the way."""
    plain: dict[str, list[Import]] = {}
    known = {item.source for item in found}
    for item in found:
        if not item.is_lazy and not item.is_for_types:
            plain.setdefault(item.source, []).append(item)
    for start in sorted(plain):
        if not is_within(start, "runtime") or _within(start, TORCH_PACKAGES):
            continue
        for step in plain[start]:
            if _leads_to_torch(step.target, plain, known, set()):
                yield f"{step.place}: {start} imports {step.target}, and with it torch"


def _leads_to_torch(
    target: str, plain: dict[str, list[Import]], known: set[str], seen: set[str]
) -> bool:
    """Whether importing a name imports torch, its parent packages included."""
    if _within(target, TORCH_LIKE):
        return True
    parts = target.split(".")
    names = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
    for name in names:
        if name not in known or name in seen:
            continue
        seen.add(name)
        for step in plain.get(name, []):
            if _leads_to_torch(step.target, plain, known, seen):
                return True
    return False


def _layer(name: str) -> int | None:
    """The row of a runtime module, 0 on top; None for one that stands in no row."""
    rows = {f"runtime.{entry}": row for row, names in enumerate(LAYERS) for entry in names}
    parts = name.split(".")
    heads = (".".join(parts[:end]) for end in range(len(parts), 1, -1))
    return next((rows[head] for head in heads if head in rows), None)


def _within(name: str, packages: Iterable[str]) -> bool:
    """Whether a name lies in one of the packages."""
    return any(is_within(name, package) for package in packages)


def check(root: Path) -> list[str]:
    """All broken contracts below a root."""
    files = imports.python_files("app", "runtime", "resources", root=root)
    found = [item for path in files for item in imports.of_file(path, root)]
    empty = root / "runtime" / "__init__.py"
    texts = problems(found)
    if empty.exists() and empty.read_text(encoding="utf-8").strip():
        texts.append("runtime/__init__.py: stays empty, so that importing one part loads no other")
    return texts
