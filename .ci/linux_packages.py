"""What the gate makes and tries the packages for Linux with, and where it cannot.

The recipe takes Python out of Debian's packages and builds for the processor that it runs on;
trying needs root, to install into a folder of its own and to be another user without network.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path

import bare_system
import system_packages
from console import output_of, say

PYTHON = (3, 11)
"""The one that the packages hold, which our extension has to be built for."""
ROOM_BYTES = 4_000_000_000
"""The tree, two packages of it, and one of them installed."""
PROGRAMS = {
    "gcc": "gcc", "mksquashfs": "squashfs-tools", "patchelf": "patchelf", "strip": "binutils",
    "xdotool": "xdotool", "xz": "xz-utils",
}  # fmt: skip
"""A program that makes or tries them -> its Debian package."""
LIBRARIES = ("libc6-dev", "libfuse3-dev", "liblzma-dev", "libsquashfuse-dev", "libzstd-dev")
"""What the AppImage's start program is linked from."""
_UPDATE = ("apt-get", "-qq", "update", "-o", "APT::Update::Error-Mode=any")


def reason_against() -> str | None:
    """Why the packages cannot be made and tried here, or None where they can."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return "they are made on Linux on x86-64 alone"
    if f"VERSION_CODENAME={bare_system.RELEASE}" not in _system().split():
        return f"they are made of Debian 12 ({bare_system.RELEASE}), and this is another system"
    if os.geteuid() != 0:
        return "they are installed into a folder and used as somebody else, which needs root"
    if sys.version_info[:2] != PYTHON:
        return f"they hold Python {'.'.join(map(str, PYTHON))}, and this is another one"
    if shutil.disk_usage(tempfile.gettempdir()).free < ROOM_BYTES:
        return f"they need {ROOM_BYTES / 1e9:.0f} GB in {tempfile.gettempdir()}"
    if output_of(_UPDATE)[0] != 0:
        return "Debian's packages cannot be reached from here"
    return None


def _system() -> str:
    """What the system says that it is."""
    path = Path("/etc/os-release")
    return path.read_text(encoding="utf-8") if path.exists() else ""


def missing() -> set[str]:
    """The Debian packages that are needed and not installed."""
    names = {package for program, package in PROGRAMS.items() if shutil.which(program) is None}
    query = ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *LIBRARIES]
    there = {line.removesuffix(" installed") for line in output_of(query)[1].splitlines()}
    return names | (set(LIBRARIES) - there)


def cut_off() -> tuple[str, ...]:
    """What to start a program with so that it has no network; nothing where that is refused."""
    words = ("unshare", "--net")
    return words if output_of([*words, "true"])[0] == 0 else ()


def ensure() -> None:
    """Bring what is missing, where the packages can be made; say so where they cannot."""
    against = reason_against()
    if against:
        say(f"the packages for Linux are not tried: {against}")
        return
    system_packages.provide(missing(), "The packages for Linux need more")
    if not cut_off():
        say("the packages for Linux are tried with the network, which cannot be taken away here")


def pip_settings() -> dict[str, str]:
    """What pip is told on this machine, as variables: tests see no home folder with its files."""
    status, listed = output_of([sys.executable, "-m", "pip", "config", "list"])
    found = bare_system.lent(listed).variables if status == 0 else {}
    status, cache = output_of([sys.executable, "-m", "pip", "cache", "dir"])
    return {**found, "PIP_CACHE_DIR": cache.strip()} if status == 0 else found
