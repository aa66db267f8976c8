"""The heap's own store goes back to the system."""

import ctypes
import subprocess
import sys

import pytest

from runtime.memory.heap import give_back_freed
from tests.support.runtime_process import ROOT

_FREED = """
import ctypes, psutil
from runtime.memory.heap import give_back_freed
library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
library.free.argtypes = (ctypes.c_void_p,)
# One that stays above many that go: the end of the heap cannot fall.
blocks = [library.malloc(100_000) for _ in range(400)]
for block in blocks:
    ctypes.memset(block, 1, 100_000)
for block in blocks[:-1]:
    library.free(block)
before = psutil.Process().memory_info().rss
give_back_freed()
print(before - psutil.Process().memory_info().rss)
"""


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "malloc_trim"),
    reason="only the GNU library is told",
)
def test_heap_gives_back_what_was_freed_below_something_that_stays() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _FREED], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert int(ended.stdout) > 30_000_000


def test_heap_is_told_once() -> None:
    told: list[None] = []
    give_back_freed(lambda: told.append(None))
    assert told == [None]


def test_heap_of_a_library_that_knows_no_such_call_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    give_back_freed()


def test_heap_of_another_system_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: pytest.fail("its library was opened"))
    give_back_freed()
