"""Benchmarks that are measured part by part."""

import functools
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from drive_kept import KeptCells
from kept_parts import Part, Row, measure_parts


class Bench:
    """Parts that note when they are measured; the second cannot be."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def parts(self) -> Iterator[Part]:
        for name in ("a", "b", "c"):
            yield name, functools.partial(self._measure, name)

    def _measure(self, name: str) -> Iterable[Row]:
        self.done.append(name)
        if name == "b":
            raise OSError("no such drive")
        yield {"what": name}


def line_of(row: Row) -> str:
    return f"row {row['what']}"


def test_parts_are_measured_few_at_a_time_and_never_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench, path = Bench(), tmp_path / "kept.json"
    first = measure_parts(KeptCells(path, {}), bench.parts(), 1, line_of)
    assert (first.rows, first.is_whole, bench.done) == ([{"what": "a"}], False, ["a"])
    second = measure_parts(KeptCells(path, {}), bench.parts(), 9, line_of)
    assert second.rows == [{"what": "a"}, {"what": "c"}]
    assert second.refused == ["b: no such drive"]
    assert second.is_whole
    assert bench.done == ["a", "b", "c"]
    assert "row c" in capsys.readouterr().out
