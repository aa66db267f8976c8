"""A process that is killed while it writes down facts about this PC: each file is whole."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from runtime.hardware.kept_file import kept_text

ROOT = Path(__file__).parents[3]
NUM_KILLS = 50 if os.environ.get("LARDER_TEST_PROFILE") == "deep" else 4
MAX_S = 0.05
_WRITING = """
import sys
from pathlib import Path
from runtime.hardware.kept_file import replace_file
for number in range(int(sys.argv[2]), 10**9):
    replace_file(Path(sys.argv[1]), f"{number} " * 20_000, "figures")
    print(number, flush=True)
"""


def test_facts_killed_while_they_are_written_are_the_old_or_the_new_ones(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    chance = random.Random(13)
    path, number = tmp_path / "rates.json", 0
    for _ in range(NUM_KILLS):
        command = [sys.executable, "-c", _WRITING, str(path), str(number)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(chance.uniform(0.0, MAX_S))
            process.kill()
            told = [int(line) for line in process.stdout if line.endswith("\n")]
        text = kept_text(path)
        number = int(text.split()[0])
        assert text == f"{number} " * 20_000
        assert not told or number in {told[-1], told[-1] + 1}
    record_property("num_kills", NUM_KILLS)
