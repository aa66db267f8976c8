"""The packages for Linux tried as a person would: in a bare Debian, as a user, without network.

`python -m installers.try_linux dist [WAY...]` needs root, debootstrap, unshare, Xvfb and xdotool.
What is shown stays on a virtual screen of this machine; the bare system reaches it through its
socket. Each way of installing is started, asked a question with keys, given a model folder with the
mouse, closed, and removed; then the bare system is compared with what it was before. Also called by
`make deep`.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from installers.description import ROOT, Description, RecipeError, read
from installers.linux import deb
from installers.pack import need
from installers.screen import Screen
from installers.sitting import begin

_PROGRAMS = ("debootstrap", "unshare", "mount", "chroot", "Xvfb", "xdotool", "tar")
_APART = ("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child")
_RELEASE = "bookworm"
_SEARCHED = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_USER_ID = 4321
HOMES = ("home/Jo Müller", "home/Анна Петрова", "home/王 小明")
"""Homes of users with spaces, Cyrillic and Chinese in their names."""


def main(arguments: list[str]) -> int:
    """Try the packages of a folder; print what came of it."""
    try:
        found = try_out(Path(arguments[0] if arguments else "dist").absolute(), arguments[1:])
    except RecipeError as error:
        sys.stderr.write(f"larder: {error}\n")
        return 1
    sys.stdout.write(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    return 0 if found["verdict"] == "passed" else 1


def try_out(dist: Path, ways: Sequence[str] = ()) -> dict[str, object]:
    """Try each package, or those named, in a bare system made for the occasion."""
    if sys.platform != "linux" or os.geteuid() != 0:
        raise RecipeError("The packages are tried by root on Linux alone, in a bare system.")
    need(*_PROGRAMS)
    description = read()
    with tempfile.TemporaryDirectory(prefix="larder-try-") as scratch:
        root = Path(scratch) / "root"
        _bare(root)
        with Screen(Path(scratch)) as screen:
            trial = Trial(description, dist, root, screen)
            trial.furnish()
            steps = {
                "deb": trial.deb,
                "folder": trial.folder,
                "appimage-unpacked": trial.unpacked_image,
                "appimage-mounted": trial.mounted_image,
            }
            results = {name: _told(steps[name]) for name in ways or steps}
    good = all("failed" not in one for one in results.values())
    return {"verdict": "passed" if good else "failed", **results}


def _told(step: Callable[[], dict[str, object]]) -> dict[str, object]:
    """What a step found, or why it failed."""
    try:
        return step()
    except RecipeError as error:
        return {"failed": str(error)}


def _bare(root: Path) -> None:
    """Make a bare Debian with a way to its packages."""
    _must(["debootstrap", "--variant=minbase", _RELEASE, str(root)], "debootstrap failed")
    shutil.copyfile("/etc/resolv.conf", root / "etc" / "resolv.conf")
    (root / "tmp" / ".X11-unix").mkdir(parents=True, exist_ok=True)


def _must(command: list[str], failure: str) -> str:
    """Output of a command that has to succeed."""
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        raise RecipeError(f"{failure}: {' '.join((done.stdout + done.stderr).split()[-40:])}")
    return done.stdout


@dataclass
class Trial:
    """One bare system, in which the packages are tried one after another."""

    description: Description
    dist: Path
    root: Path
    screen: Screen
    demo: Path = ROOT / "build" / "demo" / "larder-demo"
    _count: int = field(default=0)

    def furnish(self) -> None:
        """Install what every desktop has: that is what the Debian package depends on."""
        _must(self._inside(["apt-get", "-qq", "update"], net=True), "apt-get update failed")
        package = self.dist / deb.file_name(self.description)
        fields = _must(["dpkg-deb", "-f", str(package), "Depends"], "the .deb cannot be read")
        self._install(*_first_choices(fields))
        # Whoever mounts has to have a name.
        with (self.root / "etc" / "passwd").open("a", encoding="utf-8") as file:
            file.write(f"person:x:{_USER_ID}:{_USER_ID}::/:/bin/sh\n")

    def _install(self, *names: str) -> None:
        """Install packages of the system's."""
        install = ["apt-get", "-qq", "-y", "--no-install-recommends", "install", *names]
        _must(self._inside(install, net=True), f"{', '.join(names)} cannot be installed")

    def deb(self) -> dict[str, object]:
        """Install the package, chat, remove, and compare the system with what it was."""
        name = self.description.name
        package = deb.file_name(self.description)
        shutil.copyfile(self.dist / package, self.root / "tmp" / package)
        before = self._files()
        _must(self._inside(["dpkg", "-i", f"/tmp/{package}"]), "the package cannot be installed")
        found = self._chat(["/usr/bin/larder"], HOMES[0], is_read_only=True)
        told = _must(self._inside(["/usr/bin/larderctl", "--version"]), "larderctl does not start")
        _must(self._inside(["dpkg", "--purge", name]), "the package cannot be removed")
        return {**found, "version": told.strip(), "left": self._compare(before, HOMES[0])}

    def folder(self) -> dict[str, object]:
        """Unpack into a folder with a name in two scripts, closed to writing; chat, delete."""
        place = self.root / "opt" / "мои программы 程序"
        place.mkdir(parents=True)
        before = self._files()
        stem = self.description.stem("linux")
        archive = self.dist / f"{stem}.tar.xz"
        _must(["tar", "-xJf", str(archive), "-C", str(place)], "the archive cannot be unpacked")
        inside = f"/opt/{place.name}/{stem}"
        found = self._chat([f"{inside}/larder"], HOMES[1], is_read_only=True)
        shutil.rmtree(place / stem)
        return {**found, "left": self._compare(before, HOMES[1])}

    def unpacked_image(self) -> dict[str, object]:
        """Start the AppImage twice, the second time without unpacking; chat, delete."""
        before = self._files()
        command, downloads = self._download(HOMES[2])
        first = self._chat(command, HOMES[2], is_read_only=True)
        (place,) = (self.root / HOMES[2] / ".cache" / "larder" / "program").iterdir()
        made = place.stat().st_ctime_ns
        second = self._chat(command, HOMES[2], is_read_only=True)
        if place.stat().st_ctime_ns != made:
            raise RecipeError("The second start unpacked again.")
        shutil.rmtree(self.root / HOMES[2] / ".cache")
        shutil.rmtree(downloads)
        return {
            **second, "first_start_s": first["start_s"], "left": self._compare(before, HOMES[2]),
        }  # fmt: skip

    def mounted_image(self) -> dict[str, object]:
        """Start the AppImage where users may mount: nothing is unpacked, and no mount is left."""
        self._install("fuse3")
        table = self.root / "etc" / "mtab"
        if not table.exists():
            # What starts a system makes it; fusermount3 reads it.
            table.symlink_to("../proc/self/mounts")
        before = self._files()
        command, downloads = self._download(HOMES[0])
        found = self._chat(command, HOMES[0], is_read_only=True, has_fuse=True)
        if (self.root / HOMES[0] / ".cache" / "larder" / "program").exists():
            raise RecipeError("The AppImage was unpacked although FUSE was there.")
        left = [path.name for path in (self.root / "tmp").glob(".mount_*")]
        if left:
            raise RecipeError(f"{', '.join(left)} is still mounted.")
        shutil.rmtree(downloads)
        return {**found, "left": self._compare(before, HOMES[0])}

    def _download(self, home: str) -> tuple[list[str], Path]:
        """Put the AppImage among a person's downloads; return how it is started, and the folder."""
        name = f"{self.description.stem('linux')}.AppImage"
        downloads = self.root / home / "下载 загрузки"
        downloads.mkdir(parents=True)
        shutil.copy2(self.dist / name, downloads / name)
        return [f"/{home}/{downloads.name}/{name}"], downloads

    def _chat(
        self, command: list[str], home: str, *, is_read_only: bool = False, has_fuse: bool = False
    ) -> dict[str, object]:
        """Start as a user without network, ask by keys, drop a model folder, close."""
        self._count += 1
        folder = self.root / home
        folder.mkdir(parents=True, exist_ok=True)
        shutil.chown(folder, _USER_ID, _USER_ID)
        log = self.root / "tmp" / f"started-{self._count}.log"
        options = {"is_read_only": is_read_only, "has_fuse": has_fuse}
        words = self._inside(command, home=home, **options)
        model = self._model()
        started_s = time.monotonic()
        with begin(words, self.screen, folder, f"/{home}", log) as sitting:
            window = sitting.window(self.description.title)
            start_s = time.monotonic() - started_s
            answer = sitting.ask(window)
            library = sitting.chats.with_name("library.json")
            with self.screen.drop(f"/tmp/{model.name}", window):
                sitting.wait("dropped model", lambda: _line_with(library, model.name))
        status = sitting.program.returncode
        return {"start_s": round(start_s, 2), "answer": answer, "exit_status": status}

    def _model(self) -> Path:
        """A model folder to drop: the demo once more, under a name in three scripts."""
        model = self.root / "tmp" / f"model модель 模型 {self._count}"
        source = self.demo
        shutil.copytree(source, model)
        for path in [model, *model.iterdir()]:
            shutil.chown(path, _USER_ID, _USER_ID)
        return model

    def _inside(
        self, command: list[str], *, home: str = "", is_read_only: bool = False,
        has_fuse: bool = False, net: bool = False,
    ) -> list[str]:  # fmt: skip
        """The words that run a command in the bare system: as root, or as a user with a home."""
        root = str(self.root)
        mounts = []
        if is_read_only:
            mounts += [["mount", "--bind", root, root]]
            mounts += [
                ["mount", "--bind", path, path] for path in (f"{root}/{home}", f"{root}/tmp")
            ]
            mounts += [["mount", "-o", "remount,ro,bind", root]]
        mounts += [["mount", "-t", "proc", "proc", f"{root}/proc"]]
        mounts += [["mount", "--rbind", "/dev", f"{root}/dev"]]
        if has_fuse:
            device = f"{root}/tmp/fuse-{self._count}"
            mounts += [["mknod", "-m", "666", device, "c", "10", "229"]]
            mounts += [["mount", "--bind", device, f"{root}/dev/fuse"]]
        if home:
            mounts += [["mount", "--bind", "/tmp/.X11-unix", f"{root}/tmp/.X11-unix"]]
        variables = {"PATH": _SEARCHED, "LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
        enter = ["chroot"]
        if home:
            variables |= {"HOME": f"/{home}", "DISPLAY": f":{self.screen.number}"}
            enter += [f"--userspec={_USER_ID}:{_USER_ID}"]
        told = [f"{name}={value}" for name, value in variables.items()]
        program = shlex.join([*enter, root, "env", "-i", *told, *command])
        # A mount of the program's own goes a moment after it. Only its name may be looked at: what
        # a user mounts is closed to root.
        look = f"ls -A {shlex.quote(root)}/tmp | grep -q '^[.]mount_'"
        gone = f"for i in $(seq 300); do {look} || break; sleep 0.1; done"
        after = f"{program} || status=$?; {gone}; exit ${{status:-0}}"
        lines = "\n".join(["set -e", *(shlex.join(words) for words in mounts), after])
        return [*_APART, *([] if net else ["--net"]), "sh", "-c", lines]

    def _files(self) -> set[str]:
        """Every path of the bare system that a package could leave behind."""
        passed = ("proc", "dev", "sys", "tmp", "run")
        return {
            path.relative_to(self.root).as_posix()
            for top in self.root.iterdir()
            if top.name not in passed
            for path in [top, *([] if top.is_symlink() else top.rglob("*"))]
        }

    def _compare(self, before: set[str], home: str) -> list[str]:
        """What is new, of the person's own files only the folders' names."""
        new = self._files() - before
        own = {path for path in new if path.startswith(home)}
        outside = sorted(new - own - {"var/lib/dpkg/available"})
        unexpected = [
            path for path in outside if not path.startswith(("var/cache/", "var/log/", "var/lib/"))
        ]
        if unexpected:
            raise RecipeError(f"{', '.join(unexpected[:10])} was left behind.")
        kept = {path for path in own if path.endswith("/larder")}
        return sorted(path.removeprefix(f"{home}/") for path in kept)


def _first_choices(fields: str) -> list[str]:
    """The packages that dpkg's fields name, of alternatives those that Debian 12 has."""
    wanted = fields.strip().split(", ")
    return [choice.split(" | ")[-1].split(" (")[0] for choice in wanted]


def _line_with(path: Path, text: str) -> str:
    """Where a file names something; empty where it does not, or is not there yet."""
    if not path.exists():
        return ""
    told = path.read_text(encoding="utf-8", errors="replace")
    return text if text in told else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
