"""How figures were found, as the window tells it."""

import pytest

from app.text.method_words import method_name


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("system", "asked of the system"),
        ("psutil available", "asked of the system (psutil)"),
        ("control group memory.max", "control group, memory.max"),
        ("control group memory.max minus used", "control group, memory.max, less what is used"),
        ("measured, 2 threads, 256 MiB", "measured with 2 threads in 256 MiB"),
        (
            "measured, 2 threads, 256 MiB, while other programs took 1.1 of 2 cores",
            "measured with 2 threads in 256 MiB while other programs took 1.1 of 2 cores",
        ),
        ("measured, 64 MiB copied", "measured, 64 MiB copied"),
        (
            "uncached reads of 2.7 MB, 4 at once",
            "measured without the system's cache, 2.7 MB a read, 4 at once",
        ),
        (
            "psutil available and what this program holds",
            "asked of the system (psutil), and what this program holds",
        ),
        (
            "psutil available, less the simulated cards",
            "asked of the system (psutil), less what simulated cards hold",
        ),
        ("NVIDIA GeForce RTX 4070", "NVIDIA GeForce RTX 4070"),
        ("control group {0}", "control group {0}"),
    ],
)
def test_methods_are_told_in_the_words_of_the_window(told: str, shown: str) -> None:
    assert method_name(told) == shown
