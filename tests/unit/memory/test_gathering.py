"""Memory that lies in ordinary pages is put into large ones, where the system can."""

import errno

import pytest

from runtime.memory.large_pages import LARGE_PAGE_BYTES as LARGE
from runtime.memory.large_pages import gather


class System:
    """Notes what it is asked for and answers in turn, the last answer again and again."""

    def __init__(self, *answers: int) -> None:
        self._answers = list(answers)
        self.asked: list[int] = []

    def __call__(self, address: int) -> int:
        self.asked.append(address)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


def test_gather_asks_for_whole_large_pages_across_neighbours() -> None:
    system = System(0)
    spans = [(5 * LARGE, LARGE), (LARGE // 2, LARGE), (LARGE // 2 + LARGE, 2 * LARGE)]
    assert gather(spans, collapse=system) == 3
    assert system.asked == [LARGE, 2 * LARGE, 5 * LARGE]


def test_gather_passes_over_what_cannot_be_moved_now() -> None:
    system = System(errno.EINVAL, 0)
    assert gather([(0, 3 * LARGE)], collapse=system) == 2


@pytest.mark.parametrize("refusal", [errno.ENOMEM, errno.EAGAIN])
def test_gather_without_room_gives_up(refusal: int) -> None:
    system = System(refusal)
    assert gather([(0, 1000 * LARGE)], collapse=system) == 0
    assert len(system.asked) < 50


def test_gather_that_is_no_longer_wanted_ends() -> None:
    system = System(0)
    assert gather([(0, 1000 * LARGE)], lambda: len(system.asked) < 3, system) == 3


def test_gather_leaves_small_neighbours_apart() -> None:
    system = System(0)
    assert (
        gather([(start, LARGE // 8) for start in range(0, 8 * LARGE, LARGE // 8)], collapse=system)
        == 0
    )
    assert system.asked == []


def test_gather_memory_without_a_whole_large_page_asks_nothing() -> None:
    system = System(0)
    assert gather([], collapse=system) == gather([(4096, LARGE)], collapse=system) == 0
    assert system.asked == []
