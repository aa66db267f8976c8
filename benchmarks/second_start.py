"""`make bench-second_start`: what a person waits for when everything is set up already.

`make setup` with nothing to do, and `make run` without a screen until the demo has named Paris;
then the first token of that answer and of the one that follows it, as the chat itself tells them.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

from reporting import load_averages, row, write_result

ROOT = Path(__file__).resolve().parent.parent
NUM_RUNS = 5
SETUP = ("make", "-s", "setup")
START = ("make", "-s", "run")
QUESTIONS = "What is the capital of France?\nAnd of Italy?\n"
ANSWER = "Paris"
MAX_SETUP_S = 1.0
MAX_START_S = 10.0
MAX_FOLLOW_UP_S = 1.0
_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
_FIRST_TOKEN = re.compile(r"first after ([\d.]+) s")


def setup_s() -> float:
    """Seconds that set-up takes to see that there is nothing to do."""
    started_s = time.perf_counter()
    done = subprocess.run(SETUP, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0 or len(done.stdout.splitlines()) != 1:
        raise SystemExit(f"set-up had something to do, or failed: {done.stdout}{done.stderr}")
    return time.perf_counter() - started_s


def start_s() -> tuple[float, float, float]:
    """Seconds to the answer's word, and to the first tokens of both answers."""
    environment = {name: value for name, value in os.environ.items() if name not in _SCREENS}
    started_s = time.perf_counter()
    with subprocess.Popen(
        START,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as chat:
        assert chat.stdin is not None
        assert chat.stdout is not None
        chat.stdin.write(QUESTIONS.encode())
        chat.stdin.close()
        said = b""
        while ANSWER.encode() not in said and (piece := os.read(chat.stdout.fileno(), 4096)):
            said += piece
        seconds = time.perf_counter() - started_s
        text = (said + chat.stdout.read()).decode(errors="replace")
    first_tokens = first_tokens_s(text)
    if chat.returncode != 0 or ANSWER not in text or len(first_tokens) != 2:
        raise SystemExit(f"the chat did not answer twice: {text}")
    return seconds, first_tokens[0], first_tokens[1]


def first_tokens_s(text: str) -> list[float]:
    """What the lines under the answers say, in seconds."""
    return [float(number) for number in _FIRST_TOKEN.findall(text)]


def main() -> int:
    """Measure, print, write `benchmarks/results/second_start.json`."""
    setup_s()
    setups = [setup_s() for _ in range(NUM_RUNS)]
    start_s()
    starts = [start_s() for _ in range(NUM_RUNS)]
    rows = []
    for what, values, most in (
        ("make setup with nothing to do", setups, MAX_SETUP_S),
        ("second make run without a screen, until Paris is named", [x[0] for x in starts],
         MAX_START_S),
        ("first token of the first answer", [x[1] for x in starts], None),
        ("first token of the answer that follows", [x[2] for x in starts], MAX_FOLLOW_UP_S),
    ):  # fmt: skip
        median = statistics.median(values)
        print(f"{what}: {median:.2f} s ({min(values):.2f}-{max(values):.2f})")
        rows.append(
            row(
                what=f"{what}, seconds, median of {NUM_RUNS}",
                ours=round(median, 3),
                target="" if most is None else f"under {most:g}",
                is_reached=None if most is None else median < most,
            )
        )
    path = write_result("second_start", rows, load_averages=load_averages())
    print(f"the result is in {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
