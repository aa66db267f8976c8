"""Which cards the engine is asked about, by what it was built with, and what is kept of them."""

from pathlib import Path

import pytest

from runtime.hardware.card_findings import CardFindings, keep_findings, unmeasured_cards
from runtime.hardware.cards import SeenCard, cards_path, kept_cards
from runtime.hardware.rates import RateCache, link_key
from runtime.protocol.machine import DeviceReport, Measured

GIB = 1 << 30


def card(device: str, *, is_known: bool = False, is_simulated: bool = False) -> DeviceReport:
    rate = Measured(value=1e10, method="measured") if is_known else None
    return DeviceReport(
        device=device,
        name="Card",
        total_bytes=GIB,
        free_bytes=GIB,
        is_simulated=is_simulated,
        link_bytes_per_s=rate,
    )


@pytest.mark.parametrize(
    ("devices", "builds", "names"),
    [
        ([], {"cuda"}, []),
        ([], {"hip"}, []),
        ([card("cuda:0"), card("cuda:1", is_known=True)], {"cuda"}, ["cuda:0"]),
        ([card("cuda:0")], set(), []),
        ([card("cuda:0"), card("amd:0")], {"cuda"}, ["cuda:0"]),
        ([card("cuda:0"), card("amd:0")], {"hip"}, ["cuda:0", "amd:0"]),
        ([], {"xpu"}, ["xpu:0"]),
        ([card("xpu:0", is_known=True)], {"xpu"}, []),
        ([card("xpu:1")], {"xpu"}, ["xpu:1"]),
        ([card("simulated:0", is_simulated=True)], {"xpu"}, ["simulated:0"]),
        ([card("simulated:0", is_simulated=True, is_known=True)], {"cuda"}, []),
    ],
)
def test_cards_without_a_link_are_asked_about_where_torch_may_drive_them(
    devices: list[DeviceReport], builds: set[str], names: list[str]
) -> None:
    assert unmeasured_cards(devices, frozenset(builds)) == names


def test_findings_are_kept_for_later_plans(tmp_path: Path) -> None:
    rates_path = tmp_path / "cache" / "rates.json"
    seen = SeenCard("cuda:0", "Card", GIB, GIB)
    rate = Measured(value=1e10, method="measured")
    keep_findings(rates_path, CardFindings([seen], {link_key("cuda:0"): rate}))
    assert kept_cards(cards_path(rates_path)) == [seen]
    kept = RateCache(rates_path).rate(link_key("cuda:0"))
    assert kept is not None
    assert (kept.value, kept.method) == (1e10, "measured")
