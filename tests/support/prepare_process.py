"""A process that prepares a copy and kills itself at a chosen point, for tests of resuming.

Run as ``python -m tests.support.prepare_process SOURCE TARGET FORMAT POINT NUMBER``: it ends by
SIGKILL at the NUMBER-th POINT, which is ``write``, ``sync`` or ``rename``, or finishes. ``limit``
as POINT lets no file grow beyond NUMBER bytes instead.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from runtime.errors import LarderError
from runtime.inspect.folder import inspect_folder
from runtime.prepare import progress
from runtime.prepare.prepare import prepare_model
from runtime.protocol.values import WeightFormat
from tests.support.mortal import mortal

REFUSED_STATUS = 3


def main(arguments: list[str]) -> int:
    """Prepare and return 0, or die on the way."""
    source, target, weight_format, point, count = arguments
    number = int(count)
    progress.MIN_INTERVAL_S = 0
    report: Callable[[int, int], None] | None = None
    if point == "limit":
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (number, number))
    elif point == "write":
        report = mortal(lambda done, total: None, number)
    elif point == "sync":
        os.fsync = mortal(os.fsync, number)
    elif point == "rename":
        Path.replace = mortal(Path.replace, number)  # type: ignore[method-assign]
    try:
        prepare_model(inspect_folder(source), WeightFormat(weight_format), target, report)
    except LarderError as error:
        sys.stdout.write(error.code.value)
        return REFUSED_STATUS
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
