"""A PC that was started on before: how fast it reads memory is known to each home.

A runtime that does not know it fills and reads a gigabyte when it first plans. A folder of tests
takes both fixtures into its conftest; a file of tests in which that first time does not matter
asks for ``measured_before``.
"""

import shutil
from pathlib import Path

import pytest

from runtime.service.folders import HOME_VARIABLE, find_folders
from runtime.service.measuring import measure_ram

RATES = "rates.json"


@pytest.fixture(scope="session")
def kept_rates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a runtime keeps of its first look at memory, measured once for all tests."""
    path = tmp_path_factory.mktemp("measured") / RATES
    measure_ram(path)
    return path


@pytest.fixture
def measured_before(kept_rates: Path, tmp_home: Path) -> None:
    """Let the home of a test hold what was measured before."""
    cache = find_folders({HOME_VARIABLE: str(tmp_home)}).cache
    cache.mkdir(parents=True, exist_ok=True)
    if kept_rates.exists():
        shutil.copy(kept_rates, cache / RATES)
