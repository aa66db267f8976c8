"""`make deep`: what takes too long for every change; its dated result is committed.

Longer property tests, the native tests under sanitizers, three jobs on the other Pythons of this
machine, `make run` on a bare Debian, a window that goes with a large model loaded, pages as they
look, budgets changed a thousand times, processes killed at random, faults of drive and memory,
fuzzers by the clock, programs for cards, the package, the extension for other systems, and what
people download.
Names after the command choose steps; of the others the result keeps what was found before.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import bare_system
import environments
import fuzzers
import interpreters
import jobs
import linux_packages
from console import ROOT, CommandError, output_of, run, say

RESULT = ROOT / "benchmarks" / "results" / "deep.json"
_LONGER = ("-o", "timeout=1500", "-o", "faulthandler_timeout=1400")
_SANITIZERS = ("address,undefined", "thread")
_ON_OTHER_PYTHONS = ("pure", "runtime-cpu", "gui")
_NOTHING_TO_RUN = 77
"""What a script ends with where this machine has not what it needs."""
_NOT_RUN = "not run"
_TRITON = "triton==3.9.0"
"""Not in the constraints: no environment of the gate holds it, since it takes a gigabyte."""
_LEAVING = "tests/e2e/test_window_gone.py"
_KILLED = {
    "e2e-x11": ("tests/e2e/test_killed_at_random.py", "tests/e2e/test_killed_at_work.py"),
    "pure": ("tests/unit/hub/test_killed.py", "tests/unit/hardware/test_killed.py"),
}
_FAULTS = {
    "e2e-x11": (
        "tests/e2e/test_cancel_load.py",
        "tests/e2e/test_memory_pressure.py",
        "tests/e2e/test_runtime_hung.py",
        "tests/e2e/test_drive_faults.py",
    ),
    "runtime-cpu": ("tests/contract/test_faulty_drive.py",),
}
FUZZ_S = "LARDER_FUZZ_S"
"""For how long each of the fuzzers runs, in seconds of the processor."""
_DEMO = ROOT / "build" / "demo" / "larder-demo"
_NUM_CHANGES = 1000
_MAX_RESIDENT = 1.03
"""Of the budget in force or on its way."""
_CMAKE = Path(sys.executable).with_name("cmake")
_NATIVE_TESTS = ROOT / "runtime" / "native" / "tests"


def fuzzing() -> dict[str, object]:
    """Every job with property tests, with many more examples, seeds not fixed."""
    outcomes = {}
    for name in ("pure", "runtime-cpu"):
        longer = replace(_job(name), name=f"{name}-deep", covered=(), max_s=7200)
        outcomes[name] = _deeply(longer).line()
    return _verdict(outcomes)


def sanitizers() -> dict[str, object]:
    """The native tests, built once for each sanitizer and run."""
    names = [path.stem for path in sorted(_NATIVE_TESTS.glob("*.cpp"))]
    if not names:
        return {"verdict": "nothing to run", "why": "runtime/native/tests has no tests"}
    outcomes: dict[str, str] = {}
    for sanitizer in _SANITIZERS:
        folder = ROOT / "build" / f"sanitized-{sanitizer.replace(',', '-')}"
        switches = ("-DLARDER_NATIVE_TESTS=ON", f"-DLARDER_SANITIZE={sanitizer}")
        configure: list[str | Path] = [_CMAKE, "-S", ROOT, "-B", folder, *switches]
        run([*configure, f"-DPython_EXECUTABLE={sys.executable}"], "cmake cannot be configured")
        run([_CMAKE, "--build", folder, "-j2", "--target", *names], f"{sanitizer} does not build")
        failed = 0
        for name in names:
            program = folder / "runtime" / "native" / name
            status, text = output_of([program])
            print(text, flush=True)
            failed += status != 0
        outcomes[sanitizer] = f"{len(names) - failed} passed, {failed} failed"
    return _verdict(outcomes)


def other_pythons() -> dict[str, object]:
    """Three of the jobs on every other supported Python that this machine has.

    A job whose packages cannot be had for a Python is told as not run, and why.
    """
    outcomes = {}
    for version, program in interpreters.others().items():
        for name in _ON_OTHER_PYTHONS:
            outcomes[f"{version} {name}"] = _line_on(_job(name), version, program)
    if not outcomes:
        return {"verdict": "nothing to run", "why": "no other supported Python was found"}
    return _verdict(outcomes)


def _line_on(job: jobs.Job, version: str, program: str) -> str:
    """The closing line of a job on another Python."""
    folder = f"{job.environment.folder}-{version}"
    there = replace(job.environment, folder=folder, python=program)
    try:
        environments.prepare(there)
    except CommandError as error:
        return f"{_NOT_RUN}: {error}"
    name = f"{job.name}-{version}"
    return jobs.run_job(replace(job, name=name, environment=there, covered=())).line()


def leaving() -> dict[str, object]:
    """However the window goes, its worker goes with it, also with over a gigabyte loaded."""
    outcomes = {}
    for name in ("e2e", "e2e-x11"):
        large = replace(_job(name), name=f"{name}-leaving", patterns=(_LEAVING,))
        outcomes[name] = _deeply(large).line()
    return _verdict(outcomes)


def appearance() -> dict[str, object]:
    """Every page in all its sizes, colours and languages, at 100 and 200 %."""
    environments.prepare(environments.FULL)
    script = str(ROOT / "benchmarks" / "appearance.py")
    status, text = output_of([str(environments.FULL.executable), script])
    lines = text.strip().splitlines()
    verdict = "failed" if status else "passed"
    return {"verdict": verdict, "result": lines[-1] if lines else "", "complaints": lines[:-1]}


def screen_reader() -> dict[str, object]:
    """What assistive programs are told of the running window by the desktop's own way."""
    environments.prepare(environments.FULL)
    status, text = output_of(
        [str(environments.FULL.executable), "-m", "tests.support.accessible_tree"]
    )
    lines = text.strip().splitlines()
    if status == _NOTHING_TO_RUN:
        return {"verdict": "nothing to run", "why": lines[-1] if lines else ""}
    verdict = "failed" if status else "passed"
    return {"verdict": verdict, "result": lines[-1] if lines else "", "complaints": lines[:-1]}


def live_budgets() -> dict[str, object]:
    """A thousand changes of the RAM budget while the demo answers: memory follows, answers stay."""
    environments.prepare(environments.FULL)
    if not _DEMO.exists():
        return {"verdict": "nothing to run", "why": "there is no demo model; `make demo` builds it"}
    module = "tests.support.live_changes"
    command = [str(environments.FULL.executable), "-m", module, str(_DEMO), str(_NUM_CHANGES)]
    status, text = output_of(command)
    start = text.find("{")
    if status != 0 or start < 0:
        return {"verdict": "failed", "why": text.strip()[-300:]}
    found: dict[str, Any] = json.JSONDecoder().raw_decode(text[start:])[0]
    found["distinct_answers"] = len(found["distinct_answers"])
    worst = max(found["worst_ratio"].values())
    is_good = found["num_changed"] >= _NUM_CHANGES and not found["num_refused"]
    is_good = is_good and found["distinct_answers"] == 1 and worst <= _MAX_RESIDENT
    return {"verdict": "passed" if is_good else "failed", **found}


def killed() -> dict[str, object]:
    """Fifty kills of window and workers at each kind of work.

    Downloads and the writing of facts are killed by themselves too.
    """
    return _verdict(_parts(_KILLED))


def faults() -> dict[str, object]:
    """A runtime that hangs, cancelled loads, memory that others take, drives with faults."""
    return _verdict(_parts(_FAULTS))


def _parts(files: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """The closing lines of some files of jobs, run with time for them, and what they wrote down."""
    found = {}
    for name, some in files.items():
        longer = replace(_job(name), name=f"{name}-longer", patterns=some, covered=(), max_s=7200)
        outcome = _deeply(longer)
        found[name] = ", ".join([outcome.line(), *jobs.recorded(longer.name)])
    return found


def fuzz() -> dict[str, object]:
    """What strangers' data goes through, each with new examples until its time is over."""
    environments.prepare(environments.PURE)
    seconds = float(os.environ.get(FUZZ_S, fuzzers.DEFAULT_S))
    tallies = fuzzers.fuzz(environments.PURE.executable, seconds, lambda _tallies: None)
    return _verdict({name: tally.line() for name, tally in tallies.items()})


def triton() -> dict[str, object]:
    """The programs for cards, in Triton's interpreter and compiled; Triton is installed beside."""
    environments.prepare(environments.RUNTIME)
    folder = ROOT / "build" / "triton"
    if not (folder / "triton").is_dir():
        pip: list[str | Path] = [environments.RUNTIME.executable, "-m", "pip", "install"]
        options: list[str | Path] = ["--quiet", "--no-deps", "--target", folder, _TRITON]
        try:
            run([*pip, *options], "Triton cannot be installed")
        except CommandError as error:
            return {"verdict": "nothing to run", "why": str(error)}
    program = [environments.RUNTIME.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    environment = os.environ | {"PYTHONPATH": str(folder), "TRITON_INTERPRET": "1"}
    found = subprocess.run(
        [*map(str, program), "tests/contract/test_triton.py"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    print(found.stdout, flush=True)
    lines = found.stdout.strip().splitlines()
    verdict = "failed" if found.returncode else "passed"
    return {"verdict": verdict, "triton": _TRITON, "result": lines[-1] if lines else ""}


def package() -> dict[str, object]:
    """The wheel, built, installed apart and started; the packages for Linux, made and used."""
    linux_packages.ensure()
    return _verdict({"package": jobs.run_job(_job("package")).line()})


def installers() -> dict[str, object]:
    """The packages for Linux: made, then installed, used and removed in a bare system."""
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        return {"verdict": "nothing to run", "why": "needs Debian, root and debootstrap"}
    making: list[str | Path] = [sys.executable, ROOT / ".ci" / "verb.py", "installer", "linux"]
    run(making, "The packages could not be made")
    status, text = output_of([sys.executable, "-m", "installers.try_linux", ROOT / "dist"])
    start = text.find("{")
    if start < 0:
        raise CommandError(f"The packages could not be tried ({status}): {text.strip()[-300:]}")
    found: dict[str, object] = json.loads(text[start:])
    return found


def cross_compiled() -> dict[str, object]:
    """The extension, compiled and linked for Windows and for Apple silicon."""
    environments.prepare(environments.FULL)
    status, text = output_of([str(environments.FULL.executable), "-m", "installers.cross"])
    start = text.find("{")
    if status != 0 or start < 0:
        return {"verdict": "failed", "why": text.strip()[-300:]}
    found: dict[str, object] = json.loads(text[start:])
    return {"verdict": "passed", **found}


def _job(name: str) -> jobs.Job:
    """The job of the gate with that name."""
    return next(job for job in jobs.JOBS if job.name == name)


def _deeply(job: jobs.Job) -> jobs.Outcome:
    """Run a job with many more examples, and with time for them."""
    return jobs.run_job(job, profile="deep", options=_LONGER)


def _verdict(outcomes: dict[str, str]) -> dict[str, object]:
    """Passed where no closing line counts a failure, of those that ran."""
    ran = [line for line in outcomes.values() if not line.startswith(_NOT_RUN)]
    good = all(" 0 failed" in f" {line}" for line in ran)
    verdict = "passed" if ran and good else "failed" if ran else "nothing to run"
    return {"verdict": verdict, **outcomes}


STEPS: dict[str, Callable[[], dict[str, object]]] = {
    "fuzzing": fuzzing,
    "sanitizers": sanitizers,
    "other_pythons": other_pythons,
    "bare_system": bare_system.try_out,
    "leaving": leaving,
    "appearance": appearance,
    "screen_reader": screen_reader,
    "live_budgets": live_budgets,
    "killed": killed,
    "faults": faults,
    "fuzzers": fuzz,
    "triton": triton,
    "package": package,
    "cross_compiled": cross_compiled,
    "installers": installers,
}


def machine() -> dict[str, object]:
    """What the result was made on."""
    names = [line for line in _cpuinfo() if line.startswith("model name")]
    return {
        "system": platform.platform(),
        "python": platform.python_version(),
        "processor": names[0].partition(":")[2].strip() if names else platform.processor(),
        "cores": os.cpu_count(),
    }


def _cpuinfo() -> list[str]:
    """The kernel's description of the processors, where it gives one."""
    path = Path("/proc/cpuinfo")
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def main(names: list[str]) -> int:
    """Run the chosen steps, or all, and write the dated result."""
    unknown = set(names) - set(STEPS)
    if unknown:
        raise CommandError(f"There is no step {', '.join(unknown)}; there are {', '.join(STEPS)}.")
    git = shutil.which("git")
    commit = output_of([git, "rev-parse", "HEAD"])[1].strip() if git else ""
    made = {"date": dt.datetime.now(dt.UTC).date().isoformat(), "commit": commit}
    result: dict[str, object] = {**made, "machine": machine()}
    if names and RESULT.exists():
        result = json.loads(RESULT.read_text(encoding="utf-8"))
    verdicts = []
    for name, step in STEPS.items():
        if names and name not in names:
            continue
        started_s = time.monotonic()
        found = step()
        own = made if names else {}
        result[name] = {**found, "seconds": round(time.monotonic() - started_s), **own}
        verdicts.append(str(found["verdict"]))
        say(f"deep {name}: {found['verdict']}")
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    say(f"the result is in {RESULT.relative_to(ROOT)}")
    return 1 if "failed" in verdicts else 0


if __name__ == "__main__":
    os.chdir(ROOT)
    try:
        sys.exit(main(sys.argv[1:]))
    except CommandError as error:
        print(f"larder: {error}", file=sys.stderr, flush=True)
        sys.exit(1)
