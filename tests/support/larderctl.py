"""``larderctl`` as a person calls it: a process of its own."""

import json
import subprocess
import sys
from typing import Any

from tests.support.runtime_process import ROOT

_MAX_S = 100.0


def larderctl(*arguments: str, status: int = 0) -> dict[str, Any]:
    """Return the JSON document that a command prints, after it ended with this status."""
    ended = subprocess.run(
        [sys.executable, "-m", "runtime.cli", *arguments, "--json"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=_MAX_S,
        check=False,
    )
    assert ended.returncode == status, ended.stderr
    document = json.loads(ended.stdout)
    assert isinstance(document, dict)
    return document
