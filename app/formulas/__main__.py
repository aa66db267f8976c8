"""The process that sets formulas: a request in each line of its input, a reply in each it writes.

A request is ``{"latex": …, "is_block": …}``; a reply is what ``typeset`` returns, or
``{"error": …}``. The first line, ``{}``, says that it is ready. It ends with its input.
"""

import json
import sys

from app.formulas.typeset import typeset

_MAX_MEMORY_BYTES = 2 << 30
_WARM_UP = "x"


def limit_memory() -> None:
    """Keep a formula from taking the memory of the PC, where the system can."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY_BYTES, _MAX_MEMORY_BYTES))


def reply_to(line: str) -> dict[str, str | float]:
    """Return the reply to one request; a formula that cannot be set is no fault of the process."""
    request = json.loads(line)
    try:
        return typeset(request["latex"], is_block=request["is_block"])
    except Exception as error:  # noqa: BLE001 - the library raises what it likes for bad input
        return {"error": f"{type(error).__name__}: {error}"[:500]}


def say(reply: dict[str, str | float]) -> None:
    """Write one reply."""
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Serve until the input ends."""
    limit_memory()
    typeset(_WARM_UP, is_block=False)
    say({})
    for line in sys.stdin:
        say(reply_to(line))


if __name__ == "__main__":
    main()
