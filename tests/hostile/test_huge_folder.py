"""A model of a hundred gigabytes is looked at in moments, whole or broken: headers alone are read.

Two seconds are the aim; the tests allow three times that, because a busy PC is no reason to fail.
"""

import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.inspect.folder import inspect_folder
from runtime.protocol.errors import ErrorCode
from runtime.protocol.model import ModelReport
from tests.support.checkpoint_folders import TinyModel, shard_name
from tests.support.sparse_checkpoints import write_sparse_checkpoint

_LOG = logging.getLogger(__name__)
AIM_S = 2.0
MODEL = TinyModel(
    hidden_size=4096,
    num_layers=48,
    num_heads=32,
    num_kv_heads=4,
    head_dim=128,
    num_experts=128,
    top_k=8,
    expert_width=704,
    vocabulary_size=151_936,
    num_shards=24,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    made = tmp_path_factory.mktemp("huge") / "m"
    assert write_sparse_checkpoint(made, MODEL) > 100e9
    yield made
    for file in made.iterdir():
        file.unlink()


def inspect_in_time(folder: Path) -> ModelReport:
    """Inspect in three times the aim; a first look that others held up is repeated once."""
    for is_last in (False, True):
        started_s = time.monotonic()
        report = inspect_folder(str(folder)).report
        seconds = time.monotonic() - started_s
        _LOG.info("%d GB inspected in %.2f s", report.file_bytes // 10**9, seconds)
        if seconds < 3 * AIM_S:
            break
        assert not is_last, f"{seconds:.2f} s"
    return report


def test_huge_model_is_understood_in_time(folder: Path) -> None:
    report = inspect_in_time(folder)
    assert report.is_runnable
    assert report.file_bytes > 100e9
    assert report.num_shards == 24


def test_huge_model_with_a_cut_and_a_missing_shard_is_refused_in_time(folder: Path) -> None:
    cut, missing = folder / shard_name(7, 24), folder / shard_name(20, 24)
    whole_bytes = cut.stat().st_size
    with cut.open("r+b") as file:
        file.truncate(whole_bytes - 1)
    missing.rename(folder / "aside")
    try:
        report = inspect_in_time(folder)
    finally:
        (folder / "aside").rename(missing)
        with cut.open("r+b") as file:
            file.truncate(whole_bytes)
    codes = [problem.code for problem in report.problems]
    assert codes == [ErrorCode.SHARD_TRUNCATED, ErrorCode.SHARD_MISSING]
    assert report.problems[0].parameters["found_bytes"] == whole_bytes - 1
    assert report.problems[0].parameters["expected_bytes"] == whole_bytes
