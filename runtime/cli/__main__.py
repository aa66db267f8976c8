"""``larderctl`` and ``python -m runtime.cli``: the entry point.

All but this is imported inside ``main``, so that Ctrl+C ends the program quietly while it starts.
"""

import signal
import sys
from collections.abc import Sequence

EXIT_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit status."""
    try:
        from runtime.cli.program import run_program

        return run_program(arguments)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    finally:
        if arguments is None:
            # The status is certain; a further Ctrl+C could only disturb the interpreter's end.
            signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(main())
