"""The table of jobs leaves no test out, and counts what happened."""

from __future__ import annotations

from pathlib import Path

import pytest

import environments
import jobs


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


def test_second_try_of_a_test_is_the_one_that_counts_and_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "a.xml"
    report.write_text(
        "<testsuites><testsuite><testcase classname='m' name='a'/><testcase classname='m' "
        "name='a'/><testcase classname='m' name='b'/><testcase classname='m' name='b'><failure/>"
        "</testcase></testsuite></testsuites>",
        encoding="utf-8",
    )
    assert jobs.read_report(report) == jobs.Outcome(passed=1, failed=1)
    told = capsys.readouterr()
    assert "needed a second try: m::a" in told.out + told.err


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


def test_reduced_environments_do_not_ask_for_what_they_must_not_have() -> None:
    for job in jobs.JOBS:
        absent = {name.lower() for name in job.environment.absent}
        asked = {
            environments.name_of(line).replace("-essentials", "")
            for line in environments.requirements(job.environment.extras)
        }
        assert absent & asked == set()
