import dataclasses
import json
import struct
from pathlib import Path

import numpy as np
import pytest

from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode
from runtime.simulate.trace import Trace
from runtime.simulate.trace_files import HEADER, read_trace, write_trace
from tests.support.traces import sticky_trace


def equal(left: Trace, right: Trace) -> bool:
    same = {"name", "origin", "num_experts", "layers", "sequence_tokens", "is_ranked"}
    assert all(getattr(left, name) == getattr(right, name) for name in same)
    if left.scores is None or right.scores is None:
        assert left.scores is right.scores
    else:
        assert (left.scores == right.scores).all()
    if left.hints is None or right.hints is None:
        assert left.hints is right.hints
    else:
        assert (left.hints == right.hints).all()
    return bool((left.ids == right.ids).all())


@pytest.mark.parametrize("tokens_per_part", [7, 100, 1000])
@pytest.mark.parametrize("num_experts", [16, 300])
def test_trace_written_in_parts_is_read_the_same(
    tmp_path: Path, tokens_per_part: int, num_experts: int
) -> None:
    trace = sticky_trace(num_tokens=60, num_experts=num_experts)
    scores = np.arange(trace.ids.size, dtype=np.uint8).reshape(trace.ids.shape)

    hints = trace.ids[:, :, :1]

    for number, made in enumerate(
        (
            trace,
            dataclasses.replace(trace, scores=scores),
            dataclasses.replace(trace, scores=scores, hints=hints),
        )
    ):
        folder = tmp_path / str(number)
        write_trace(folder, made, tokens_per_part)
        assert equal(read_trace(folder), made)


def damaged(folder: Path, **changes: object) -> None:
    header = json.loads((folder / HEADER).read_text())
    (folder / HEADER).write_text(json.dumps({**header, **changes}))


def entry_changed(folder: Path, *, flags: int = 0, method: int = 8) -> bytes:
    """The first part, whose entries claim other flags, or another compression."""
    data = bytearray((folder / "part-000.npz").read_bytes())
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.index(mark) + place
        data[at : at + 4] = struct.pack("<HH", flags, method)
    return bytes(data)


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 2},
        {"parts": []},
        {"parts": ["../part-000.npz"]},
        {"parts": ["missing.npz"]},
        {"parts": [HEADER]},
        {"num_experts": 3},
        {"num_experts": 0},
        {"num_experts": 1 << 40},
        {"parts": ["twice.npz"]},
        {"parts": ["empty.npz"], "sequence_tokens": []},
        {"parts": ["ciphered.npz"]},
        {"parts": ["odd.npz"]},
        {"sequence_tokens": [1]},
        {"layers": [0]},
        {"layers": [0, 1, 1]},
        {"layers": [0, 1, -1]},
        {"surprise": 1},
        {"parts": ["part-000.npz", "other.npz"]},
        {"parts": ["floats.npz"]},
        {"parts": ["scores.npz"]},
        {"parts": ["hints.npz"]},
        {"parts": ["far-hints.npz"]},
        {"parts": ["no-ids.npz"]},
        {"parts": ["cut.npz"]},
        {"name": "x" * (1 << 20)},
    ],
)
def test_trace_that_is_damaged_is_refused_with_its_file(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    write_trace(tmp_path, sticky_trace(num_tokens=20), 100)
    ids = np.zeros((3, 20, 2), np.uint8)
    ids[:, :, 1] = 1
    np.savez_compressed(tmp_path / "twice.npz", ids=np.zeros_like(ids))
    np.savez_compressed(tmp_path / "empty.npz", ids=ids[:, :0])
    (tmp_path / "ciphered.npz").write_bytes(entry_changed(tmp_path, flags=1))
    (tmp_path / "odd.npz").write_bytes(entry_changed(tmp_path, method=97))
    np.savez_compressed(tmp_path / "other.npz", ids=ids[:, :, :1])
    np.savez_compressed(tmp_path / "floats.npz", ids=ids.astype(float))
    np.savez_compressed(tmp_path / "scores.npz", ids=ids, scores=ids[:1])
    np.savez_compressed(tmp_path / "hints.npz", ids=ids, hints=ids[:, :5])
    np.savez_compressed(tmp_path / "far-hints.npz", ids=ids, hints=ids + np.uint8(200))
    np.savez_compressed(tmp_path / "no-ids.npz", tokens=ids)
    whole = (tmp_path / "part-000.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    damaged(tmp_path, **changes)

    with pytest.raises(LarderError) as caught:
        read_trace(tmp_path)

    assert caught.value.code is ErrorCode.FILE_UNREADABLE
    assert str(tmp_path) in str(caught.value.parameters["file"])


def test_trace_part_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_trace(tmp_path, sticky_trace(num_tokens=20), 100)
    monkeypatch.setattr("runtime.simulate.trace_files._MAX_PART_BYTES", 100)

    with pytest.raises(LarderError) as caught:
        read_trace(tmp_path)

    assert caught.value.parameters["reason"] == "it is too long"


def test_trace_part_of_tokens_and_layers_keeps_sequences() -> None:
    trace = sticky_trace(num_tokens=60, num_layers=5)

    part = trace.part(40, 2)

    assert part.layers == (0, 2, 4)
    assert part.sequence_tokens == (30, 10)
    assert (part.ids == trace.ids[:40, ::2]).all()
    assert trace.only_layers([3]).rows(0) == trace.rows(3)


def test_trace_one_by_one_needs_the_same_in_the_same_order() -> None:
    trace = sticky_trace(num_tokens=20)

    single = trace.one_by_one()

    assert single.top_k == 1
    assert single.num_tokens == 40
    for layer in range(trace.num_layers):
        flat = [expert for row in trace.rows(layer) for expert in row]
        assert [row[0] for row in single.rows(layer)] == flat


def test_trace_hints_go_with_the_layer_before_and_must_fit() -> None:
    trace = sticky_trace(num_tokens=60, num_layers=5)
    hinted = dataclasses.replace(trace, hints=trace.ids[:, :, :1])

    first = hinted.part(10)
    assert first.hints is not None
    assert len(first.hints) == 10
    assert hinted.part(10, 2).hints is hinted.only_layers([1]).hints is None
    assert hinted.one_by_one().hints is None
    with pytest.raises(ValueError, match="hints of"):
        dataclasses.replace(trace, hints=trace.ids[1:])
    with pytest.raises(ValueError, match="hinted expert 99"):
        dataclasses.replace(trace, hints=np.full_like(trace.ids, 99))
