"""Window and worker killed together at any moment of an answer: at most its last second is lost."""

from __future__ import annotations

import functools
import json
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from app.state.chat_store import ChatStore
from app.state.chat_values import AnswerEnd, Message
from runtime.protocol.chat import Role
from tests.support.runtime_process import wait_until_gone
from tests.support.window_process import GONE_S, kill_all, running_window

NUM_KILLS = 50 if os.environ.get("LARDER_TEST_PROFILE") == "deep" else 1
RATE = 100.0
ANSWER = " ".join(f"word{number}" for number in range(20_000))
MAX_ARRIVALS = 150
"""Pieces of an answer after which it is killed at the latest."""
MAX_LOST_S = 1.0
Record = Callable[[str, object], None]

_RECORDING = """
import os, time
from app.state.growing_answer import GrowingAnswer
_arrivals = os.open({path!r}, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
_add = GrowingAnswer.add
def _recorded_add(self, text, token_ids, thinking=""):
    _add(self, text, token_ids, thinking)
    os.write(_arrivals, b"%.6f %d\\n" % (time.monotonic(), len(self.message.text)))
GrowingAnswer.add = _recorded_add
"""
"""Has the window write down when how much of an answer had arrived."""


def arrivals(path: Path) -> list[tuple[float, int]]:
    """When how many characters had arrived; a line that is being written is left out."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="ascii").split("\n")[:-1]
    return [(float(when), int(size)) for when, size in map(str.split, lines)]


def has_arrived(path: Path, num_pieces: int) -> bool:
    """Whether so many pieces of an answer are there."""
    return len(arrivals(path)) >= num_pieces


def kept(chats_file: Path) -> list[list[Message]]:
    """The chats as the next start finds them, oldest first; nothing of them may be damaged."""
    store = ChatStore(chats_file)
    assert store.take_notices() == []
    found = [store.messages(heading.chat_id) for heading in reversed(store.headings())]
    store.close()
    return found


@pytest.mark.timeout(60 + 30 * NUM_KILLS)
def test_killed_with_its_worker_at_random_loses_at_most_the_last_second_of_an_answer(
    tmp_home: Path, tmp_path: Path, record_property: Record
) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"answers": [ANSWER]}), encoding="utf-8")
    folder = tmp_path / "a model"
    folder.mkdir()
    options = ("--engine", "scripted", "--script", str(script), "--rate", str(RATE))
    chats_file = tmp_home / "data" / "chats.db"
    chance = random.Random(13)
    before: list[list[Message]] = []
    most_lost_s = 0.0
    for number in range(NUM_KILLS):
        record = tmp_path / f"arrivals-{number}"
        enough = chance.randint(1, MAX_ARRIVALS)
        with running_window(
            tmp_home,
            folder,
            *options,
            is_obedient=True,
            prelude=_RECORDING.format(path=str(record)),
        ) as window:
            worker = window.wait_until_loaded()
            window.tell(f"ask question {number}")
            window.wait_until(functools.partial(has_arrived, record, enough))
            kill_all(window, chance)
            wait_until_gone(worker, GONE_S)
        arrived = arrivals(record)
        now = kept(chats_file)
        assert now[:-1] == before, "what was said before is as it was"
        question, answer = now[-1]
        assert (question.role, question.text) == (Role.USER, f"question {number}")
        assert answer.end is AnswerEnd.CUT_OFF
        assert ANSWER.startswith(answer.text)
        killed_s = arrived[-1][0]
        missing = [when for when, size in arrived if size > len(answer.text)]
        lost_s = killed_s - min(missing, default=killed_s)
        most_lost_s = max(most_lost_s, lost_s)
        assert lost_s <= MAX_LOST_S
        before = now
    record_property("num_kills", NUM_KILLS)
    record_property("most_lost_s", round(most_lost_s, 3))
