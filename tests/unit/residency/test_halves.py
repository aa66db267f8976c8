"""The last expert of a demand is read in halves, so that nobody reads alone while another waits."""

import threading
from collections.abc import Iterator

import pytest

from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode
from runtime.residency.lanes import AbandonedError, ReadLanes
from runtime.spec.tensors import ExpertId
from tests.support.dictionary_store import TINY_LAYOUT, DictionaryStore, content

WORK = [ExpertId(0, number) for number in range(3)]
RECORD_BYTES = TINY_LAYOUT.record_bytes


class Halves:
    """An expert of which each half notes who read it."""

    def __init__(self, store: "HalvedStore", expert: ExpertId, target: memoryview) -> None:
        self._store = store
        self._expert = expert
        self._target = target

    def read(self, half: int) -> None:
        store = self._store
        store.begun.release()
        assert store.gate.wait(30)
        with store.lock:
            store.halves.append((self._expert, half, threading.get_ident()))
        if half in store.failing_halves:
            raise LarderError(
                ErrorCode.DRIVE_READ_FAILED, file="weights", offset_bytes=half, reason="broken"
            )
        middle = RECORD_BYTES // 2
        part = self._target[:middle] if half == 0 else self._target[middle:RECORD_BYTES]
        part[:] = content(self._expert) * len(part)

    def check(self) -> None:
        self._store.num_checks += 1
        if self._store.is_damaged:
            raise LarderError(
                ErrorCode.STORE_DAMAGED, file="weights", offset_bytes=0, part="a record"
            )


class HalvedStore(DictionaryStore):
    """A store that can be read in halves."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()
        self.gate = threading.Event()
        self.gate.set()
        self.begun = threading.Semaphore(0)
        self.halves: list[tuple[ExpertId, int, int]] = []
        self.failing_halves: frozenset[int] = frozenset()
        self.is_damaged = False
        self.num_checks = 0

    def halved(self, expert: ExpertId, target: memoryview) -> Halves | None:
        return Halves(self, expert, target) if expert.expert else None


@pytest.fixture
def store() -> HalvedStore:
    return HalvedStore()


@pytest.fixture
def lanes(store: HalvedStore) -> Iterator[ReadLanes]:
    lanes = ReadLanes(store)
    yield lanes
    lanes.close()


def rooms(number: int) -> list[memoryview]:
    return [memoryview(bytearray(RECORD_BYTES)) for _ in range(number)]


def test_the_last_read_is_halved_and_arrives_whole(store: HalvedStore, lanes: ReadLanes) -> None:
    targets = rooms(3)
    reads = lanes.demand(list(zip(WORK, targets, strict=True)))
    assert [reads.wait(number) for number in range(3)] == [None] * 3
    assert [bytes(target) for target in targets] == [
        content(expert) * RECORD_BYTES for expert in WORK
    ]
    assert sorted((expert, half) for expert, half, _ in store.halves) == [
        (WORK[2], 0),
        (WORK[2], 1),
    ]
    assert sorted(store.read_experts) == WORK[:2]
    assert store.num_checks == 1
    assert_background_goes_on(lanes)


def test_a_single_miss_is_read_by_the_reader_and_by_whoever_waits(
    store: HalvedStore, lanes: ReadLanes
) -> None:
    lanes.num_readers = 1
    store.gate.clear()
    reads = lanes.demand([(WORK[1], rooms(1)[0])])
    assert store.begun.acquire(timeout=30)

    def open_when_both_read() -> None:
        assert store.begun.acquire(timeout=30)
        store.gate.set()

    opener = threading.Thread(target=open_when_both_read)
    opener.start()
    assert reads.wait(0) is None
    opener.join()
    readers = {reader for _, _, reader in store.halves}
    assert len(readers) == 2
    assert threading.get_ident() in readers


def test_an_expert_that_is_small_is_read_in_one_piece(store: HalvedStore, lanes: ReadLanes) -> None:
    reads = lanes.demand([(WORK[0], rooms(1)[0])])
    assert reads.wait(0) is None
    assert store.read_experts == [WORK[0]]
    assert not store.halves


@pytest.mark.parametrize("failing", [{0}, {1}, {0, 1}])
def test_a_half_that_fails_fails_the_read_and_names_the_expert(
    store: HalvedStore, lanes: ReadLanes, failing: set[int]
) -> None:
    store.failing_halves = frozenset(failing)
    reads = lanes.demand([(WORK[1], rooms(1)[0])])
    error = reads.wait(0)
    assert isinstance(error, LarderError)
    assert error.code is ErrorCode.DRIVE_READ_FAILED
    assert error.detail == "layer 0, expert 1"
    assert not store.num_checks
    assert_background_goes_on(lanes)


def test_damage_is_told_after_both_halves(store: HalvedStore, lanes: ReadLanes) -> None:
    store.is_damaged = True
    reads = lanes.demand([(WORK[1], rooms(1)[0])])
    error = reads.wait(0)
    assert isinstance(error, LarderError)
    assert error.code is ErrorCode.STORE_DAMAGED
    assert len(store.halves) == 2


def test_halves_that_have_not_begun_are_abandoned_with_the_rest(
    store: HalvedStore, lanes: ReadLanes
) -> None:
    lanes.num_readers = 1
    store.gate.clear()
    reads = lanes.demand([(WORK[2], rooms(1)[0])])
    assert store.begun.acquire(timeout=30)
    reads.abandon()
    assert not reads.is_done(0)
    store.gate.set()
    assert isinstance(reads.wait(0), AbandonedError)
    assert [half for _, half, _ in store.halves] == [0]
    assert_background_goes_on(lanes)


def assert_background_goes_on(lanes: ReadLanes) -> None:
    """Assert that every demanded read was counted off."""
    arrived = threading.Event()
    lanes.behind(WORK[0], rooms(1)[0], lambda _: arrived.set())
    assert arrived.wait(30)
