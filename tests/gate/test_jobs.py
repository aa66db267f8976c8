"""The table of jobs leaves no test out, and counts what happened."""

from __future__ import annotations

import fnmatch
import json
from pathlib import Path

import pytest

import environments
import jobs
from console import ROOT


def test_every_test_file_belongs_to_a_job() -> None:
    assert jobs.unassigned() == []


def test_file_in_an_unknown_folder_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tests" / "unit" / "nowhere" / "test_thing.py"
    path.parent.mkdir(parents=True)
    path.write_text("", encoding="utf-8")
    assert jobs.unassigned(tmp_path) == [
        "tests/unit/nowhere/test_thing.py: belongs to no job; give its folder one in .ci/jobs.py"
    ]


def test_report_counts_each_case_once(tmp_path: Path) -> None:
    report = tmp_path / "a.xml"
    report.write_text(
        "<testsuites><testsuite><testcase name='a'/><testcase name='b'><failure/><error/>"
        "</testcase><testcase name='c'><skipped/></testcase></testsuite></testsuites>",
        encoding="utf-8",
    )
    assert jobs.read_report(report) == jobs.Outcome(passed=1, failed=1, skipped=1)


def test_second_try_of_a_test_is_the_one_that_counts_and_is_named(tmp_path: Path) -> None:
    report = tmp_path / "a.xml"
    report.write_text(
        "<testsuites><testsuite><testcase classname='m' name='a'/><testcase classname='m' "
        "name='a'/><testcase classname='m' name='b'/><testcase classname='m' name='b'><failure/>"
        "</testcase></testsuite></testsuites>",
        encoding="utf-8",
    )
    outcome = jobs.read_report(report)
    assert outcome == jobs.Outcome(passed=1, failed=1, second_tries=("m::a", "m::b"))


def test_figures_that_tests_wrote_down_are_told_with_their_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "some.xml").write_text(
        "<testsuite><testcase classname='m' name='a'><properties>"
        "<property name='num_kills' value='50'/></properties></testcase>"
        "<testcase classname='m' name='b'/></testsuite>",
        encoding="utf-8",
    )
    monkeypatch.setattr(jobs, "RESULTS", tmp_path)
    assert jobs.recorded("some") == ["num_kills 50 (a)"]
    assert jobs.recorded("never run") == []


def test_closing_lines_name_second_tries_just_above_the_last_line() -> None:
    outcomes = {
        "pure": jobs.Outcome(passed=3, seconds=5.2),
        "gui": jobs.Outcome(passed=2, failed=1, second_tries=("m::a", "m::b"), seconds=61.0),
    }
    total, lines = jobs.closing(outcomes, 70.4)
    assert total == jobs.Outcome(5, 1, 0, ("m::a", "m::b"), 66.2)
    assert lines == [
        "",
        "pure: 3 passed, 0 failed in 5 s",
        "gui: 2 passed, 1 failed in 61 s",
        "the gate took 70 s; it has 1200 s on two cores",
        "needed a second try: m::a",
        "needed a second try: m::b",
        "5 passed, 1 failed",
    ]


def test_closing_lines_of_no_test_at_all_count_a_failure() -> None:
    assert jobs.closing({"pure": jobs.Outcome()}, None)[1][-1] == "0 passed, 1 failed"


def test_record_of_a_run_holds_counts_seconds_and_second_tries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "RECORD", tmp_path / "tests" / "gate.json")
    outcomes = {
        "pure": jobs.Outcome(passed=3, seconds=5.26),
        "gui": jobs.Outcome(passed=2, second_tries=("m::a",), seconds=60.0),
    }
    jobs.write_record(outcomes, 70.44)
    record = json.loads(jobs.RECORD.read_text(encoding="utf-8"))
    assert record["gate_s"] == 70.4
    assert record["jobs"]["pure"] == {"outcome": "3 passed, 0 failed", "seconds": 5.3}
    assert record["second_tries"] == ["m::a"]
    assert len(record["commit"]) in (0, 40)


def test_only_jobs_with_windows_try_a_failed_test_again() -> None:
    again = {job.name for job in jobs.JOBS if job.num_second_tries}
    assert again == {"gui", "e2e", "e2e-x11"}


@pytest.mark.parametrize(
    ("outcome", "line"),
    [
        (jobs.Outcome(3), "3 passed, 0 failed"),
        (jobs.Outcome(3, 1), "3 passed, 1 failed"),
        (jobs.Outcome(3, 0, 2), "3 passed, 0 failed, 2 skipped"),
    ],
)
def test_closing_line_is_the_one_that_runners_print(outcome: jobs.Outcome, line: str) -> None:
    assert outcome.line() == line


def test_lines_are_left_uncounted_only_in_tests_of_other_packages_than_the_covered() -> None:
    for job in jobs.JOBS:
        names = [path.relative_to(ROOT).as_posix() for path in job.files()]
        for pattern in job.uncounted:
            assert fnmatch.filter(names, pattern) or pattern.endswith(".py"), pattern
        folders = {f"/{name.split('.')[1]}/" for name in job.covered}
        left_out = [
            name for name in names if any(fnmatch.fnmatch(name, each) for each in job.uncounted)
        ]
        assert bool(left_out) is bool(job.covered)
        assert not [name for name in left_out if any(folder in name for folder in folders)]


def test_reduced_environments_do_not_ask_for_what_they_must_not_have() -> None:
    for job in jobs.JOBS:
        absent = {name.lower() for name in job.environment.absent}
        asked = {
            environments.name_of(line).replace("-essentials", "")
            for line in environments.requirements(job.environment.extras)
        }
        assert absent & asked == set()
