"""An answer from the drive: its count of bytes against the system's own counters."""

from pathlib import Path

import pytest
import torch

from tests.support.drive_answers import MAX_RATIO, counted_answers


@pytest.fixture(autouse=True)
def _one_torch_thread() -> None:
    torch.set_num_threads(1)


def test_answer_from_the_drive_tells_what_the_system_counts(demo_folder: Path) -> None:
    answers = list(counted_answers(demo_folder, 2, 16))
    if not answers:
        pytest.skip("files of this folder cannot be read past the system's cache")
    # With the first answer parts of programs may be read that this process had not used yet.
    for counted in answers[1:]:
        assert counted.num_tokens == 16
        assert counted.told_bytes > 50e6
        assert 1 / MAX_RATIO <= counted.told_bytes / counted.process_bytes <= MAX_RATIO
        if counted.drive_bytes is not None:
            # Others read too, so that the drive may count more; `make bench-drive_bytes` compares.
            assert counted.told_bytes <= MAX_RATIO * counted.drive_bytes
