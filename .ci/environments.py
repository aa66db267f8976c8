"""The virtual environments: what each holds, what each must not hold, and how one is made."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import threading
import tomllib
from dataclasses import dataclass
from pathlib import Path

import stamps
import system_packages
import torch_build
from console import ROOT, CommandError, output_of, run, say, timed
from interpreters import base_python, version_of

CONSTRAINTS = ROOT / "constraints.txt"
PROJECT = ROOT / "pyproject.toml"
COMPILED = ROOT / "build" / "native" / "editable"
"""Where the installed package with its extension is kept, for the next environment."""
_COMPILE = (
    "import json, sys; from scikit_build_core.build import build_editable;"
    " build_editable(sys.argv[1], json.loads(sys.argv[2]))"
)
BUILD_LOG = ROOT / "build" / "native-build.log"
_BUILD_BACKEND = ("scikit-build-core",)
_SYSTEM = threading.Lock()
"""Held by who may install packages of the system, or compiles what all environments have."""


@dataclass(frozen=True)
class Environment:
    """One virtual environment in the project's folder."""

    folder: str
    extras: tuple[str, ...]
    absent: tuple[str, ...] = ()
    has_native: bool = False
    python: str | None = None

    @property
    def path(self) -> Path:
        """Where it lies."""
        return ROOT / self.folder

    @property
    def executable(self) -> Path:
        """Its interpreter."""
        windows = sys.platform == "win32"
        return self.path / ("Scripts/python.exe" if windows else "bin/python")


FULL = Environment(
    ".venv",
    ("window", "engine", "test", "test-window", "test-engine", "lint", "build"),
    has_native=True,
)
PURE = Environment(".venv-pure", ("test",), absent=("torch", "PySide6", "pyqtgraph"))
RUNTIME = Environment(
    ".venv-runtime",
    ("engine", "test", "test-engine", "build"),
    absent=("PySide6", "pyqtgraph"),
    has_native=True,
)
GUI = Environment(".venv-gui", ("window", "test", "test-window"), absent=("torch", "transformers"))


def requirements(extras: tuple[str, ...]) -> list[str]:
    """The ranges in pyproject.toml: the program's own and those of the given extras."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    wanted = list(project["dependencies"])
    for extra in extras:
        wanted += project["optional-dependencies"][extra]
    return wanted


def name_of(requirement: str) -> str:
    """The package that a requirement asks for, in small letters, without extras or versions."""
    return re.split(r"[\s\[<>=!~;(]", requirement, maxsplit=1)[0].lower()


def recipe() -> str:
    """What pyproject.toml says about the package itself; settings of tools are left out."""
    content = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    parts = (content["build-system"], content["project"], content["tool"]["scikit-build"])
    return json.dumps(parts, sort_keys=True)


def native_sources() -> list[Path]:
    """Every file that the extension is built from."""
    native = ROOT / "runtime" / "native"
    kinds = ("*.cpp", "*.cc", "*.c", "*.h", "*.hpp", "*.inc", "CMakeLists.txt", "*.cmake")
    found = [path for kind in kinds for path in native.rglob(kind)]
    return [*found, ROOT / "CMakeLists.txt"]


def prepare(environment: Environment) -> bool:
    """Make the environment or bring it up to date; False where nothing had to be done.

    Two may be made at the same time.
    """
    changed = _packages(environment)
    if environment.has_native:
        with _SYSTEM:
            return _larder_itself(environment) or changed
    return _larder_itself(environment) or changed


def _packages(environment: Environment) -> bool:
    """Virtual environment and dependencies."""
    base = environment.python or base_python()
    version = version_of(base) if environment.python else sys.version_info[:2]
    facts = [str(version), os.path.realpath(base), *environment.extras]
    facts += [torch_build.meant()] if "engine" in environment.extras else []
    stamp = environment.path / "larder-packages.stamp"
    value = stamps.digest([CONSTRAINTS], [recipe(), *facts])
    if environment.executable.exists() and stamps.is_current(stamp, value):
        return False
    if not environment.executable.exists() or version_of(environment.executable) != version:
        with _SYSTEM:
            _create(environment, base)
    python = environment.executable
    # Most modules of the packages are never imported: Python makes bytecode of those that are.
    pip: list[str | Path] = [python, "-m", "pip", "install", "-qq", "--no-compile"]
    with timed(f"installing the packages of {environment.folder}"):
        if "engine" in environment.extras:
            torch_build.install(pip, CONSTRAINTS)
        wanted = [*requirements(environment.extras), *_BUILD_BACKEND]
        run([*pip, "-c", CONSTRAINTS, *wanted], "A package could not be installed")
        if "engine" in environment.extras:
            say(f"{environment.folder} has the {torch_build.check(python)}, as meant")
    stamps.write(stamp, value)
    return True


def _create(environment: Environment, base: str) -> None:
    """A new, empty virtual environment."""
    if environment.path.exists():
        shutil.rmtree(environment.path)
    say(f"making the virtual environment {environment.folder} with {base}")
    command: list[str | Path] = [base, "-m", "venv", environment.path]
    status, text = output_of(command)
    if status != 0 and system_packages.ensure_venv(base, text):
        shutil.rmtree(environment.path, ignore_errors=True)
        status, text = output_of(command)
    if status != 0:
        shutil.rmtree(environment.path, ignore_errors=True)
        lines = text.strip().splitlines() or ["it says nothing of why"]
        raise CommandError(f"{base} makes no virtual environment: {lines[0]}")


def _larder_itself(environment: Environment) -> bool:
    """The package, editable: modules are read from the tree, the extension is built."""
    stamp = environment.path / "larder-itself.stamp"
    if environment.has_native:
        compiler = system_packages.compiler()
        hint = system_packages.ensure_headers(environment.executable) if compiler else None
        value = stamps.digest(native_sources(), [recipe(), str(compiler), str(hint)])
    else:
        value = stamps.digest([], [recipe()])
    if stamps.is_current(stamp, value):
        return False
    with timed(f"installing larder into {environment.folder}"):
        status, text = _install_larder(environment, value)
        if environment.has_native:
            BUILD_LOG.parent.mkdir(exist_ok=True)
            BUILD_LOG.write_text(text, encoding="utf-8")
    if status != 0:
        print(text[-3000:])
        raise CommandError("Larder could not be installed into its own environment (see above)")
    if environment.has_native:
        _report_native(environment, compiler, hint)
    stamps.write(stamp, value)
    return True


def _install_larder(environment: Environment, value: str) -> tuple[int, str]:
    """Install the package; with the extension, the one that was compiled from the same before."""
    pip: list[str | Path] = [environment.executable, "-m", "pip", "install", "-v", "--no-deps"]
    if not environment.has_native:
        plain = ("--no-build-isolation", "--config-settings", "wheel.cmake=false")
        return output_of([*pip, *plain, "--editable", ROOT])
    key = stamps.digest([], [value, os.path.realpath(environment.executable)])
    stamp, compiled = COMPILED / "larder.stamp", ""
    if not stamps.is_current(stamp, key):
        shutil.rmtree(COMPILED, ignore_errors=True)
        COMPILED.mkdir(parents=True)
        settings = {"build-dir": str(build_folder(environment))}
        command: list[str | Path] = [
            environment.executable,
            "-c",
            _COMPILE,
            COMPILED,
            json.dumps(settings),
        ]
        status, compiled = output_of(command)
        if status != 0:
            return status, compiled
        stamps.write(stamp, key)
    status, text = output_of([*pip, "--force-reinstall", *COMPILED.glob("*.whl")])
    return status, f"{compiled}{text}"


def build_folder(environment: Environment) -> Path:
    """Where the extension is compiled for an environment; kept, so that rebuilding is quick."""
    return ROOT / "build" / "native" / environment.folder.lstrip(".")


def has_extension(python: Path) -> bool:
    """Whether the native extension can be found by this interpreter."""
    look = "import importlib.util as u; print(u.find_spec('runtime.native._native') is not None)"
    return output_of([python, "-c", look], cwd=ROOT)[1].split() == ["True"]


def _report_native(environment: Environment, compiler: str | None, hint: str | None) -> None:
    """Say whether the extension is there; with a compiler at hand its absence is an error in CI."""
    if has_extension(environment.executable):
        say(f"{environment.folder} has the native extension")
        return
    text = "the native extension was not built: Larder works, on slow kernels"
    if compiler is None:
        say(f"{text}; install a C++ compiler and run make setup again for full speed")
        return
    why = hint or f"although there is a compiler ({compiler}), see {BUILD_LOG.relative_to(ROOT)}"
    if os.environ.get("CI"):
        raise CommandError(f"{text}: {why}")
    say(f"{text}: {why}")
