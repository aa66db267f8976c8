"""Columns get what they want where there is room, and give way down to what can be read."""

from hypothesis import given
from hypothesis import strategies as st

from app.views.table_layout import MAX_COLUMN_WIDTH, MIN_WRAPPED_WIDTH, column_widths

WIDTHS = st.lists(st.integers(1, 2000), min_size=1, max_size=60)


def test_widths_that_fit_are_natural() -> None:
    assert column_widths([50, 200], 700) == [50, 200]


def test_wide_column_gives_way_and_narrow_ones_stay() -> None:
    assert column_widths([40, 2000, 300], 500) == [40, 245, 214]


@given(WIDTHS, st.integers(0, 2000))
def test_widths_are_within_their_bounds(natural: list[int], room: int) -> None:
    found = column_widths(natural, room)
    for width, wish in zip(found, natural, strict=True):
        assert min(wish, MIN_WRAPPED_WIDTH) <= width <= min(wish, MAX_COLUMN_WIDTH)


@given(WIDTHS, st.integers(0, 2000))
def test_table_is_wider_than_its_room_only_if_it_must(natural: list[int], room: int) -> None:
    least = sum(min(wish, MIN_WRAPPED_WIDTH) for wish in natural)
    assert sum(column_widths(natural, room)) <= max(room, least)
