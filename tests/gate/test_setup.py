"""Set-up's decisions: which torch is meant, what Qt lacks, when a stamp is current."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import environments
import stamps
import system_packages
import torch_build
from console import ROOT, CommandError

_CPU: dict[str, object] = {"version": "2.13.0", "cuda": None, "hip": None, "gpu_packages": []}
_CUDA: dict[str, object] = {
    "version": "2.13.0",
    "cuda": "13.0",
    "hip": None,
    "gpu_packages": ["nvidia-cublas"],
}


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
