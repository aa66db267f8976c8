"""`make deep`: what is run on other Pythons, what counts as passed, what a single step keeps."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

import deep
import environments
import interpreters
import jobs
from console import CommandError


@pytest.fixture(name="run")
def _run(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Jobs that were run, on two Pythons that nobody has; torch is there for one of them."""
    names: list[str] = []

    def prepare(environment: environments.Environment) -> bool:
        if environment.folder == ".venv-runtime-3.13":
            raise CommandError("torch for cpu could not be installed")
        return True

    def run_job(job: jobs.Job) -> jobs.Outcome:
        assert job.covered == ()
        assert job.environment.python == f"/python{job.name[-4:]}"
        names.append(f"{job.name} in {job.environment.folder}")
        return jobs.Outcome(passed=3)

    found = {version: f"/python{version}" for version in ("3.12", "3.13")}
    monkeypatch.setattr(interpreters, "others", lambda: found)
    monkeypatch.setattr(environments, "prepare", prepare)
    monkeypatch.setattr(jobs, "run_job", run_job)
    return names


def test_other_pythons_run_the_window_and_torch_where_they_can_be_had(run: list[str]) -> None:
    outcome = deep.other_pythons()
    assert run == [
        "pure-3.12 in .venv-pure-3.12",
        "runtime-cpu-3.12 in .venv-runtime-3.12",
        "gui-3.12 in .venv-gui-3.12",
        "pure-3.13 in .venv-pure-3.13",
        "gui-3.13 in .venv-gui-3.13",
    ]
    assert outcome["verdict"] == "passed"
    assert outcome["3.12 gui"] == "3 passed, 0 failed"
    assert outcome["3.13 runtime-cpu"] == "not run: torch for cpu could not be installed"


@pytest.mark.parametrize(
    ("lines", "verdict"),
    [
        (("3 passed, 0 failed", "not run: no torch"), "passed"),
        (("3 passed, 0 failed", "3 passed, 10 failed"), "failed"),
        (("not run: no torch",), "nothing to run"),
    ],
)
def test_verdict_is_of_what_ran(lines: tuple[str, ...], verdict: str) -> None:
    outcomes = {str(index): line for index, line in enumerate(lines)}
    assert deep._verdict(outcomes) == {"verdict": verdict, **outcomes}


def test_single_step_keeps_what_the_others_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = tmp_path / "deep.json"
    monkeypatch.setattr(deep, "RESULT", result)
    monkeypatch.setattr(deep, "ROOT", tmp_path)
    monkeypatch.setattr(
        deep,
        "STEPS",
        {"one": lambda: {"verdict": "passed"}, "two": lambda: {"verdict": "failed"}},
    )
    assert deep.main([]) == 1
    whole = json.loads(result.read_text(encoding="utf-8"))
    assert whole["two"] == {"verdict": "failed", "seconds": 0}
    assert deep.main(["one"]) == 0
    after = json.loads(result.read_text(encoding="utf-8"))
    assert after["two"] == whole["two"]
    assert after["one"]["date"] == after["date"] == whole["date"]
    assert after["machine"] == whole["machine"]


def test_fuzzers_go_on_until_their_time_is_over_and_stop_at_a_finding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setenv(deep.FUZZ_S, "3")
    patterns: list[str] = []

    def run_job(job: jobs.Job, *, profile: str, options: tuple[str, ...]) -> jobs.Outcome:
        assert (profile, job.covered) == ("deep", ())
        assert job.files(), "the file is there"
        assert options
        patterns.extend(job.patterns)
        is_bad = "frames" in job.patterns[0] and len(patterns) == 2
        return jobs.Outcome(passed=5, failed=int(is_bad))

    monkeypatch.setattr(jobs, "run_job", run_job)
    found = deep.fuzzers()
    assert patterns.count("tests/protocol/test_frames.py") == 2
    assert patterns.count("tests/hostile/test_hostile_checkpoints.py") > 2
    assert found["verdict"] == "failed"
    assert "10 passed, 1 failed in 2 passes" not in str(found["templates"])
