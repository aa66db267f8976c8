"""Reading where the system allows less than usual: rings, locked memory, direct reads."""

import hashlib
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.hardware.drives import drive_of
from runtime.store.files import WeightFiles

DATA = random.Random(2).randbytes(5 * 1024 * 1024)
MEMORY_FOLDER = Path("/dev/shm")


@pytest.mark.skipif(sys.platform != "linux", reason="seccomp is Linux's")
def test_files_without_rings_and_with_little_locked_memory_are_read_directly(
    tmp_path: Path,
) -> None:
    path = tmp_path / "w"
    path.write_bytes(DATA)
    expected = WeightFiles([str(path)])
    child = subprocess.run(
        [sys.executable, "-m", "tests.support.poor_reader", str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    assert child.stdout.split() == [
        str(expected.is_direct),
        str(len(DATA)),
        hashlib.sha256(DATA).hexdigest(),
    ]
    expected.close()


def _is_in_memory(folder: Path) -> bool:
    drive = drive_of(folder)
    return drive is not None and drive.file_system == "tmpfs" and os.access(folder, os.W_OK)


@pytest.mark.skipif(not _is_in_memory(MEMORY_FOLDER), reason="no file system in memory here")
def test_files_on_a_file_system_in_memory_are_read_through_it() -> None:
    path = MEMORY_FOLDER / f"larder-test-{os.getpid()}"
    try:
        path.write_bytes(DATA)
        files = WeightFiles([str(path)])
        places = [memoryview(bytearray(4096)), memoryview(bytearray(len(DATA) - 4096 - 77))]
        files.read(str(path), 77, places)
        assert not files.is_direct
        assert b"".join(places) == DATA[77:]
        files.close()
    finally:
        path.unlink(missing_ok=True)
