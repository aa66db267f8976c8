"""How long tokens of a replay would take, for the terminal and as JSON."""

import dataclasses
from collections.abc import Sequence

from runtime.simulate.timing import Timing


def timing_row(timing: Timing) -> dict[str, object]:
    """Return what is printed as JSON."""
    return {
        "tokens_per_s": timing.tokens_per_s,
        "seconds": timing.seconds,
        "wait_s": timing.wait_s,
        "compute_s": timing.compute_s,
        "device_s": timing.device_s,
        "link_s": timing.link_s,
        "drive_s": timing.drive_s,
        "drive_bytes": timing.drive_bytes,
        "hints": dataclasses.asdict(timing.hints),
    }


def print_timings(timings: Sequence[Timing]) -> None:
    """Print a line for each policy, none if nothing was timed."""
    if not timings:
        return
    print(f"  {'policy':20}{'tokens/s':>9}{'waiting':>9}{'drive busy':>12}  hints")
    for timing in timings:
        seconds = timing.seconds or 1.0
        hints = timing.hints
        print(
            f"  {timing.policy:20}{timing.tokens_per_s:>9.2f}"
            f"{timing.wait_s / seconds:>9.0%}{timing.drive_s / seconds:>12.0%}"
            f"  {hints.useful} useful, {hints.late} late, {hints.wasted} wasted,"
            f" {hints.overtaken} overtaken"
        )
