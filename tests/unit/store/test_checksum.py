"""Checksums are zlib's, whichever code computes them."""

import importlib
import sys
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.store import checksum


@given(st.binary(max_size=20_000), st.integers(0, 2**32 - 1))
def test_checksum_is_that_of_zlib(data: bytes, start: int) -> None:
    assert checksum.crc32(data, start) == zlib.crc32(data, start)
    assert checksum.crc32(memoryview(data)) == zlib.crc32(data)


def test_checksum_without_the_faster_code_is_computed_by_zlib(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "zlib_ng.zlib_ng", None)
    try:
        importlib.reload(checksum)
        assert checksum.crc32 is zlib.crc32
    finally:
        monkeypatch.undo()
        importlib.reload(checksum)
