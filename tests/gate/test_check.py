"""What the checks do besides checking."""

from __future__ import annotations

import check
import pytest

import console
import environments
import jobs


def test_environments_of_the_jobs_are_made_once_each_and_a_failure_is_left_to_the_tests(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[str] = []

    def prepare(environment: environments.Environment) -> bool:
        made.append(environment.folder)
        if environment is environments.RUNTIME:
            raise console.CommandError("A package could not be installed: no room")
        return True

    monkeypatch.setattr(environments, "prepare", prepare)
    check._environments_of_jobs()
    assert sorted(made) == sorted({job.environment.folder for job in jobs.JOBS})
    assert len(made) == len(set(made))
    told = capsys.readouterr().out
    assert ".venv-runtime is not ready yet: A package could not be installed: no room" in told
