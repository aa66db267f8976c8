"""A place that really cannot be written to, whoever runs the tests."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

_APART = ("unshare", "--mount", "--propagation", "private")


def make_unwritable(folder: Path) -> None:
    """Make an empty folder, closed to everyone but root."""
    folder.mkdir(parents=True, mode=0o555)


def where_unwritable(folder: Path, command: Sequence[str]) -> tuple[str, ...]:
    """Return a command, to which more can be added, for which that folder really is unwritable.

    Root may write into closed folders: for root a read-only file system is mounted there, in a name
    space that ends with the program. Where that is not allowed the test is left out.
    """
    if os.geteuid() != 0:
        return tuple(command)
    return _where_mounted(f"mount -t tmpfs -o ro none {shlex.quote(str(folder))}", command)


def where_read_only(folder: Path, command: Sequence[str]) -> tuple[str, ...]:
    """Return a command for which that folder, with all that it holds, lies on a read-only drive.

    For root it does; for others everything in it is closed, which it stays.
    """
    if os.geteuid() != 0:
        for inner, _, names in os.walk(folder):
            for name in names:
                Path(inner, name).chmod(0o444)
            Path(inner).chmod(0o555)
        return tuple(command)
    there = shlex.quote(str(folder))
    bind = f"mount --bind {there} {there} && mount -o remount,bind,ro {there}"
    return _where_mounted(bind, command)


def where_full(folder: Path, command: Sequence[str], size: str = "4k") -> tuple[str, ...]:
    """Return a command for which that folder is an empty drive with so little room."""
    if os.geteuid() != 0:
        pytest.skip("small drives are mounted by root alone")
    folder.mkdir(parents=True)
    return _where_mounted(f"mount -t tmpfs -o size={size} none {shlex.quote(str(folder))}", command)


def _where_mounted(mount: str, command: Sequence[str]) -> tuple[str, ...]:
    """Return a command that runs behind a mount which nobody else sees."""
    if subprocess.run([*_APART, "sh", "-c", mount], capture_output=True, check=False).returncode:
        pytest.skip("root writes into every folder here, and may mount nothing")
    # What is put after the command reaches it as "$@".
    return (*_APART, "sh", "-c", f'{mount} && exec {shlex.join(command)} "$@"', "sh")
