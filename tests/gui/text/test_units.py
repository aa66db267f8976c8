"""Numbers as a person reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.text import units

GIB = 1 << 30
MIB = 1 << 20


def plain(text: str) -> str:
    """Return a text with ordinary spaces."""
    return text.replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (units.count(16384), "16,384"),
        (units.gib(5.1 * GIB), "5.1 GiB"),
        (units.gib(0.05 * GIB), "0.05 GiB"),
        (units.gib(0), "0.0 GiB"),
        (units.size(200.04 * GIB), "200 GiB"),
        (units.size(1023.6 * MIB), "1.0 GiB"),
        (units.size(88 * MIB), "88 MiB"),
        (units.size(12 << 10), "12 KiB"),
        (units.size(1), "1 byte"),
        (units.size(7), "7 bytes"),
        (units.size_of(1.2 * GIB, 14 * GIB), "1.2 GiB of 14.0 GiB"),
        (units.throughput(340 * MIB), "340 MiB/s"),
        (units.tokens(1), "1 token"),
        (units.tokens(1204), "1,204 tokens"),
        (units.rate(21.44), "21.4 tokens/s"),
        (units.rate(128.2), "128 tokens/s"),
        (units.rate_band(19.2, 23.8), "19–24 tokens/s"),
        (units.band(0.41, 0.58), "0.4–0.6"),
        (units.band(20.1, 20.2), "20"),
        (units.duration(0.8), "0.8 s"),
        (units.duration(0), "0.0 s"),
        (units.duration(9.96), "10 s"),
        (units.duration(59.6), "1 min 00 s"),
        (units.duration(185), "3 min 05 s"),
        (units.duration(7800), "2 h 10 min"),
        (units.percent(0), "0 %"),
        (units.percent(0.001), "<1 %"),
        (units.percent(0.123), "12 %"),
        (units.energy(14760), "4.1 Wh"),
        (units.energy(720), "0.20 Wh"),
        (units.energy(36), "0.010 Wh"),
        (units.power(127.6), "128 W"),
        (units.weights(117_000_000_000), "117 billion weights"),
        (units.weights(1_700_000_000), "1.7 billion weights"),
        (units.weights(135_000_000), "135 million weights"),
    ],
)
def test_number_is_written_with_its_unit(text: str, expected: str) -> None:
    assert plain(text) == expected


@given(st.floats(0, 1e15))
def test_no_number_is_parted_from_its_unit(value: float) -> None:
    for write in (units.gib, units.throughput, units.rate, units.duration, units.energy):
        assert " " not in write(value)


@given(st.floats(0, 1e12), st.floats(0, 1e12))
def test_longer_time_never_reads_shorter(first: float, second: float) -> None:
    def seconds(text: str) -> float:
        words = plain(text).split()
        factors = {"s": 1, "min": 60, "h": 3600}
        pairs = zip(words[::2], words[1::2], strict=True)
        return sum(float(number) * factors[unit] for number, unit in pairs)

    low, high = sorted((first, second))
    assert seconds(units.duration(low)) <= seconds(units.duration(high))
