"""Joining extents: every byte is covered once, and only close neighbours share a read."""

from hypothesis import given
from hypothesis import strategies as st

from runtime.store.coalesce import Extent, coalesce

extents = st.lists(
    st.builds(
        Extent,
        file=st.sampled_from("ab"),
        offset_bytes=st.integers(0, 500),
        num_bytes=st.integers(0, 60),
        key=st.integers(0, 100),
    ),
    max_size=12,
)


def test_coalesce_joins_neighbours_within_the_gap() -> None:
    wanted = [Extent("a", 20, 10, 2), Extent("a", 0, 10, 1), Extent("a", 35, 5, 3)]
    (run,) = coalesce(wanted, max_gap_bytes=10, max_run_bytes=100)
    assert [extent.key for extent in run.extents] == [1, 2, 3]
    assert (run.file, run.offset_bytes, run.num_bytes) == ("a", 0, 40)
    assert run.gaps_bytes == (10, 5)


def test_coalesce_splits_at_gap_file_overlap_and_run_limit() -> None:
    first = Extent("a", 0, 10, 1)
    for second in (
        Extent("a", 21, 10, 2),
        Extent("b", 10, 10, 2),
        Extent("a", 9, 10, 2),
        Extent("a", 10, 41, 2),
    ):
        assert len(coalesce([first, second], max_gap_bytes=10, max_run_bytes=50)) == 2


def test_coalesce_of_nothing_reads_nothing() -> None:
    assert coalesce([]) == []


@given(extents, st.integers(0, 50), st.integers(1, 200))
def test_coalesce_covers_each_extent_once(
    wanted: list[Extent], max_gap_bytes: int, max_run_bytes: int
) -> None:
    runs = coalesce(wanted, max_gap_bytes, max_run_bytes)
    covered = [extent for run in runs for extent in run.extents]
    order = lambda item: (item.file, item.offset_bytes, item.key, item.num_bytes)  # noqa: E731
    assert sorted(covered, key=order) == sorted(wanted, key=order)
    for run in runs:
        assert {extent.file for extent in run.extents} == {run.file}
        assert all(0 <= gap <= max_gap_bytes for gap in run.gaps_bytes)
        assert run.num_bytes <= max_run_bytes or len(run.extents) == 1
        held = sum(extent.num_bytes for extent in run.extents)
        assert run.num_bytes == held + sum(run.gaps_bytes)


@given(extents)
def test_coalesce_does_not_depend_on_the_order_asked_for(wanted: list[Extent]) -> None:
    wanted = list({(item.file, item.offset_bytes, item.key): item for item in wanted}.values())
    assert coalesce(wanted) == coalesce(wanted[::-1])
