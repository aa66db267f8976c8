"""The real runtime, which takes memory again after half a second of calm; run as a module."""

import functools
import sys

from runtime.service.handles import claim_streams


def main() -> None:
    """Serve the window like ``runtime.service``."""
    streams = claim_streams()
    from runtime.plan.pressure import PressureRule
    from runtime.service import memory_watch
    from runtime.service.process import run_process

    quick = functools.partial(PressureRule, calm_s=0.5)
    vars(memory_watch)["PressureRule"] = quick
    sys.exit(run_process(streams, sys.argv[1:]))


if __name__ == "__main__":
    main()
