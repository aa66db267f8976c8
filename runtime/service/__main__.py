"""``python -m runtime.service``: takes the channel away from everybody, then imports the rest."""

import sys

from runtime.service.handles import claim_streams


def main() -> int:
    """Run the background process on this process's standard input and output."""
    streams = claim_streams()
    from runtime.service.process import run_process

    return run_process(streams, sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
