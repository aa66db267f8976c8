"""The package where nothing compiles: it installs without its extension, and the demo answers."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from pathlib import Path

import pytest

from tests.support.packages import build_wheel, install_wheel, run

from console import ROOT

_SOURCES = ("CMakeLists.txt", "LICENSE", "README.md", "pyproject.toml")
_PACKAGES = ("app", "runtime", "resources")
_MADE = shutil.ignore_patterns("_native.*", "__pycache__")


@pytest.fixture(scope="module", name="wheel")
def _wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built with compilers that do nothing but fail, where nothing was compiled yet."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for name in _PACKAGES:
        shutil.copytree(ROOT / name, source / name, ignore=_MADE)
    for name in _SOURCES:
        shutil.copyfile(ROOT / name, source / name)
    failing = "where.exe" if os.name == "nt" else "false"
    return build_wheel(source, folder, folder / "build", {"CC": failing, "CXX": failing})


@pytest.fixture(scope="module", name="python")
def _python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with that wheel."""
    return install_wheel(wheel, tmp_path_factory.mktemp("installed") / "venv") / "python"


def test_wheel_without_a_compiler_is_whole_but_for_the_extension(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "runtime/native/loader.py" in names
    assert not [name for name in names if name.startswith("runtime/native/_native")]


def test_demo_answers_on_the_slow_kernels(python: Path, demo_folder: Path, tmp_path: Path) -> None:
    where = run([python, "-c", "import runtime; print(runtime.__file__)"], tmp_path)
    assert Path(where.strip()).is_relative_to(python.parent.parent)
    asked = ["--prompt", "What is the capital of France?", "--max-tokens", "12", "--json"]
    words = run([python, "-m", "runtime.cli", "chat", demo_folder, *asked], tmp_path)
    answer = json.loads(words)
    assert "Paris" in answer["text"]
    assert answer["kernels"] == "reference"
