"""``larderctl`` with output that cannot be written, streams that are closed, and early Ctrl+C."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.runtime_process import ROOT, TIMEOUT_S

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/dev/full and the shell's streams")


def in_shell(command: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run ``larderctl`` with redirections; FOLDER in the command stands for a model."""
    program = f"'{sys.executable}' -m runtime.cli"
    scripted = f"'{folder}' --engine scripted --rate 0"
    return subprocess.run(
        ["/bin/sh", "-c", command.replace("CTL", program).replace("FOLDER", scripted)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        stdin=subprocess.DEVNULL,
        timeout=TIMEOUT_S,
        check=False,
    )


@pytest.mark.parametrize(
    "command",
    [
        "CTL inspect FOLDER --json > /dev/full",
        "CTL inspect /nowhere --json > /dev/full",
        "CTL inspect FOLDER > /dev/full",
        "CTL chat FOLDER --prompt 'script: say yes' > /dev/full",
        "CTL chat FOLDER --prompt 'script: bug' --json > /dev/full",
        "CTL prepare FOLDER --progress-json > /dev/full",
        "CTL --version > /dev/full",
        "CTL demo --json > /dev/full",
    ],
)
def test_output_that_cannot_be_written_is_one_sentence(tmp_path: Path, command: str) -> None:
    done = in_shell(command, tmp_path)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert "larderctl: The output cannot be written: No space left on device." in done.stderr
    assert done.returncode == 2


@pytest.mark.parametrize(
    ("command", "status", "output"),
    [
        ("CTL chat FOLDER --prompt 'script: say yes' >&-", 0, ""),
        ("CTL chat FOLDER --prompt 'script: say yes' 2>&-", 0, "yes\n"),
        ("CTL chat FOLDER --prompt 'script: say yes' 2>/dev/full", 0, "yes\n"),
        ("CTL chat FOLDER --prompt 'script: say yes' <&- >&- 2>&-", 0, ""),
        ("CTL chat FOLDER <&-", 0, ""),
        ("CTL inspect /nowhere 2>&-", 2, ""),
        ("CTL inspect /nowhere 2>/dev/full", 2, ""),
        ("CTL inspect /nowhere --json >&-", 2, ""),
    ],
)
def test_streams_that_are_closed_do_not_matter(
    tmp_path: Path, command: str, status: int, output: str
) -> None:
    done = in_shell(command, tmp_path)
    assert (done.returncode, done.stdout) == (status, output), done.stderr
    assert "Traceback" not in done.stderr


def test_interrupt_while_the_program_is_imported_leaves_no_stack(tmp_path: Path) -> None:
    interrupted = (
        "import signal, sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'msgspec': signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "from runtime.cli.__main__ import main\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", interrupted, "inspect", str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
