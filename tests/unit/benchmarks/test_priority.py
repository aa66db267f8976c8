"""A measurement comes first in the scheduler, and everything is as before afterwards."""

import os
from pathlib import Path

import pytest
from priority import first_in_scheduler

pytestmark = pytest.mark.skipif(not hasattr(os, "setpriority"), reason="needs priorities")


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    priorities: list[int] = []
    monkeypatch.setattr(os, "setpriority", lambda _, __, nice: priorities.append(nice))
    return priorities


def test_the_group_of_the_session_is_raised_and_put_back(tmp_path: Path, told: list[int]) -> None:
    group = tmp_path / "autogroup"
    group.write_text("/autogroup-429 nice 3\n", encoding="ascii")
    with first_in_scheduler(group) as is_first:
        assert is_first
        assert group.read_text(encoding="ascii") == "-20"
    assert group.read_text(encoding="ascii") == "3"
    assert told == [-20, os.getpriority(os.PRIO_PROCESS, 0)]


def test_without_groups_the_process_alone_comes_first(tmp_path: Path, told: list[int]) -> None:
    group = tmp_path / "autogroup"
    with first_in_scheduler(group) as is_first:
        assert is_first
    assert told[0] == -20
    assert not group.exists()


def test_whoever_may_not_measures_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "setpriority", refuse)
    group = tmp_path / "autogroup"
    group.write_text("/autogroup-429 nice 0\n", encoding="ascii")
    with first_in_scheduler(group) as is_first:
        assert not is_first
    assert group.read_text(encoding="ascii") == "/autogroup-429 nice 0\n"
