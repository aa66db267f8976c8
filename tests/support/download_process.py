"""A process that downloads a model and kills itself at a chosen point, for tests of resuming.

Run as ``python -m tests.support.download_process MODEL REVISION ADDRESS ROOT CACHE POINT NUMBER``:
it ends by SIGKILL once NUMBER bytes came (``bytes``) or at the NUMBER-th ``sync`` or ``rename``, or
it finishes.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runtime.engine.base import CancelToken
from runtime.hub import download
from runtime.hub.desk import HubDesk
from runtime.hub.download import Fetched


def main(arguments: list[str]) -> int:
    """Download and return 0, or die on the way."""
    model_id, revision, address, root, cache, point, count = arguments
    number = int(count)
    download.TELL_INTERVAL_S = 0

    def tell(fetched: Fetched) -> None:
        if point == "bytes" and fetched.done_bytes >= number:
            os.kill(os.getpid(), signal.SIGKILL)

    if point == "sync":
        os.fsync = _mortal(os.fsync, number)
    elif point == "rename":
        Path.replace = _mortal(Path.replace, number)  # type: ignore[method-assign]
        Path.rename = _mortal(Path.rename, number)  # type: ignore[method-assign]
    HubDesk(Path(cache)).download(model_id, revision, address, root, CancelToken(), tell)
    return 0


def _mortal(function: Callable[..., Any], number: int) -> Callable[..., Any]:
    """Return ``function`` that kills the process when it is called the ``number``-th time."""
    left = [number]

    def called(*arguments: Any, **named: Any) -> Any:
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **named)

    return called


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
