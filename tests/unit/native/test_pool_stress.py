"""The pool under many short jobs, built by itself from its sources."""

import shutil
import subprocess
import sys
from pathlib import Path

NATIVE = Path(__file__).resolve().parents[3] / "runtime" / "native"


def test_pool_under_many_short_jobs_runs_every_task_once(tmp_path: Path) -> None:
    compiler = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
    if compiler is None:
        assert sys.platform == "win32", "only there the compiler is not on the path"
        return
    program = tmp_path / "pool_stress"
    sources = [NATIVE / "tests" / "pool_stress.cpp", NATIVE / "src" / "pool.cpp"]
    subprocess.run(
        [compiler, "-std=c++20", "-O2", *map(str, sources), "-o", str(program), "-pthread"],
        check=True,
        timeout=100,
    )
    ended = subprocess.run([program], capture_output=True, text=True, timeout=100, check=False)
    assert (ended.returncode, ended.stdout) == (0, "every task ran once\n")
