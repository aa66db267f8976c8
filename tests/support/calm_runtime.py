"""The real runtime, which takes memory again after half a second of calm; run as a module."""

import sys

from runtime.service.handles import claim_streams


def main() -> None:
    """Serve the window like ``runtime.service``."""
    streams = claim_streams()
    from runtime.plan import pressure
    from runtime.service.process import run_process

    pressure.CALM_S = 0.5
    sys.exit(run_process(streams, sys.argv[1:]))


if __name__ == "__main__":
    main()
