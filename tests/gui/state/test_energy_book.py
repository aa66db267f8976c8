"""Sums of energy and reads: of the session, and of months over the life of a file."""

import datetime as dt
from pathlib import Path

import msgspec
import pytest

from app.state.drive_wear import wear_ratio
from app.state.energy_book import MAX_MONTHS, EnergyBook, EnergySum
from runtime.protocol.chat import GenerationStats
from tests.support.window_values import some_stats


class Calendar:
    def __init__(self) -> None:
        self.day = dt.date(2026, 11, 30)

    def __call__(self) -> dt.date:
        return self.day


@pytest.fixture
def calendar() -> Calendar:
    return Calendar()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "energy.json"


def test_book_adds_answers_to_the_session_and_the_month(path: Path, calendar: Calendar) -> None:
    book = EnergyBook(path, calendar)
    assert (book.session, book.month) == (EnergySum(), EnergySum())
    assert not book.take_answer(None)
    assert not path.exists()
    assert book.take_answer(some_stats(energy_j=3.6e6))
    assert book.take_answer(some_stats(energy_j=None))
    expected = EnergySum(num_answers=2, num_tokens=40, joules=3.6e6, drive_bytes_read=10 << 20)
    assert book.session == book.month == expected
    assert expected.cost(0.3) == pytest.approx(0.3)


def test_book_keeps_months_apart_over_restarts(path: Path, calendar: Calendar) -> None:
    EnergyBook(path, calendar).take_answer(some_stats(energy_j=10.0))
    calendar.day = dt.date(2026, 12, 1)
    book = EnergyBook(path, calendar)
    assert book.month == EnergySum()
    book.take_answer(some_stats(energy_j=5.0))
    assert book.month.joules == book.session.joules == 5.0
    calendar.day = dt.date(2026, 11, 1)
    assert EnergyBook(path, calendar).month.joules == 10.0


def test_book_forgets_the_oldest_months(path: Path, calendar: Calendar) -> None:
    for number in range(MAX_MONTHS + 3):
        calendar.day = dt.date(2030 + number // 12, 1 + number % 12, 1)
        EnergyBook(path, calendar).take_answer(some_stats())
    kept = msgspec.json.decode(path.read_bytes())
    assert len(kept) == MAX_MONTHS
    assert min(kept) == "2030-04"


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"[]", b'{"2026-11": {"joules": -1}}', b'{"2026-11": 3}', b'{"a":' * 100_000],
)
def test_book_damaged_counts_as_empty(path: Path, calendar: Calendar, damage: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(damage)
    book = EnergyBook(path, calendar)
    assert book.month == EnergySum()
    assert book.take_answer(some_stats())
    assert EnergyBook(path, calendar).month.num_answers == 1


def test_book_that_cannot_be_written_lasts_as_long_as_the_window(
    tmp_path: Path, calendar: Calendar
) -> None:
    (tmp_path / "file").write_bytes(b"")
    book = EnergyBook(tmp_path / "file" / "energy.json", calendar)
    assert not book.take_answer(some_stats())
    assert book.session.num_answers == book.month.num_answers == 1


def test_book_adds_what_was_written_by_answers_copies_and_downloads(
    path: Path, calendar: Calendar
) -> None:
    book = EnergyBook(path, calendar)
    told: GenerationStats = msgspec.structs.replace(some_stats(), drive_bytes_written=5)
    book.take_answer(told)
    assert book.take_written(1 << 30)
    assert book.session.drive_bytes_written == book.month.drive_bytes_written == (1 << 30) + 5
    assert EnergyBook(path, calendar).month.drive_bytes_written == (1 << 30) + 5
    assert book.session.num_answers == 1


def test_book_of_an_older_version_is_taken(path: Path, calendar: Calendar) -> None:
    path.parent.mkdir()
    path.write_text('{"2026-11": {"num_answers": 3, "num_tokens": 9, "joules": 2.0}}')
    assert EnergyBook(path, calendar).month == EnergySum(num_answers=3, num_tokens=9, joules=2.0)


def test_wear_is_a_part_of_what_the_drive_is_made_to_bear() -> None:
    assert wear_ratio(3 * 10**12, 0) == pytest.approx(0.01)
    assert wear_ratio(3 * 10**12, 600) == pytest.approx(0.005)
