"""The packages for Linux: made by their recipe, then used by a stranger without network.

Only their compression is another than that of what people download. `make deep` does more of the
same in a bare system.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from installers import description
from installers.linux import deb
from installers.screen import Screen
from installers.sitting import ANSWER, QUESTION, begin
from tests.support.packages import run

import environments
import linux_packages
import torch_build
from console import ROOT

# The first of these tests makes everything, on a machine that others may use too.
pytestmark = pytest.mark.timeout(600)
_STRANGER = 4321
"""Somebody who owns nothing here but a home folder."""
_PROMISED = (".cache/larder/", ".config/larder/", ".local/share/larder/", ".local/state/larder/")
_MAX_MAKING_S = 500.0
_MAX_UNMOUNTING_S = 60.0
_SEARCHED = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Packages:
    """What the recipe made."""

    deb: Path
    image: Path
    place: Path
    """A folder that everybody may enter, for what is tried."""


@pytest.fixture(scope="module", name="made")
def _made(request: pytest.FixtureRequest) -> Iterator[Packages]:
    """Both packages of the whole program."""
    against = linux_packages.reason_against()
    if against is None and linux_packages.missing():
        against = f"{', '.join(linux_packages.missing())}: not installed; make test brings it"
    if against:
        pytest.skip(f"the packages for Linux are not tried: {against}")
    wheel = request.getfixturevalue("wheel")
    with tempfile.TemporaryDirectory(prefix="larder-packages-") as folder:
        place = Path(folder)
        place.chmod(0o755)
        source = torch_build.source_for("cpu", sys.executable, environments.CONSTRAINTS)
        command = [sys.executable, "-m", "installers", "linux", "--quick", "--wheel", wheel]
        command += ["--build", place / "build", "--out", place / "dist", "--torch-source", source]
        run(command, ROOT, max_s=_MAX_MAKING_S)
        shutil.rmtree(place / "build")
        known, out = description.read(), place / "dist"
        made = Packages(out / deb.file_name(known), out / f"{known.stem('linux')}.AppImage", place)
        assert set(out.iterdir()) == {made.deb, made.image, out / "SHA256SUMS"}
        yield made


class Person:
    """Somebody with an empty home folder whose name is in three scripts, and no network."""

    def __init__(self, place: Path, *, is_stranger: bool = True) -> None:
        self.home = place / "Jo Müller, Анна и 王 小明"
        self.scratch = place / "scratch"
        self._as_somebody = []
        for folder in (self.home, self.scratch):
            folder.mkdir(0o700, parents=True)
            if is_stranger:
                shutil.chown(folder, _STRANGER, _STRANGER)
        if is_stranger:
            who = [f"--reuid={_STRANGER}", f"--regid={_STRANGER}", "--clear-groups"]
            self._as_somebody = ["setpriv", *who]

    def words(self, program: Path, *words: str, screen: str = "") -> list[str]:
        """What starts a program as this person."""
        told = {"HOME": self.home, "PATH": _SEARCHED, "LANG": "C.UTF-8"}
        # What is mounted lies in the second.
        told |= {"TMPDIR": self.scratch, "XDG_RUNTIME_DIR": self.scratch}
        told |= {"DISPLAY": f":{screen}"} if screen else {}
        variables = [f"{name}={value}" for name, value in told.items()]
        apart = [*linux_packages.cut_off(), *self._as_somebody, "env", "-i", *variables]
        return [*apart, str(program), *words]

    def sit_down(self, program: Path, place: Path) -> str:
        """Start the window, ask, close it; return the answer."""
        with Screen(place) as screen:
            words = self.words(program, screen=screen.number)
            log = place / "started.log"
            with begin(words, screen, self.home, str(self.home), log) as sitting:
                answer = sitting.ask(sitting.window(description.read().title))
        assert sitting.program.returncode == 0, log.read_text("utf-8")
        return answer

    def compare(self) -> None:
        """Assert that the program kept what it said, where it said, and nothing else."""
        kept = [path.relative_to(self.home) for path in self.home.rglob("*") if path.is_file()]
        assert kept
        assert [path for path in kept if not path.as_posix().startswith(_PROMISED)] == []
        until_s = time.monotonic() + _MAX_UNMOUNTING_S
        while list(self.scratch.iterdir()) and time.monotonic() < until_s:
            time.sleep(0.05)
        assert list(self.scratch.iterdir()) == []


def _dpkg(root: Path, *words: str | Path) -> None:
    """Run dpkg for a system that lies in a folder and has nothing but the package."""
    options = ["--force-depends", "--force-unsafe-io", "--log=/dev/null"]
    run(["dpkg", f"--root={root}", *options, *words], root, {"PATH": _SEARCHED})


def _files(root: Path) -> set[str]:
    """Every path of that system, dpkg's own left out."""
    names = {path.relative_to(root).as_posix() for path in root.rglob("*")}
    return {name for name in names if not name.startswith("var/lib/dpkg/")}


def test_deb_asks_for_packages_that_this_debian_has(made: Packages) -> None:
    told = run(["apt-get", "--simulate", "--no-install-recommends", "install", made.deb], ROOT)
    assert f"Inst {description.read().name} " in told


def test_installed_deb_answers_and_goes_without_a_trace(made: Packages) -> None:
    root = made.place / "a system система 系统"
    for folder in ("info", "updates"):
        (root / "var" / "lib" / "dpkg" / folder).mkdir(parents=True)
    (root / "var" / "lib" / "dpkg" / "status").touch()
    before = _files(root)
    _dpkg(root, "--install", made.deb)
    person = Person(made.place / "person of the deb")
    terminal = root / "usr" / "bin" / "larderctl"
    version = run(person.words(terminal, "--version"), made.place)
    assert version == f"larderctl {description.read().version}\n"
    demo = run(person.words(terminal, "demo"), made.place).strip()
    assert Path(demo).is_relative_to(root)
    asked = ("--prompt", QUESTION, "--max-tokens", "12", "--json")
    answer = json.loads(run(person.words(terminal, "chat", demo, *asked), made.place))
    assert ANSWER in answer["text"]
    assert answer["kernels"] != "reference"
    assert ANSWER in person.sit_down(root / "usr" / "bin" / "larder", made.place)
    person.compare()
    _dpkg(root, "--purge", description.read().name)
    assert _files(root) == before
    shutil.rmtree(root)


def test_appimage_answers_and_leaves_no_mount(made: Packages) -> None:
    downloads = made.place / "下载 загрузки"
    downloads.mkdir()
    image = Path(shutil.move(made.image, downloads / made.image.name))
    # Where only root may mount, anybody else would have a gigabyte unpacked first.
    person = Person(made.place / "person of the AppImage", is_stranger=False)
    assert ANSWER in person.sit_down(image, made.place)
    person.compare()
    assert list(downloads.iterdir()) == [image]
