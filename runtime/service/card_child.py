"""``python -m runtime.service.card_child LIMIT_S [KNOWN…]``: what torch tells of cards, and ends.

Prints one line of JSON, ``CardFindings``. The process that started it may be gone or give up any
time; this one ends by itself after ``LIMIT_S`` seconds, whatever a driver does.
"""

import faulthandler
import sys
from collections.abc import Sequence

import msgspec

from runtime.errors import LarderError
from runtime.service.engine_loader import look_at_cards
from runtime.service.parentage import die_with_parent


def main(arguments: Sequence[str]) -> int:
    """Measure the links of all cards but the known ones; return the exit status."""
    limit_s, *known = arguments
    # The stack that it prints tells where a driver hangs.
    faulthandler.dump_traceback_later(float(limit_s), exit=True)
    die_with_parent()
    try:
        findings = look_at_cards(known)
    except LarderError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"\n{msgspec.json.encode(findings).decode()}\n")
    # Told before drivers are given back, which may hang or crash.
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
