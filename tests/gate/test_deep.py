"""`make deep`: what is run on other Pythons, what counts as passed, what a single step keeps."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import deep
import environments
import fuzzers
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


def changes(**other: object) -> dict[str, object]:
    good: dict[str, object] = {
        "num_changed": 1003, "num_refused": 0, "distinct_answers": [[4, 2]],
        "worst_ratio": {"load": 0.7, "answers": 1.02},
    }  # fmt: skip
    return good | other


@pytest.mark.parametrize(
    ("status", "found", "verdict"),
    [
        (0, changes(), "passed"),
        (0, changes(worst_ratio={"load": 0.7, "answers": 1.031}), "failed"),
        (0, changes(distinct_answers=[[4, 2], [4, 3]]), "failed"),
        (0, changes(num_refused=1), "failed"),
        (0, changes(num_changed=999), "failed"),
        (1, changes(), "failed"),
    ],
)
def test_live_budgets_pass_where_memory_and_answers_stayed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    found: dict[str, object],
    verdict: str,
) -> None:
    monkeypatch.setattr(environments, "prepare", lambda _: None)
    monkeypatch.setattr(deep, "_DEMO", tmp_path)
    told = f"a warning\n{json.dumps(found)}\nleaked nothing"
    monkeypatch.setattr(deep, "output_of", lambda _: (status, told))
    assert deep.live_budgets()["verdict"] == verdict


def test_live_budgets_are_not_run_without_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environments, "prepare", lambda _: None)
    monkeypatch.setattr(deep, "_DEMO", tmp_path / "demo")
    assert deep.live_budgets()["verdict"] == "nothing to run"


class MadeUpFuzzers:
    """Passes of pytest that took a second of the processor each; that of frames finds something."""

    def __init__(self) -> None:
        self.files: list[str] = []

    def output_of(self, command: list[str], *, env: dict[str, str]) -> tuple[int, str]:
        assert env == {"LARDER_TEST_PROFILE": "deep"}
        assert Path(command[-1]).exists(), "the file is there"
        self.files.append(command[-1])
        is_bad = "frames" in command[-1] and self.files.count(command[-1]) == 2
        lines = "- 40 passing, 0 failing, and 7 invalid test cases\n" * 2
        return int(is_bad), f"{lines}the frame that broke it"

    def times(self) -> tuple[float, ...]:
        return (9.0, 9.0, len(self.files) * 0.75, len(self.files) * 0.25, 50.0)


def test_fuzzers_share_their_time_and_one_that_found_something_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_up = MadeUpFuzzers()
    monkeypatch.setattr(fuzzers, "output_of", made_up.output_of)
    monkeypatch.setattr(os, "times", made_up.times)
    monkeypatch.setattr(fuzzers, "FOUND", tmp_path)
    monkeypatch.setattr(environments, "prepare", lambda environment: True)
    monkeypatch.setenv(deep.FUZZ_S, "3")
    found = deep.fuzz()
    assert found["verdict"] == "failed"
    assert found["channel frames"] == ("160 examples in 2 passes, 1 failed, 2 s of the processor")
    assert found["templates"] == "240 examples in 3 passes, 0 failed, 3 s of the processor"
    assert set(made_up.files[:4]) == set(fuzzers.FILES.values()), "the first passes of all"
    kept = (tmp_path / "fuzzer-channel-frames.txt").read_text(encoding="utf-8")
    assert "the frame that broke it" in kept


def test_fuzzers_by_themselves_keep_what_each_pass_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_up = MadeUpFuzzers()
    monkeypatch.setattr(
        fuzzers,
        "output_of",
        lambda command, **named: made_up.output_of(command, **named) if named else (0, "abc\n"),
    )
    monkeypatch.setattr(os, "times", made_up.times)
    monkeypatch.setattr(fuzzers, "RESULT", tmp_path / "fuzzers.json")
    assert fuzzers.main(["1"]) == 0
    kept = json.loads((tmp_path / "fuzzers.json").read_text(encoding="utf-8"))
    assert kept["commit"] == "abc"
    assert kept["GGUF headers"] == {"processor_s": 1, "examples": 80, "passes": 1, "findings": 0}
