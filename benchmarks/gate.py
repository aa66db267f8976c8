"""`make bench-gate`: how long the last run of the whole gate took here (`.ci/run` leaves a record).

The result is worth committing where the machine did nothing else meanwhile.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from reporting import row, write_result

RECORD = Path(__file__).resolve().parent.parent / "build" / "tests" / "gate.json"
MAX_GATE_S = 1200


def rows_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The whole first, then every job."""
    jobs = record["jobs"]
    tests_s = sum(job["seconds"] for job in jobs.values())
    return [
        row(
            what="the whole gate, seconds",
            ours=record["gate_s"],
            target=f"under {MAX_GATE_S}",
            is_reached=record["gate_s"] < MAX_GATE_S,
        ),
        row(what="checks and set-up, seconds", ours=round(record["gate_s"] - tests_s, 1)),
        *(
            row(what=f"job {name}, seconds ({job['outcome']})", ours=job["seconds"])
            for name, job in jobs.items()
        ),
    ]


def main() -> int:
    """Read the record, print, write `benchmarks/results/gate.json`."""
    if not RECORD.exists():
        print(f"{RECORD} is missing: run .ci/run first, which leaves it.", file=sys.stderr)
        return 1
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    if record["gate_s"] is None:
        print("The last run was `make test` alone: run .ci/run, the whole gate.", file=sys.stderr)
        return 1
    rows = rows_of(record)
    for each in rows:
        print(f"{each['what']}: {each['ours']:.0f}")
    of_run = {name: record[name] for name in ("commit", "second_tries")}
    print(f"the result is in {write_result('gate', rows, run_date=record['date'], **of_run)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
