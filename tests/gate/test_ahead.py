"""What is made before the tests ask for it."""

from __future__ import annotations

import pytest

import ahead
import console
import environments
import jobs
import linux_packages
import setup
import system_packages


@pytest.fixture(name="made")
def _made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is made, in order, without making it; one environment fails."""
    made: list[str] = []

    def prepare(environment: environments.Environment) -> bool:
        made.append(environment.folder)
        if environment is environments.RUNTIME:
            raise console.CommandError("A package could not be installed: no room")
        return True

    monkeypatch.setattr(environments, "prepare", prepare)
    monkeypatch.setattr(setup, "demo_model", lambda _python: made.append("demo"))
    monkeypatch.setattr(
        system_packages, "ensure_test_programs", lambda: made.append("test programs")
    )
    monkeypatch.setattr(linux_packages, "ensure", lambda: made.append("packaging programs"))
    return made


def test_environments_of_the_jobs_are_made_once_each_and_a_failure_is_left_to_the_tests(
    made: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    ahead.make_environments()
    wanted = {job.environment.folder for job in jobs.JOBS} - {environments.FULL.folder}
    assert sorted(made) == sorted(wanted)
    told = capsys.readouterr().out
    assert ".venv-runtime is not ready yet: A package could not be installed: no room" in told


def test_what_needs_the_full_environment_is_made_once_it_is_there(made: list[str]) -> None:
    with ahead.made_meanwhile() as has_full_environment:
        assert "demo" not in made
        has_full_environment()
    assert made[-3:] == ["demo", "test programs", "packaging programs"]


def test_without_the_full_environment_nothing_is_made_of_it_and_the_failure_is_told(
    made: list[str],
) -> None:
    with pytest.raises(console.CommandError, match="no room"), ahead.made_meanwhile():
        raise console.CommandError("no room")
    assert "demo" not in made
    assert len(made) == len({job.environment.folder for job in jobs.JOBS}) - 1
