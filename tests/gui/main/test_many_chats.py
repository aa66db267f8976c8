"""The whole window with two thousand chats: how soon it is there, and how much it holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.support.chat_talks import fill
from tests.support.runtime_process import ROOT

MAX_WINDOW_BYTES = 250 << 20
MAX_START_S = 3.0
"""Stated by the issue; asserted at three times its value, since other work takes the cores."""
_WINDOW = """
import json, os, sys, time
began = time.perf_counter()
import psutil
from app.main import Program, StartOptions, make_application
application = make_application(["larder"])
program = Program(StartOptions(is_demo_wanted=False), os.environ)
program.show()
application.processEvents()
taken = time.perf_counter() - began
chat = program.chat
def settled():
    while not program.chat_view.messages.is_drawn:
        application.processEvents()
for heading in chat.chats[:5]:
    chat.open_chat(heading.chat_id)
    settled()
chat.search("words")
application.processEvents()
found = len(chat.chats)
chat.search("")
application.processEvents()
held = psutil.Process().memory_info().rss
program.window.close()
program.close()
print(json.dumps({"start_s": taken, "window_bytes": held, "found": found}))
"""


def test_window_with_two_thousand_chats_starts_soon_and_stays_small(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    fill(tmp_path / "data" / "chats.db", num_chats=2000)
    environment = {**os.environ, "LARDER_HOME": str(tmp_path)}
    paths = (str(ROOT), environment.get("PYTHONPATH", ""))
    environment["PYTHONPATH"] = os.pathsep.join(each for each in paths if each)
    done = subprocess.run(
        (sys.executable, "-c", _WINDOW),
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    figures = json.loads(done.stdout.splitlines()[-1])
    for name, value in figures.items():
        record_property(name, value)
    assert figures["found"] == 2000
    assert figures["window_bytes"] < MAX_WINDOW_BYTES
    assert figures["start_s"] < 3 * MAX_START_S
