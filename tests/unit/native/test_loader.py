"""The way to the extension, and its threads over the life of a process."""

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from runtime.native import loader

ROOT = Path(__file__).resolve().parents[3]

_WORK = """
import numpy as np
from runtime.native.loader import load_native
module = load_native()
module.set_num_threads(4)
x, w, out = (np.ones(shape, np.float32) for shape in ((64, 512), (512, 512), (64, 512)))
def work():
    out[:] = 0
    module.linear(x.ctypes.data, 64, w.ctypes.data, 0, 512, 512, 0, out.ctypes.data)
    return bool((out == 512).all())
"""


@pytest.fixture
def _fresh_outcome() -> Iterator[None]:
    loader.native_outcome.cache_clear()
    yield
    loader.native_outcome.cache_clear()


@pytest.mark.usefixtures("_fresh_outcome")
def test_load_native_without_extension_keeps_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(f"no {name} here")

    monkeypatch.setattr(importlib, "import_module", missing)
    assert loader.load_native() is None
    assert loader.native_outcome().reason == "no runtime.native._native here"
    assert loader.read_bandwidth(0, 0, 1) is None


@pytest.mark.parametrize("num_threads", [1, 2])
def test_read_bandwidth_of_a_buffer_is_positive(num_threads: int) -> None:
    data = np.ones(8 << 20, np.uint8)
    rate = loader.read_bandwidth(data.ctypes.data, data.size, num_threads)
    assert rate is not None
    assert 1e6 < rate < 1e13


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _WORK + program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_pool_at_the_end_of_a_process_lets_it_leave() -> None:
    ended = run("assert all(work() for _ in range(100))\nprint('done')")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")


def test_pool_used_from_several_threads_computes_each_right() -> None:
    ended = run(
        "from concurrent.futures import ThreadPoolExecutor\n"
        "def own(_):\n"
        "    mine = np.zeros((64, 512), np.float32)\n"
        "    module.linear(x.ctypes.data, 64, w.ctypes.data, 0, 512, 512, 0, mine.ctypes.data)\n"
        "    return bool((mine == 512).all())\n"
        "with ThreadPoolExecutor(4) as threads:\n"
        "    print(all(threads.map(own, range(200))))\n"
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "True\n", "")


def test_pool_resized_between_calls_computes_right() -> None:
    ended = run(
        "for count in (1, 3, 2, 5, 1, 4) * 20:\n"
        "    module.set_num_threads(count)\n"
        "    assert module.num_threads() == count\n"
        "    assert work()\n"
        "print('done')"
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")


def test_pool_in_a_forked_child_works() -> None:
    ended = run(
        "import os, warnings\n"
        "warnings.simplefilter('ignore', DeprecationWarning)\n"
        "assert work()\n"
        "status = 0\n"
        "if hasattr(os, 'fork'):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        os._exit(0 if work() else 1)\n"
        "    status = os.waitpid(child, 0)[1]\n"
        "print(status, work())\n"
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "0 True\n", "")
