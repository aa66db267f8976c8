"""Set-up's decisions: which torch is meant, what Qt lacks, when a stamp is current."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import sysconfig
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import environments
import setup
import stamps
import system_packages
import torch_build
from console import ROOT, CommandError, output_of

_CPU: dict[str, object] = {"version": "2.13.0", "cuda": None, "hip": None, "gpu_packages": []}
_CUDA: dict[str, object] = {
    "version": "2.13.0",
    "cuda": "13.0",
    "hip": None,
    "gpu_packages": ["nvidia-cublas"],
}

_WITH_CPP = {
    *("ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libc.so.6", "libdl.so.2", "libm.so.6"),
    *("libpthread.so.0", "libresolv.so.2", "librt.so.1", "libgcc_s.so.1", "libstdc++.so.6"),
}
"""What a machine with a C++ compiler has."""


@pytest.mark.parametrize(
    ("named", "has_driver", "build"),
    [("", True, "cuda"), ("", False, "cpu"), ("any", True, "any"), ("CPU", True, "cpu")],
)
def test_meant_build_follows_the_variable_and_then_the_driver(
    monkeypatch: pytest.MonkeyPatch, named: str, has_driver: bool, build: str
) -> None:
    monkeypatch.setenv("LARDER_TORCH", named)
    monkeypatch.setattr(torch_build, "has_nvidia_driver", lambda: has_driver)
    assert torch_build.meant() == build


def test_meant_build_of_an_unknown_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LARDER_TORCH", "fast")
    with pytest.raises(CommandError, match="only cpu, cuda or any"):
        torch_build.meant()


@pytest.mark.parametrize(
    ("version", "needs", "build"),
    [
        ("2.13.0+cpu", [], "cpu"),
        ("2.13.0+cu130", [], "cuda"),
        ("2.13.0", ["filelock", "triton==3.5; platform_system == 'Nowhere'"], "cpu"),
        ("2.13.0", ["nvidia-cublas==13.0"], "cuda"),
        ("2.13.0", ["nvidia-cublas; extra == 'all'"], "cpu"),
    ],
)
def test_build_of_a_file_is_read_off_its_name_and_needs(
    version: str, needs: list[str], build: str
) -> None:
    assert torch_build.build_of_file(version, needs) == build


@pytest.mark.parametrize(("build", "facts"), [("cpu", _CPU), ("cuda", _CUDA), ("any", _CUDA)])
def test_judge_of_the_meant_build_describes_it(build: str, facts: dict[str, object]) -> None:
    assert "torch 2.13.0" in torch_build.judge(build, facts)


@pytest.mark.parametrize(
    ("build", "facts"),
    [
        ("cpu", _CUDA),
        ("cpu", {**_CPU, "gpu_packages": ["nvidia-nccl"]}),
        ("cuda", _CPU),
        ("any", {"version": None}),
    ],
)
def test_judge_of_another_build_says_what_to_do(build: str, facts: dict[str, object]) -> None:
    with pytest.raises(CommandError, match="torch"):
        torch_build.judge(build, facts)


def test_environment_with_another_torch_than_meant_is_refused_and_never_taken_for_done(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "made"
    found = dict(_CUDA)

    def look(_command: Sequence[str | Path]) -> tuple[int, str]:
        return 0, json.dumps(found)

    monkeypatch.setenv("LARDER_TORCH", "cpu")
    monkeypatch.setattr(environments, "_create", lambda _which, _base: folder.mkdir(exist_ok=True))
    monkeypatch.setattr(environments, "run", lambda _command, _failure: None)
    monkeypatch.setattr(torch_build, "install", lambda _pip, _constraints: None)
    monkeypatch.setattr(torch_build, "output_of", look)
    wanted = environments.Environment(str(folder), ("engine",))
    for _ in range(2):
        with pytest.raises(CommandError, match="The CPU build of torch was meant"):
            environments._packages(wanted)
    found.update(_CPU)
    assert environments._packages(wanted)


def test_missing_libraries_are_read_off_the_loaders_answer() -> None:
    answer = (
        "libqxcb.so:\n\tlibxcb-cursor.so.0 => not found\n\tlibc.so.6 => /lib/libc.so.6 (0x1)\n"
        "libQt6Gui.so.6:\n\tlibEGL.so.1 => not found\n\tlibxcb-cursor.so.0 => not found\n"
    )
    assert system_packages.missing_in(answer) == ["libEGL.so.1", "libxcb-cursor.so.0"]


def test_missing_library_without_root_gives_the_line_to_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(system_packages, "missing_libraries", lambda _python: ["libEGL.so.1"])
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("shutil.which", lambda _name: "apt-get")
    with pytest.raises(CommandError, match="sudo apt-get install -y libegl1"):
        system_packages.ensure_window(Path("python"))


@pytest.mark.parametrize(
    "left", [[], ["libnew.so.1"]], ids=["comes with the known one", "stays away"]
)
def test_library_that_no_package_is_known_for_is_looked_for_again_after_the_known_ones(
    monkeypatch: pytest.MonkeyPatch, left: list[str]
) -> None:
    answers = [["libEGL.so.1", "libnew.so.1"], left]
    brought: list[str] = []

    def play(command: Sequence[str | Path], **_: object) -> tuple[int, str]:
        brought.append(str(command[-1]))
        return 0, ""

    monkeypatch.setattr(system_packages, "missing_libraries", lambda _python: answers.pop(0))
    monkeypatch.setattr(system_packages, "output_of", play)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda _name: "apt-get")
    refused = pytest.raises(CommandError, match=r"Qt needs libnew\.so\.1; install")
    with refused if left else contextlib.nullcontext():
        system_packages.ensure_window(Path("python"))
    assert brought == ["update", "libegl1"]


@pytest.mark.skipif(sys.platform != "linux", reason="Qt's files are of another form elsewhere")
def test_every_library_that_qt_names_comes_with_it_with_cpp_or_from_a_known_package() -> None:
    qt = Path(sysconfig.get_path("purelib")) / "PySide6"
    own = {path.name: path for path in qt.rglob("*.so*")}
    left, looked_at = [qt / part for part in system_packages._LOADED], set[Path]()
    named: set[str] = set()
    while left:
        path = left.pop()
        looked_at.add(path)
        status, text = output_of(["readelf", "--dynamic", path])
        assert status == 0, text
        needs = set(re.findall(r"\(NEEDED\).*\[(.+)\]", text))
        named |= needs
        left += [own[name] for name in needs & own.keys() if own[name] not in looked_at]
    assert len(named) > 30
    assert named - own.keys() - system_packages.PACKAGES.keys() - _WITH_CPP == set()


@pytest.mark.parametrize("apt_fails", [False, True])
def test_missing_library_as_root_is_installed_by_the_systems_own_means(
    monkeypatch: pytest.MonkeyPatch, *, apt_fails: bool
) -> None:
    commands: list[str] = []

    def play(command: Sequence[str | Path], **_: object) -> tuple[int, str]:
        commands.append(" ".join(map(str, command)))
        return int(apt_fails and "install" in command), "its own words"

    missing = ["libxcb-cursor.so.0", "libEGL.so.1"]
    monkeypatch.setattr(system_packages, "missing_libraries", lambda _python: missing)
    monkeypatch.setattr(system_packages, "output_of", play)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda _name: "apt-get")
    if apt_fails:
        with pytest.raises(CommandError, match="apt-get install failed"):
            system_packages.ensure_window(Path("python"))
    else:
        system_packages.ensure_window(Path("python"))
    assert commands == [
        "apt-get -qq update",
        "apt-get -qq install -y --no-install-recommends libegl1 libxcb-cursor0",
    ]


@pytest.mark.parametrize(
    ("window", "steps"),
    [(True, ["packages", "Qt's libraries", "demo model"]), (False, ["packages", "demo model"])],
)
def test_set_up_takes_every_step_in_order(
    monkeypatch: pytest.MonkeyPatch, *, window: bool, steps: list[str]
) -> None:
    taken: list[str] = []
    full = environments.FULL
    monkeypatch.setattr(
        environments, "prepare", lambda which: taken.append("packages" if which is full else "?")
    )
    monkeypatch.setattr(
        system_packages, "ensure_window", lambda _python: taken.append("Qt's libraries")
    )
    monkeypatch.setattr(setup, "demo_model", lambda _python: taken.append("demo model"))
    assert setup.everything(window=window) == full.executable
    assert taken == steps


def test_environment_is_made_of_packages_and_then_larder_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken: list[str] = []

    def packages(_which: environments.Environment) -> bool:
        taken.append("packages")
        return False

    def itself(_which: environments.Environment) -> bool:
        taken.append("larder itself")
        return True

    monkeypatch.setattr(environments, "_packages", packages)
    monkeypatch.setattr(environments, "_larder_itself", itself)
    assert environments.prepare(environments.FULL)
    assert taken == ["packages", "larder itself"]


def test_extension_is_compiled_once_for_environments_of_one_python(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    commands: list[list[str]] = []

    def output_of(command: Sequence[str | Path]) -> tuple[int, str]:
        commands.append([str(part) for part in command])
        if "-c" in commands[-1]:
            (environments.COMPILED / "larder-1.whl").touch()
            return 0, "compiled\n"
        return 0, "installed\n"

    monkeypatch.setattr(environments, "output_of", output_of)
    monkeypatch.setattr(environments, "COMPILED", tmp_path / "editable")
    # Both have it, whatever was made so far.
    monkeypatch.setattr(os.path, "realpath", lambda _path: "the same Python")
    install = environments._install_larder
    assert install(environments.FULL, "made of this") == (0, "compiled\ninstalled\n")
    assert install(environments.RUNTIME, "made of this") == (0, "installed\n")
    assert install(environments.FULL, "made of that")[1].startswith("compiled")
    kinds = ["compiled" if "-c" in command else "installed" for command in commands]
    assert kinds == ["compiled", "installed", "installed", "compiled", "installed"]
    wheel = str(tmp_path / "editable" / "larder-1.whl")
    assert [wheel in command for command in commands] == [False, True, True, False, True]


def test_demo_model_is_built_when_missing_and_when_its_recipe_changed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    builds: list[list[str]] = []

    def build(command: Sequence[str | Path], _failure: str) -> None:
        builds.append([str(part) for part in command])
        setup.DEMO.mkdir(parents=True, exist_ok=True)
        (setup.DEMO / "config.json").write_text("{}", encoding="utf-8")

    recipe = tmp_path / "recipe"
    recipe.mkdir()
    (recipe / "build.py").write_text("1", encoding="utf-8")
    monkeypatch.setattr(setup, "_RECIPE", recipe)
    monkeypatch.setattr(setup, "DEMO", tmp_path / "demo" / "larder-demo")
    monkeypatch.setattr(setup, "run", build)
    setup.demo_model(Path("python"))
    setup.demo_model(Path("python"))
    assert builds == [["python", str(recipe / "build.py"), "--out", str(setup.DEMO)]]
    (recipe / "build.py").write_text("2", encoding="utf-8")
    setup.demo_model(Path("python"))
    (setup.DEMO / "config.json").unlink()
    setup.demo_model(Path("python"))
    assert len(builds) == 3


def test_digest_changes_with_content_absence_and_facts(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    missing = stamps.digest([path])
    path.write_text("one", encoding="utf-8")
    first = stamps.digest([path])
    path.write_text("two", encoding="utf-8")
    values = {missing, first, stamps.digest([path]), stamps.digest([path], ["fact"])}
    assert len(values) == 4


def test_stamp_is_current_only_for_its_own_value(tmp_path: Path) -> None:
    stamp = tmp_path / "deep" / "a.stamp"
    assert not stamps.is_current(stamp, "one")
    stamps.write(stamp, "one")
    assert stamps.is_current(stamp, "one")
    assert not stamps.is_current(stamp, "two")


def test_every_requirement_has_an_exact_version_in_the_constraints() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {line.partition("==")[0].lower() for line in lines if "==" in line}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = environments.requirements(tuple(project["optional-dependencies"]))
    names = {environments.name_of(line) for line in wanted}
    assert names - pinned == set()
    assert all("==" in line for line in lines if line and not line.startswith("#"))


def test_qt_on_the_oldest_python_is_older_than_the_release_that_crashes_there() -> None:
    wanted = map(Requirement, environments.requirements(("window",)))
    bounds = [
        each.specifier
        for each in wanted
        if each.name.startswith("PySide6")
        and (each.marker is None or each.marker.evaluate({"python_version": "3.11"}))
    ]
    assert len(bounds) == 1
    assert bounds[0].contains("6.11.3")
    assert not bounds[0].contains("6.12.0")
    assert not bounds[0].contains("6.13.1")
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    (pinned,) = (line for line in lines if line.startswith("PySide6-Essentials=="))
    assert bounds[0].contains(pinned.partition("==")[2])
