"""A process that downloads a model and kills itself at a chosen point, for tests of resuming.

Run as ``python -m tests.support.download_process MODEL REVISION ADDRESS ROOT CACHE POINT NUMBER``:
it ends by SIGKILL once NUMBER bytes came (``bytes``) or at the NUMBER-th ``sync`` or ``rename``, or
it finishes.
"""

import os
import sys
from pathlib import Path

from runtime.engine.base import CancelToken
from runtime.hub import download
from runtime.hub.desk import HubDesk
from runtime.hub.download import Fetched
from tests.support.mortal import die, mortal


def main(arguments: list[str]) -> int:
    """Download and return 0, or die on the way."""
    model_id, revision, address, root, cache, point, count = arguments
    number = int(count)
    download.TELL_INTERVAL_S = 0

    def tell(fetched: Fetched) -> None:
        if point == "bytes" and fetched.done_bytes >= number:
            die()

    if point == "sync":
        os.fsync = mortal(os.fsync, number)
    elif point == "rename":
        Path.replace = mortal(Path.replace, number)  # type: ignore[method-assign]
        Path.rename = mortal(Path.rename, number)  # type: ignore[method-assign]
    HubDesk(Path(cache)).download(model_id, revision, address, root, CancelToken(), tell)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
