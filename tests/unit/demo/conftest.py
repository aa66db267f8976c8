"""Marker and fixtures of the demo model's tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[3]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "demo: needs the built folder of the demo model")


@pytest.fixture(scope="session")
def demo_folder() -> Path:
    """The built demo folder; set-up puts it below build/."""
    default = _ROOT / "build" / "demo" / "larder-demo"
    folder = Path(os.environ.get("LARDER_DEMO_DIR") or default)
    assert (folder / "config.json").is_file(), f"no demo model at {folder}: run make setup"
    return folder
