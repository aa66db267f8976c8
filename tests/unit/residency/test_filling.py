"""Reads in the background: they give way, can be taken over and stolen, and end with a word."""

import threading

import pytest

from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode
from runtime.residency.depth import USUAL_DEPTH
from runtime.residency.filling import Filling, Wanted
from runtime.residency.lanes import AbandonedError, ReadLanes
from runtime.spec.tensors import ExpertId
from tests.support.dictionary_store import TINY_LAYOUT, DictionaryStore, GatedStore, content

NUM_BYTES = TINY_LAYOUT.record_bytes


class Bench:
    """A filling over a store, and what it told."""

    def __init__(self, store: DictionaryStore) -> None:
        self.lanes = ReadLanes(store)
        self.arrived: list[ExpertId] = []
        self.ended: list[int] = []
        self.filling = Filling(
            self.lanes, self.arrived.append, lambda number, _: self.ended.append(number)
        )

    def want(self, layer: int, *experts: int) -> list[memoryview]:
        """Start to fill, expert ``n`` into slot ``10 + n``; return the slots' bytes."""
        targets = [memoryview(bytearray(NUM_BYTES)) for _ in experts]
        self.filling.start(
            [
                Wanted(ExpertId(layer, expert), 10 + expert, target)
                for expert, target in zip(experts, targets, strict=True)
            ]
        )
        return targets


def work_of(number: int) -> list[tuple[ExpertId, memoryview]]:
    """Return so many reads of layer 0."""
    return [(ExpertId(0, expert), memoryview(bytearray(NUM_BYTES))) for expert in range(number)]


def test_filling_everything_arrives_and_is_told_once() -> None:
    bench = Bench(DictionaryStore())
    targets = bench.want(1, 0, 1, 2)

    assert bench.filling.wait(30)
    arrivals = bench.filling.collect(1)

    assert sorted(arrival.wanted.slot for arrival in arrivals) == [10, 11, 12]
    assert all(arrival.is_good for arrival in arrivals)
    assert [bytes(target[:1]) for target in targets] == [
        content(ExpertId(1, expert)) for expert in range(3)
    ]
    assert bench.ended == [3]
    assert sorted(bench.arrived) == [ExpertId(1, expert) for expert in range(3)]
    assert not bench.filling.is_busy
    bench.lanes.close()


def test_filling_failed_read_is_handed_out_as_bad_and_not_counted() -> None:
    bench = Bench(DictionaryStore(failing=frozenset({ExpertId(1, 0)})))
    bench.want(1, 0, 1)

    assert bench.filling.wait(30)
    good = {a.wanted.expert.expert: a.is_good for a in bench.filling.collect(1)}

    assert good == {0: False, 1: True}
    assert bench.ended == [1]
    bench.lanes.close()


def test_filling_what_waits_can_be_called_off_and_what_is_read_is_waited_for() -> None:
    store = GatedStore()
    bench = Bench(store)
    bench.want(1, 0, 1, 2, 3, 4)
    for _ in range(2):
        assert store.begun.acquire(timeout=30)

    called_off = bench.filling.claim(ExpertId(1, 2))
    store.gate.set()
    in_flight = bench.filling.claim(ExpertId(1, 0))

    assert called_off.outcome.cancelled()
    assert not called_off.is_good
    assert in_flight.is_good
    assert ExpertId(1, 0) in bench.arrived
    assert bench.filling.wait(30)
    assert sorted(a.wanted.slot for a in bench.filling.collect(1)) == [11, 13, 14]
    assert bench.ended == [4]
    bench.lanes.close()


def test_lanes_background_begins_nothing_while_a_demand_read_is_in_flight() -> None:
    store = GatedStore()
    bench = Bench(store)
    demanded = bench.lanes.demand(work_of(2))
    for _ in range(2):
        assert store.begun.acquire(timeout=30)

    bench.want(1, 7)
    assert not store.begun.acquire(timeout=0.05)
    store.gate.set()
    assert [demanded.wait(number) for number in range(2)] == [None, None]

    assert bench.filling.wait(30)
    assert store.read_experts[-1] == ExpertId(1, 7)
    bench.lanes.close()


def test_lanes_demand_names_what_went_wrong_with_each() -> None:
    lanes = ReadLanes(DictionaryStore(failing=frozenset({ExpertId(0, 1)})))

    reads = lanes.demand(work_of(3))
    errors = [reads.wait(number) for number in range(3)]

    assert errors[0] is errors[2] is None
    assert isinstance(errors[1], LarderError)
    assert errors[1].code is ErrorCode.DRIVE_READ_FAILED
    assert errors[1].parameters == {"file": "weights", "offset_bytes": 0, "reason": "broken"}
    assert errors[1].detail == "layer 0, expert 1"
    lanes.close()


@pytest.mark.parametrize("num_waiting", [3, 40])
def test_lanes_close_leaves_what_waits(num_waiting: int) -> None:
    store = GatedStore()
    bench = Bench(store)
    bench.want(1, *range(num_waiting))
    for _ in range(2):
        assert store.begun.acquire(timeout=30)

    closing = threading.Thread(target=bench.lanes.close)
    closing.start()
    assert bench.filling.collect(0) == []
    store.gate.set()
    closing.join(30)

    assert not closing.is_alive()
    assert len(store.read_experts) <= num_waiting
    assert bench.filling.wait(0)


def test_lanes_demand_abandoned_ends_what_began_and_leaves_the_rest() -> None:
    store = GatedStore()
    bench = Bench(store)
    reads = bench.lanes.demand(work_of(9))
    for _ in range(USUAL_DEPTH):
        assert store.begun.acquire(timeout=30)

    reads.abandon()
    store.gate.set()
    outcomes = [reads.wait(number) for number in range(9)]

    assert outcomes[:USUAL_DEPTH] == [None] * USUAL_DEPTH
    assert all(isinstance(outcome, AbandonedError) for outcome in outcomes[USUAL_DEPTH:])
    assert len(store.read_experts) == USUAL_DEPTH
    bench.want(1, 7)
    assert bench.filling.wait(30)
    assert store.read_experts[-1] == ExpertId(1, 7)
    bench.lanes.close()


def test_lanes_demand_is_read_by_who_waits_where_no_reader_is_left() -> None:
    lanes = ReadLanes(DictionaryStore())
    reads = lanes.demand(work_of(1))
    lanes.close()

    assert reads.wait(0) is None


def test_lanes_hints_wait_until_nothing_is_demanded() -> None:
    store = GatedStore()
    lanes = ReadLanes(store)
    demanded = lanes.demand(work_of(1))
    assert store.begun.acquire(timeout=30)

    hints = lanes.hint([(ExpertId(7, 0), memoryview(bytearray(NUM_BYTES)))])
    assert not store.begun.acquire(timeout=0.05)
    store.gate.set()
    assert demanded.wait(0) is None

    assert store.begun.acquire(timeout=30)
    assert hints.wait(0) is None
    assert store.read_experts == [ExpertId(0, 0), ExpertId(7, 0)]
    lanes.close()


def test_lanes_hints_abandoned_before_their_turn_are_never_read() -> None:
    store = GatedStore()
    lanes = ReadLanes(store)
    demanded = lanes.demand(work_of(1))
    assert store.begun.acquire(timeout=30)
    hints = lanes.hint([(ExpertId(7, 0), memoryview(bytearray(NUM_BYTES)))])

    hints.abandon()
    store.gate.set()

    assert demanded.wait(0) is None
    assert isinstance(hints.wait(0), AbandonedError)
    lanes.close()
    assert store.read_experts == [ExpertId(0, 0)]
