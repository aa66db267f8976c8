"""The process that measures links of cards, as the runtime starts it."""

import json
from pathlib import Path

import pytest

from runtime.hardware.profile import MACHINE_VARIABLE
from runtime.hardware.rates import RateCache, link_back_key, link_key
from runtime.service import measuring
from runtime.service.card_links import CardLinks
from runtime.service.local_planning import LocalPlanning
from runtime.service.prepared_places import PreparedPlaces

LIMIT_S = 60.0
"""It imports torch, beside other tests."""


def test_the_first_look_at_a_pc_measures_its_card_in_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates_path = tmp_path / "cache" / "rates.json"
    profile = tmp_path / "machine.json"
    device = {"total_gib": 1, "link_gb_per_s": 0.5, "is_link_measured": True}
    profile.write_text(json.dumps({"devices": [device, {"total_gib": 1, "link_gb_per_s": 3}]}))
    monkeypatch.setenv(MACHINE_VARIABLE, str(profile))
    monkeypatch.setattr(measuring, "load_native", lambda: None)
    # A folder in which a person starts it holds nothing that is imported.
    (tmp_path / "torch.py").write_text("raise SystemExit('imported from the working folder')")
    monkeypatch.chdir(tmp_path)
    asking = CardLinks(rates_path, limit_s=LIMIT_S)
    planning = LocalPlanning(PreparedPlaces(tmp_path / "data"), rates_path, card_links=asking)

    measured, stated = planning.describe([]).devices

    rate, back = measured.link_bytes_per_s, measured.link_back_bytes_per_s
    assert rate is not None
    assert back is not None
    # As its link is held back, however busy this PC is.
    assert 0.5e8 < rate.value <= 0.55e9
    assert rate.method.endswith(" MiB copied")
    assert rate.age_s is not None
    assert RateCache(rates_path).rate(link_back_key("simulated:0")) is not None
    assert stated.link_bytes_per_s is not None
    assert (stated.link_bytes_per_s.value, stated.link_bytes_per_s.method) == (3e9, "profile")
    assert RateCache(rates_path).rate(link_key("simulated:1")) is None
