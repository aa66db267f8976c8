"""The import contracts catch what they are there to catch."""

from __future__ import annotations

from pathlib import Path

import pytest

import contracts
from console import ROOT


def _tree(root: Path, files: dict[str, str]) -> list[str]:
    """Write modules, named by their path, and check them."""
    for name, text in files.items():
        path = root / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return contracts.check(root)


def test_check_of_our_own_source_finds_nothing() -> None:
    assert contracts.check(ROOT) == []


@pytest.mark.parametrize(
    ("name", "text", "word"),
    [
        ("runtime/plan/budget", "import os", "pure"),
        ("runtime/policy/base", "def f():\n    import time", "pure"),
        ("runtime/store/coalesce", "from pathlib import Path", "pure"),
        ("app/graphs/series", "import threading", "pure"),
        ("app/graphs/series", "from PySide6.QtCore import QObject", "free of Qt"),
        ("runtime/generate/engine", "from runtime.engine.scripted import x", "stands above"),
        ("runtime/engine/base", "from runtime.store import base", "stands above"),
        ("runtime/store/reader", "from runtime.service import loop", "stands above"),
        ("runtime/protocol/values", "from runtime.errors import LarderError", "stands above"),
        ("runtime/protocol/values", "import numpy", "standard library"),
        ("runtime/plan/budget", "from runtime import policy, residency", "stands above"),
        ("runtime/engine/base", "import torch", "without torch"),
        ("runtime/cli/chat", "def f():\n    import torch.nn", "without torch"),
        ("runtime/service/loop", "def f():\n    from runtime.generate import x", "one door"),
        ("runtime/service/loop", "from PySide6 import QtCore", "no window"),
        ("runtime/service/loop", "import importlib\nimportlib.import_module('app')", "no window"),
        ("runtime/extras/thing", "import json", "no row"),
        ("runtime/service/loop", "from runtime.testing import machine", "for tests"),
        ("app/state/session", "from runtime.plan import budget", "protocol alone"),
        ("app/state/session", "from PySide6.QtWidgets import QWidget", "free of widgets"),
        ("app/views/chat_view", "import torch", "may not import torch"),
        ("app/views/chat_view", "import numpy as np", "slow to appear"),
        ("app/views/chat_view", "from app.views import models_view", "no other view"),
        ("app/views/chat_view", "from app.link import client", "emits intent"),
        ("app/early", "from PySide6 import QtWidgets", "inside a function"),
        ("app/text/words", "from PySide6 import QtCore", "free of Qt"),
    ],
)
def test_import_that_breaks_a_contract_is_named(
    tmp_path: Path, name: str, text: str, word: str
) -> None:
    found = _tree(tmp_path, {name: text})
    assert len(found) >= 1
    assert any(word in line for line in found), found
    assert name.replace("/", ".") in found[0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("runtime/generate/decode", "import torch"),
        ("runtime/prepare/quantise", "import torch"),
        ("runtime/service/engine_loader", "def f():\n    from runtime.generate import decode"),
        ("runtime/generate/engine", "from runtime.engine.base import Engine"),
        ("runtime/kernels/dispatch", "from runtime.native import pool"),
        ("runtime/testing/machine", "from runtime.service import loop"),
        ("runtime/cli/__main__", "from runtime.protocol import values"),
        ("app/link/client", "from runtime.protocol import messages"),
        ("app/views/chat_view", "from app.views import markdown_view"),
        ("app/main", "from app.views import chat_view"),
        ("app/graphs/series", "import math\nimport numpy as np"),
    ],
)
def test_import_that_is_allowed_is_not_named(tmp_path: Path, name: str, text: str) -> None:
    assert _tree(tmp_path, {name: text}) == []


def test_chain_of_plain_imports_that_ends_in_torch_is_named(tmp_path: Path) -> None:
    found = _tree(
        tmp_path,
        {
            "runtime/service/loop": "from runtime.prepare import convert",
            "runtime/prepare/convert": "from runtime.prepare.quantise import pack",
            "runtime/prepare/quantise": "import torch",
        },
    )
    assert any("runtime.service.loop" in line and "with it torch" in line for line in found)


def test_type_checking_imports_keep_the_order_but_load_no_torch(tmp_path: Path) -> None:
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from {} import thing\n"
    allowed = _tree(
        tmp_path / "one",
        {
            "runtime/service/loop": text.format("runtime.generate"),
            "runtime/generate/__init__": "import torch",
        },
    )
    assert allowed == []
    broken = _tree(tmp_path / "two", {"runtime/plan/cost": text.format("runtime.service")})
    assert any("stands above" in line for line in broken)


def test_runtime_package_file_with_content_is_named(tmp_path: Path) -> None:
    assert any(
        "stays empty" in line for line in _tree(tmp_path, {"runtime/__init__": "import json"})
    )
