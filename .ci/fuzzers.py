"""Fuzzers: what strangers' data goes through, with new examples until their time is over.

Time is counted in seconds of the processor, so that a busy machine does not shorten it, and those
with the least of it go first. What was found is written after each pass: a run may be stopped.
`python .ci/fuzzers.py SECONDS` runs them in this environment.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from console import ROOT, output_of, say

RESULT = ROOT / "benchmarks" / "results" / "fuzzers.json"
FOUND = ROOT / "build" / "tests"
"""Where the words of a test that failed are kept."""
DEFAULT_S = 60.0
FILES = {
    "channel frames": "tests/protocol/test_frames.py",
    "model folders": "tests/hostile/test_hostile_checkpoints.py",
    "GGUF headers": "tests/unit/inspect/test_gguf_header.py",
    "templates": "tests/unit/tokenizer/test_template_fuzz.py",
}
_OPTIONS = ("-q", "-m", "hypothesis", "-p", "no:randomly", "-p", "no:rerunfailures")
# A process that rests while others measure is not one that hangs.
_PATIENT = ("-o", "timeout=0", "-o", "faulthandler_timeout=0", "--hypothesis-show-statistics")
_EXAMPLES = re.compile(r"(\d+) passing, (\d+) failing, and \d+ invalid test cases")


@dataclass(frozen=True)
class Tally:
    """What one fuzzer came to."""

    processor_s: float = 0.0
    examples: int = 0
    passes: int = 0
    findings: int = 0

    def line(self) -> str:
        """In words, as the closing lines of jobs are."""
        return (
            f"{self.examples} examples in {self.passes} passes, {self.findings} failed, "
            f"{self.processor_s:.0f} s of the processor"
        )


def fuzz(
    python: Path, seconds: float, keep: Callable[[dict[str, Tally]], None]
) -> dict[str, Tally]:
    """Run each fuzzer until it had its seconds or found something; `keep` is told after a pass."""
    tallies = dict.fromkeys(FILES, Tally())
    while waiting := [name for name, tally in tallies.items() if _goes_on(tally, seconds)]:
        name = min(waiting, key=lambda one: tallies[one].processor_s)
        tallies[name] = _one_pass(python, name, tallies[name])
        keep(tallies)
        say(f"fuzzer of {name}: {tallies[name].line()}")
    return tallies


def _goes_on(tally: Tally, seconds: float) -> bool:
    """Whether a fuzzer has not had its time and found nothing."""
    return not tally.findings and (not tally.passes or tally.processor_s < seconds)


def _one_pass(python: Path, name: str, tally: Tally) -> Tally:
    """Run the property tests of one file once, with examples that nobody chose."""
    before = os.times()
    command: list[str | Path] = [python, "-m", "pytest", *_OPTIONS, *_PATIENT, FILES[name]]
    status, text = output_of(command, env={"LARDER_TEST_PROFILE": "deep"})
    after = os.times()
    used_s = sum(after[2:4]) - sum(before[2:4])
    if status:
        FOUND.mkdir(parents=True, exist_ok=True)
        (FOUND / f"fuzzer-{name.replace(' ', '-')}.txt").write_text(text, encoding="utf-8")
    return replace(
        tally,
        processor_s=tally.processor_s + used_s,
        examples=tally.examples + sum(map(int, sum(_EXAMPLES.findall(text), ()))),
        passes=tally.passes + 1,
        findings=tally.findings + (status != 0),
    )


def write(tallies: dict[str, Tally]) -> None:
    """Keep the figures with the date and the state of the source."""
    record: dict[str, object] = {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "commit": output_of(["git", "rev-parse", "HEAD"])[1].strip(),
        "cores": os.cpu_count(),
    }
    record |= {
        name: asdict(tally) | {"processor_s": round(tally.processor_s)}
        for name, tally in tallies.items()
    }
    RESULT.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Run all fuzzers with this interpreter; the status says whether one found something."""
    tallies = fuzz(Path(sys.executable), float(arguments[0]) if arguments else DEFAULT_S, write)
    return int(any(tally.findings for tally in tallies.values()))


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main(sys.argv[1:]))
