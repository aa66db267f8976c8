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
    there = shlex.quote(str(folder))
    mount = f"mount -t tmpfs -o ro none {there}"
    if subprocess.run([*_APART, "sh", "-c", mount], capture_output=True, check=False).returncode:
        pytest.skip("root writes into every folder here, and may mount nothing")
    # What is put after the command reaches it as "$@".
    return (*_APART, "sh", "-c", f'{mount} && exec {shlex.join(command)} "$@"', "sh")
