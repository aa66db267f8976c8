"""`make test`: the jobs, which tests each runs, and in which environment.

Every test file belongs to a job by the table below; one that belongs to none is an error. Names
after the command choose jobs: `python .ci/verb.py test pure gui`. A run of all of them leaves its
counts and seconds in build/tests/gate.json.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from xml.etree import ElementTree as ET

import environments
import linux_packages
import system_packages
from console import ROOT, CommandError, merged, output_of, say
from environments import FULL, GUI, PURE, RUNTIME, Environment

RESULTS = ROOT / "build" / "tests"
RECORD = RESULTS / "gate.json"
MAX_GATE_S = 1200
STARTED = "LARDER_GATE_STARTED"
"""Set by .ci/run: when the whole gate began, in seconds of the calendar."""
OFFSCREEN = {"QT_QPA_PLATFORM": "offscreen"}
_FULL = ("--cov-fail-under=100",)
UNCOUNTED = "LARDER_TEST_UNCOUNTED"
"""Tells tests/conftest.py in which of their files no line is counted."""


@dataclass(frozen=True)
class Job:
    """Tests that run together in one environment."""

    name: str
    environment: Environment
    patterns: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    covered: tuple[str, ...] = ()
    # Tests that are about something else than what is covered: there counting lines, which takes
    # up to as long again, is left out.
    uncounted: tuple[str, ...] = ()
    # Processes, windows and a display server take part: a failed test gets a second try, which is
    # told (docs/decisions/0081).
    num_second_tries: int = 0
    # Tests at the same time; one where they install the package.
    num_workers: int = 1
    # Makes the packages for Linux with pip, which needs what this machine's files tell pip.
    makes_packages: bool = False
    max_s: int = 600

    def files(self, root: Path = ROOT) -> list[Path]:
        """The test files of this job that exist."""
        return [
            path for path in files_of_tests(root) if self.owns(path.relative_to(root).as_posix())
        ]

    def owns(self, name: str) -> bool:
        """Whether a test file, named from the root, belongs here."""
        return any(fnmatch(name, pattern) for pattern in self.patterns)


def _units(*packages: str) -> tuple[str, ...]:
    """Patterns for the unit tests of packages."""
    return tuple(
        pattern
        for package in packages
        for pattern in (f"tests/unit/{package}/*", f"tests/unit/test_{package}.py")
    )


_PURE_UNITS = _units(
    "cli", "service", "engine", "tokenizer", "store", "telemetry", "simulate", "plan", "policy",
    "hardware", "inspect", "hub", "errors", "spec", "protocol", "testing",
)  # fmt: skip
_TORCH_UNITS = _units(
    "generate", "prepare", "residency", "models", "kernels", "device", "memory", "native", "demo",
    "benchmarks", "resources",
)  # fmt: skip
_WINDOW_UNITS = _units("app", "link", "state", "views", "graphs", "text", "theme", "widgets")
# What a person does first; everything else of this kind is tried under X11 alone.
_ON_BOTH_SCREENS = ("tests/e2e/test_first_light.py",)
# Each process of tests opens a virtual screen of its own (tests/support/own_screen.py).
_X11 = {
    "QT_QPA_PLATFORM": "xcb",
    "LIBGL_ALWAYS_SOFTWARE": "1",
    "LARDER_TEST_SCREEN": "1600x1000x24",
}

JOBS: tuple[Job, ...] = (
    Job(
        "pure",
        PURE,
        (*_PURE_UNITS, "tests/protocol/*", "tests/hostile/*", "tests/golden/*"),
        covered=("runtime.plan", "runtime.policy", "runtime.store.coalesce", "runtime.protocol",
                 "runtime.inspect"),
        uncounted=_units("cli", "tokenizer", "hub", "hardware"),
        num_workers=2,
    ),
    # Real traces are long: they are replayed where no line is counted.
    Job(
        "runtime-cpu",
        RUNTIME,
        (*_TORCH_UNITS, "tests/contract/*", "tests/traces/*"),
        num_workers=2,
        max_s=900,
    ),
    Job(
        "gui",
        GUI,
        ("tests/gui/*", *_WINDOW_UNITS),
        env=OFFSCREEN,
        covered=("app.state", "app.graphs.series"),
        uncounted=("tests/unit/views/*", "tests/gui/formulas/*", "tests/gui/text/*",
                   "tests/gui/link/*", "tests/gui/start/*",
                   "tests/gui/views/test_messages.py", "tests/gui/views/test_monitor_view.py",
                   "tests/gui/views/test_strip_and_cards.py", "tests/gui/views/test_composer.py"),
        num_second_tries=1,
        num_workers=2,
    ),
    # Window and runtime wait for each other half of the time: two such pairs fill two cores.
    Job("e2e", FULL, _ON_BOTH_SCREENS, env=OFFSCREEN, num_second_tries=1, num_workers=2),
    Job(
        "e2e-x11",
        FULL,
        ("tests/e2e/*",),
        env=_X11,
        num_second_tries=1,
        num_workers=2,
        max_s=1200,
    ),
    Job("package", FULL, ("tests/gate/*",), env=OFFSCREEN, makes_packages=True, max_s=900),
)  # fmt: skip
# Not part of `make test`: they need a device, and tests/gpu/run.sh runs them.
ELSEWHERE = ("tests/gpu/*",)


def files_of_tests(root: Path = ROOT) -> list[Path]:
    """Every file that pytest would collect tests from."""
    return sorted(
        path for path in (root / "tests").rglob("test_*.py") if "__pycache__" not in path.parts
    )


def unassigned(root: Path = ROOT) -> list[str]:
    """Test files that no job runs."""
    names = [path.relative_to(root).as_posix() for path in files_of_tests(root)]
    return [
        f"{name}: belongs to no job; give its folder one in .ci/jobs.py"
        for name in names
        if not any(job.owns(name) for job in JOBS)
        and not any(fnmatch(name, pattern) for pattern in ELSEWHERE)
    ]


@dataclass(frozen=True)
class Outcome:
    """What one job came to; a job that broke outside its tests counts as one failure."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    second_tries: tuple[str, ...] = ()
    """Tests that failed and were tried again, whatever came of it."""
    seconds: float = 0.0

    def plus(self, other: Outcome) -> Outcome:
        """Both together."""
        return Outcome(
            self.passed + other.passed,
            self.failed + other.failed,
            self.skipped + other.skipped,
            (*self.second_tries, *other.second_tries),
            self.seconds + other.seconds,
        )

    def line(self) -> str:
        """The closing line, in the form that test runners print."""
        return f"{self.passed} passed, {self.failed} failed" + (
            f", {self.skipped} skipped" if self.skipped else ""
        )


def read_report(path: Path) -> Outcome:
    """Count the tests in a JUnit file; of a test that was tried twice, the second try."""
    last: dict[tuple[str, str], set[str]] = {}
    again: dict[str, None] = {}
    for case in ET.parse(path).iter("testcase"):
        name = (case.get("classname", ""), case.get("name", ""))
        if name in last:
            again["::".join(name)] = None
        last[name] = {child.tag for child in case}
    failed = sum(1 for kinds in last.values() if kinds & {"failure", "error"})
    skipped = sum(1 for kinds in last.values() if "skipped" in kinds)
    return Outcome(len(last) - failed - skipped, failed, skipped, tuple(again))


def recorded(name: str) -> list[str]:
    """What the tests of a job wrote down in its last run, as a figure and the test it is of."""
    report = RESULTS / f"{name}.xml"
    cases = ET.parse(report).iter("testcase") if report.exists() else []
    return [
        f"{figure.get('name', '')} {figure.get('value', '')} ({case.get('name', '')})"
        for case in cases
        for figure in case.iter("property")
    ]


def assert_absent(environment: Environment) -> None:
    """Prove that what an environment must not hold cannot be imported there."""
    for name in environment.absent:
        status, text = output_of([environment.executable, "-c", f"import {name}"])
        if status == 0 or "ModuleNotFoundError" not in text:
            raise CommandError(f"{environment.folder} must not have {name}, and it is there.")


def run_job(job: Job, *, profile: str = "ci", options: tuple[str, ...] = ()) -> Outcome:
    """Run one job's tests; the output of pytest is shown as it comes."""
    files = job.files()
    if not files:
        say(f"job {job.name}: has no tests yet")
        return Outcome()
    environments.prepare(job.environment)
    assert_absent(job.environment)
    RESULTS.mkdir(parents=True, exist_ok=True)
    report = RESULTS / f"{job.name}.xml"
    report.unlink(missing_ok=True)
    command = [str(job.environment.executable), "-m", "pytest", "-q"]
    command += ["-p", "no:randomly", f"--junitxml={report}", f"--rootdir={ROOT}"]
    if job.num_second_tries:
        command += [f"--reruns={job.num_second_tries}", "-rfER"]
    else:
        command += ["-p", "no:rerunfailures"]
    if job.num_workers > 1:
        command += [f"--numprocesses={job.num_workers}", "--dist=worksteal"]
    command += [*_coverage(job), *options, *(str(path.relative_to(ROOT)) for path in files)]
    env = {**job.env, "LARDER_TEST_PROFILE": profile, "LARDER_TEST_JOB": job.name}
    env["COVERAGE_FILE"] = str(RESULTS / f"{job.name}.coverage")
    env[UNCOUNTED] = os.pathsep.join(job.uncounted)
    env |= linux_packages.pip_settings() if job.makes_packages else {}
    say(f"job {job.name}: {len(files)} files in {job.environment.folder}")
    started_s = time.monotonic()
    try:
        status = subprocess.call(command, env=merged(env), cwd=ROOT, timeout=job.max_s)
    except subprocess.TimeoutExpired:
        say(f"job {job.name}: was stopped after {job.max_s} s")
        status = 124
    outcome = read_report(report) if report.exists() else Outcome()
    if not outcome.failed and (status != 0 or not outcome.passed):
        say(f"job {job.name}: pytest ended with status {status} and no failed test")
        outcome = outcome.plus(Outcome(failed=1))
    outcome = replace(outcome, seconds=time.monotonic() - started_s)
    say(f"job {job.name}: {outcome.line()} in {outcome.seconds:.1f} s")
    return outcome


def _coverage(job: Job) -> list[str]:
    """Options that demand every branch of the pure parts that exist."""
    there = [name for name in job.covered if _exists(name)]
    if not there:
        return []
    options = [f"--cov={name}" for name in there]
    return [*options, "--cov-branch", "--cov-report=term-missing:skip-covered", *_FULL]


def _exists(name: str) -> bool:
    """Whether a module or package with something in it is in the tree."""
    path = ROOT / Path(*name.split("."))
    return path.with_suffix(".py").exists() or any(path.glob("*.py"))


def closing(outcomes: Mapping[str, Outcome], gate_s: float | None) -> tuple[Outcome, list[str]]:
    """What all jobs came to, and the lines to end with: the last one counts all tests."""
    total = Outcome()
    lines = [""]
    for name, outcome in outcomes.items():
        lines.append(f"{name}: {outcome.line()} in {outcome.seconds:.0f} s")
        total = total.plus(outcome)
    if gate_s is not None:
        lines.append(f"the gate took {gate_s:.0f} s; it has {MAX_GATE_S} s on two cores")
    lines += [f"needed a second try: {name}" for name in total.second_tries]
    if total.passed + total.failed == 0:
        total = total.plus(Outcome(failed=1))
    return total, [*lines, total.line()]


def write_record(outcomes: Mapping[str, Outcome], gate_s: float | None) -> None:
    """Keep the counts and seconds of a run of all jobs, for `make bench-gate`."""
    jobs = {
        name: {"outcome": outcome.line(), "seconds": round(outcome.seconds, 1)}
        for name, outcome in outcomes.items()
    }
    status, commit = output_of(["git", "rev-parse", "HEAD"])
    record = {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "commit": commit.strip() if status == 0 else "",
        "gate_s": None if gate_s is None else round(gate_s, 1),
        "jobs": jobs,
        "second_tries": [name for outcome in outcomes.values() for name in outcome.second_tries],
    }
    RECORD.parent.mkdir(parents=True, exist_ok=True)
    RECORD.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def main(names: list[str]) -> int:
    """Run the chosen jobs, or all; the last line printed counts all tests."""
    unknown = set(names) - {job.name for job in JOBS}
    if unknown:
        raise CommandError(f"There is no job {', '.join(sorted(unknown))}.")
    lost = unassigned()
    if lost:
        raise CommandError("; ".join(lost))
    system_packages.ensure_test_programs()
    chosen = [job for job in JOBS if not names or job.name in names]
    if any(job.makes_packages for job in chosen):
        linux_packages.ensure()
    outcomes = {job.name: run_job(job) for job in chosen}
    started = os.environ.get(STARTED)
    gate_s = time.time() - float(started) if started and not names else None
    if not names:
        write_record(outcomes, gate_s)
    total, lines = closing(outcomes, gate_s)
    print("\n".join(lines), flush=True)
    return 1 if total.failed else 0


if __name__ == "__main__":
    os.chdir(ROOT)
    try:
        sys.exit(main(sys.argv[1:]))
    except CommandError as error:
        print(f"larder: {error}", file=sys.stderr, flush=True)
        sys.exit(1)
