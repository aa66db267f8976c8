"""A folder full of code: it is looked at without running any of it and without writing anything."""

import pickle
import subprocess
import sys
from pathlib import Path

from tests.support.checkpoint_folders import write_checkpoint
from tests.support.code_traps import Canary, make_trap

_WATCHED = """
import os, sys
events = []
def watch(event, arguments):
    if event == "open" and (arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)):
        events.append(f"write {arguments[0]}")
    elif event in ("os.mkdir", "os.remove", "os.rename", "os.link", "os.symlink", "os.truncate",
                   "os.chmod", "os.utime", "pickle.find_class", "subprocess.Popen", "os.system",
                   "os.exec", "os.posix_spawn", "socket.connect", "ctypes.dlopen"):
        events.append(f"{event} {arguments}")
    elif event in ("import", "compile", "exec") and FOLDER in str(arguments):
        events.append(f"{event} {arguments}")
FOLDER = sys.argv[1]
from pathlib import Path
from runtime.inspect.folder import inspect_folder
from runtime.tokenizer.judge import template_problem
# Whatever is imported late by them is no doing of the folder.
inspect_folder(sys.argv[2]); template_problem(Path(sys.argv[2]))
sys.addaudithook(watch)
report = inspect_folder(FOLDER).report
problem = template_problem(Path(FOLDER))
events = list(events)
print(report.is_runnable and problem is None)
print(*events, sep="\\n")
"""


def state_of(folder: Path) -> dict[str, tuple[int, int]]:
    return {path.name: (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.iterdir()}


def test_canary_sings_when_it_is_unpickled(tmp_path: Path) -> None:
    sign = tmp_path / "sign"
    pickle.loads(pickle.dumps(Canary(sign)))
    assert sign.exists()


def test_inspecting_runs_no_code_and_writes_nothing(tmp_path: Path) -> None:
    sign = tmp_path / "sign"
    folder = make_trap(tmp_path / "trap", sign)
    plain = write_checkpoint(tmp_path / "plain")
    before = state_of(folder)
    done = subprocess.run(
        [sys.executable, "-c", _WATCHED, str(folder), str(plain)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split("\n") == ["True", "", ""]
    assert not sign.exists()
    assert state_of(folder) == before
