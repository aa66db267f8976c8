"""The package as a person gets it: a wheel, installed apart from the tree, started and stopped."""

from __future__ import annotations

import subprocess
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.support.packages import install_wheel, run

from console import ROOT

_START = """
import sys
from runtime.protocol import framing, messages, version
hello = messages.OpenSession(
    request_id=1, protocol_version=version.PROTOCOL_VERSION, client_name="package test"
)
sys.stdout.buffer.write(framing.encode(hello))
"""


def _version() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment that holds the wheel and, by path, its needs."""
    return install_wheel(wheel, tmp_path_factory.mktemp("installed") / "venv")


def test_wheel_holds_the_product_and_nothing_of_its_making(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {"app", "runtime", "resources"} <= tops
    assert {top for top in tops if "larder-" not in top} == {"app", "runtime", "resources"}
    assert not [name for name in names if name.endswith((".cpp", ".h", ".pyc", "CMakeLists.txt"))]
    assert [name for name in names if name.endswith("licenses/LICENSE")]


def test_wheel_holds_the_extension_that_was_compiled(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert [name for name in names if name.startswith("runtime/native/_native.")]


def test_installed_program_tells_its_version(programs: Path, tmp_path: Path) -> None:
    assert _version() in run([programs / "larderctl", "--version"], tmp_path)


def test_installed_package_is_the_one_that_runs(programs: Path, tmp_path: Path) -> None:
    where = run([programs / "python", "-c", "import app; print(app.__file__)"], tmp_path)
    assert Path(where.strip()).is_relative_to(programs.parent)


def test_installed_runtime_answers_and_leaves_when_the_channel_closes(
    programs: Path, tmp_path: Path
) -> None:
    hello = subprocess.run(
        [programs / "python", "-c", _START], cwd=tmp_path, capture_output=True, check=True
    ).stdout
    done = subprocess.run(
        [programs / "python", "-m", "runtime.service"],
        cwd=tmp_path,
        input=hello,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert b"SessionOpened" in done.stdout


def test_installed_window_starts_and_stops(programs: Path, tmp_path: Path) -> None:
    assert _version() in run([programs / "larder", "--version"], tmp_path)
