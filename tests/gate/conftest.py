"""The development commands are scripts, not a package: their folder is put on the path here."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.packages import build_wheel

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / ".ci"))


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built with the tools of this environment."""
    import environments

    kept = environments.build_folder(environments.FULL)
    return build_wheel(ROOT, tmp_path_factory.mktemp("wheel"), kept)
