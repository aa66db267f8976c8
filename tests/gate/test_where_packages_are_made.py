"""Where the gate makes the packages for Linux, what it brings for that, and what it tells pip."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from installers.linux import starter

import jobs
import linux_packages
import system_packages
from console import ROOT

_DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nVERSION_CODENAME=bookworm\n'


class _Usage(NamedTuple):
    """Of a disk."""

    total: int
    used: int
    free: int


@pytest.fixture(name="fitting")
def _fitting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which the packages can be made."""
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.disk_usage", lambda _place: _Usage(10**12, 0, 10**12))
    monkeypatch.setattr(linux_packages, "_system", lambda: _DEBIAN)
    monkeypatch.setattr(linux_packages, "PYTHON", sys.version_info[:2])
    monkeypatch.setattr(linux_packages, "output_of", lambda _command: (0, ""))


@pytest.mark.usefixtures("fitting")
def test_fitting_machine_has_no_reason_against() -> None:
    assert linux_packages.reason_against() is None


@pytest.mark.usefixtures("fitting")
@pytest.mark.parametrize(
    ("what", "other", "reason"),
    [
        ("sys.platform", "darwin", "on Linux on x86-64 alone"),
        ("platform.machine", lambda: "aarch64", "on Linux on x86-64 alone"),
        ("linux_packages._system", lambda: "VERSION_CODENAME=trixie\n", "this is another system"),
        ("os.geteuid", lambda: 1000, "which needs root"),
        ("linux_packages.PYTHON", (3, 1), "they hold Python 3.1, and this is another one"),
        ("shutil.disk_usage", lambda _place: _Usage(10**12, 0, 10**9), "they need 4 GB in "),
        ("linux_packages.output_of", lambda _command: (100, ""), "cannot be reached from here"),
    ],
)
def test_machine_that_does_not_fit_is_told_why(
    monkeypatch: pytest.MonkeyPatch, what: str, other: object, reason: str
) -> None:
    monkeypatch.setattr(what, other)
    assert reason in str(linux_packages.reason_against())


@pytest.mark.usefixtures("fitting")
def test_what_is_not_installed_is_brought_by_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    brought: list[set[str]] = []
    there = "libc6-dev installed\nlibfuse3-dev installed\nliblzma-dev config-files\n"
    monkeypatch.setattr("shutil.which", lambda name: None if name == "mksquashfs" else name)
    monkeypatch.setattr(linux_packages, "output_of", lambda _command: (0, there))
    monkeypatch.setattr(system_packages, "provide", lambda names, _reason: brought.append(names))
    linux_packages.ensure()
    assert brought == [{"liblzma-dev", "libsquashfuse-dev", "libzstd-dev", "squashfs-tools"}]


@pytest.mark.usefixtures("fitting")
def test_nothing_is_brought_where_packages_cannot_be_made(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr(system_packages, "provide", lambda *_: pytest.fail("something was brought"))
    linux_packages.ensure()
    assert "the packages for Linux are not tried: they are installed" in capsys.readouterr().out


@pytest.mark.usefixtures("fitting")
@pytest.mark.parametrize(("status", "words"), [(0, ("unshare", "--net")), (1, ())])
def test_network_is_taken_away_where_that_is_allowed(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    status: int,
    words: tuple[str, ...],
) -> None:
    def play(command: Sequence[str | Path]) -> tuple[int, str]:
        return (status if command[0] == "unshare" else 0), ""

    monkeypatch.setattr(linux_packages, "output_of", play)
    monkeypatch.setattr(system_packages, "provide", lambda *_: None)
    assert linux_packages.cut_off() == words
    linux_packages.ensure()
    assert ("cannot be taken away here" in capsys.readouterr().out) is (words == ())


def test_recipe_names_the_libraries_that_are_brought() -> None:
    assert set(linux_packages.LIBRARIES) == set(starter.LIBRARIES)


def test_page_for_builders_names_what_the_gate_brings_to_make_packages() -> None:
    page = (ROOT / "installers" / "README.md").read_text(encoding="utf-8")
    line = page.partition("`apt-get install ")[2].partition("`")[0].split()
    needed = {*linux_packages.PROGRAMS.values(), *linux_packages.LIBRARIES} - {"xdotool"}
    assert needed - set(line) == {"libc6-dev"}  # which gcc brings


def test_pip_is_told_by_variables_what_files_tell_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def play(command: Sequence[str | Path]) -> tuple[int, str]:
        told = "global.retries='7'\n:env:.timeout='9'\n"
        return 0, "/somewhere/pip\n" if command[-1] == "dir" else told

    monkeypatch.setattr(linux_packages, "output_of", play)
    assert linux_packages.pip_settings() == {
        "PIP_RETRIES": "7",
        "PIP_TIMEOUT": "9",
        "PIP_CACHE_DIR": "/somewhere/pip",
    }


@pytest.mark.parametrize(("names", "count"), [(["pure"], 0), (["pure", "package"], 1), ([], 1)])
def test_only_the_job_that_makes_packages_brings_what_they_need(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, names: list[str], count: int
) -> None:
    brought: list[str] = []
    monkeypatch.setattr(jobs, "RECORD", tmp_path / "gate.json")
    monkeypatch.setattr(jobs, "run_job", lambda _job: jobs.Outcome(passed=1))
    monkeypatch.setattr(system_packages, "ensure_test_programs", lambda: None)
    monkeypatch.setattr(linux_packages, "ensure", lambda: brought.append("packers"))
    assert jobs.main(names) == 0
    assert len(brought) == count
