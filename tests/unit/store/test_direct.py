"""Reads past the cache: what is straight, what goes through a room of pages, what falls back."""

import errno
import itertools
import logging
import mmap
import os
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode
from runtime.spec.tensors import PAGE_BYTES
from runtime.store import direct
from runtime.store.bounce import BOUNCE_BYTES, pieces_of
from runtime.store.files import WeightFiles
from tests.support.drive_counters import process_bytes_read

SIZE = 3 * BOUNCE_BYTES + 5000
DATA = random.Random(1).randbytes(SIZE)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("direct") / "w"
    place.write_bytes(DATA)
    return str(place)


@pytest.fixture
def opened(path: str) -> Iterator[WeightFiles]:
    files = WeightFiles([path])
    yield files
    files.close()


def read(files: WeightFiles, path: str, offset: int, *sizes: int) -> bytes:
    places = [bytearray(size) for size in sizes]
    files.read(path, offset, [memoryview(place) for place in places])
    return b"".join(places)


def pages_around(offset: int, num_bytes: int) -> int:
    end = -(-(offset + num_bytes) // PAGE_BYTES) * PAGE_BYTES
    return end - offset // PAGE_BYTES * PAGE_BYTES


def is_on_a_drive(path: str) -> bool:
    """Whether the system itself lets this file be read past its cache."""
    if direct.lies_in_memory(path):
        return False
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
        with mmap.mmap(-1, PAGE_BYTES) as page, memoryview(page) as view:
            os.preadv(descriptor, [view], 0)
        os.close(descriptor)
    except OSError:
        return False
    return True


@settings(max_examples=60, deadline=None)
@given(
    offset=st.integers(0, SIZE - 1),
    sizes=st.lists(st.integers(0, BOUNCE_BYTES + 9000), min_size=1, max_size=4),
)
def test_files_any_range_over_any_places_is_what_the_file_holds(
    path: str, offset: int, sizes: list[int]
) -> None:
    fitting: list[int] = []
    left = SIZE - offset
    for size in sizes:
        fitting.append(min(size, left))
        left -= fitting[-1]
    num_bytes = SIZE - offset - left
    files = WeightFiles([path])
    assert read(files, path, offset, *fitting) == DATA[offset : offset + num_bytes]
    if files.is_direct and num_bytes:
        assert files.num_bytes_read == min(
            pages_around(offset, num_bytes), SIZE - offset // PAGE_BYTES * PAGE_BYTES
        )
    files.close()


def test_files_whole_pages_go_straight_into_their_place(
    opened: WeightFiles, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: object) -> None:
        raise AssertionError("a room was asked for")

    monkeypatch.setattr("runtime.store.bounce.BouncePool.room", refuse)
    with mmap.mmap(-1, 8 * PAGE_BYTES) as mapping, memoryview(mapping) as slot:
        opened.read(path, 2 * PAGE_BYTES, [slot[: 3 * PAGE_BYTES], slot[4 * PAGE_BYTES :]])
        assert bytes(slot[: 3 * PAGE_BYTES]) == DATA[2 * PAGE_BYTES : 5 * PAGE_BYTES]
        assert bytes(slot[3 * PAGE_BYTES : 4 * PAGE_BYTES]) == bytes(PAGE_BYTES)
        assert bytes(slot[4 * PAGE_BYTES :]) == DATA[5 * PAGE_BYTES : 9 * PAGE_BYTES]
    assert opened.num_bytes_read == 7 * PAGE_BYTES


def test_files_are_direct_where_the_system_is(opened: WeightFiles, path: str) -> None:
    assert opened.is_direct == is_on_a_drive(path)
    opened.close()
    assert not opened.is_direct


def test_files_count_what_the_system_counts(opened: WeightFiles, path: str) -> None:
    before = process_bytes_read(os.getpid())
    with mmap.mmap(-1, BOUNCE_BYTES) as mapping, memoryview(mapping) as slot:
        for _ in range(3):
            opened.read(path, BOUNCE_BYTES, [slot])
    for offset in range(100, 2 * BOUNCE_BYTES, 70_000):
        assert read(opened, path, offset, 9000, 4000) == DATA[offset : offset + 13000]
    fetched = process_bytes_read(os.getpid()) - before
    # Where nothing can be read past the cache, there is no drive to agree with.
    expected = opened.num_bytes_read if opened.is_direct else fetched
    assert abs(fetched - expected) <= 0.05 * expected


def test_files_read_by_several_threads_at_once(opened: WeightFiles, path: str) -> None:
    offsets = [random.Random(2).randrange(SIZE - 200_000) for _ in range(64)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda offset: read(opened, path, offset, 150_000, 7), offsets))
    assert found == [DATA[offset : offset + 150_007] for offset in offsets]


@pytest.mark.parametrize("offset", [SIZE - 10, SIZE + 3 * PAGE_BYTES])
def test_files_direct_read_beyond_the_end_is_refused(
    opened: WeightFiles, path: str, offset: int
) -> None:
    was_direct = opened.is_direct
    with pytest.raises(LarderError) as caught:
        read(opened, path, offset, 11)
    assert caught.value.code is ErrorCode.DRIVE_READ_FAILED
    assert "ends before" in str(caught.value.parameters["reason"])
    assert opened.is_direct == was_direct


@pytest.mark.parametrize("number", [errno.EIO, errno.ENODEV, errno.ENXIO, errno.ESTALE])
def test_files_direct_error_of_the_drive_is_translated(
    opened: WeightFiles, path: str, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fail(descriptor: int, places: list[memoryview], offset: int) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "preadv", fail)
    with pytest.raises(LarderError) as caught:
        read(opened, path, 5000, 10)
    assert caught.value.code is ErrorCode.DRIVE_READ_FAILED
    assert caught.value.parameters["reason"] == os.strerror(number)


def test_files_refused_direct_reads_go_through_the_cache(
    path: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("runtime.store.direct.lies_in_memory", lambda path: False)
    whole_read = os.preadv
    forgotten: list[tuple[int, int]] = []

    def refuse_pages(descriptor: int, places: list[memoryview], offset: int) -> int:
        if places[0].nbytes % PAGE_BYTES == 0:
            raise OSError(errno.EINVAL, "Invalid argument")
        return whole_read(descriptor, places, offset)

    monkeypatch.setattr(os, "preadv", refuse_pages)
    monkeypatch.setattr(
        os, "posix_fadvise", lambda _fd, offset, size, _advice: forgotten.append((offset, size))
    )
    files = WeightFiles([path])
    was_direct = files.is_direct
    with caplog.at_level(logging.INFO):
        assert read(files, path, 77, 1000) == DATA[77:1077]
    assert not files.is_direct
    assert files.num_bytes_read == 1000
    assert forgotten == [(77, 1000)]
    assert ("through the cache" in caplog.text) == was_direct
    files.close()


def test_files_that_cannot_be_opened_directly_are_buffered(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole_open = os.open

    def refuse_direct(name: str, flags: int, *rest: int) -> int:
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "Invalid argument")
        return whole_open(name, flags, *rest)

    monkeypatch.setattr(os, "open", refuse_direct)
    files = WeightFiles([path])
    assert not files.is_direct
    assert read(files, path, 5, 10) == DATA[5:15]
    files.close()


def test_files_in_memory_are_not_direct(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime.store.direct.lies_in_memory", lambda path: True)
    files = WeightFiles([path])
    assert not files.is_direct
    files.close()


def test_files_exchanged_while_opening_are_not_read_directly(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os.path, "sameopenfile", lambda one, other: False)
    files = WeightFiles([path])
    assert not files.is_direct
    files.close()


@given(st.integers(0, 10**12), st.integers(1, 10**7))
def test_pieces_cover_the_range_in_whole_pages(offset: int, num_bytes: int) -> None:
    pieces = list(pieces_of(offset, num_bytes))
    assert pieces[0][0] <= offset < pieces[0][0] + PAGE_BYTES
    end = pieces[-1][0] + pieces[-1][1]
    assert end - PAGE_BYTES < offset + num_bytes <= end
    for (start, size), (after, _) in itertools.pairwise(pieces):
        assert start + size == after
    assert all(
        start % PAGE_BYTES == size % PAGE_BYTES == 0 and 0 < size <= BOUNCE_BYTES
        for start, size in pieces
    )
