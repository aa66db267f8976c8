"""Energy by source in words, for an answer and for a token."""

import msgspec

from app.text import energy_words, phrases
from runtime.hardware.energy_terms import Work, assumed_parts
from runtime.protocol.values import EnergyEstimate, EnergyPart
from tests.gui.text.test_units import plain
from tests.support.window_values import some_stats


def test_energy_parts_have_names() -> None:
    names = (
        *("rapl:package-0", "rapl:dram", "nvml:0", "battery", "drive-reads", "assumed-watts"),
        *("ram-reads", "link-copies", "x"),
    )
    parts = [EnergyPart(source=name, joules=2.0, is_measured=name == "x") for name in names]
    assert energy_words.energy_parts(parts) == (
        "processor 2.0 J estimated, memory 2.0 J estimated, graphics card 2.0 J estimated, "
        "whole PC 2.0 J estimated, drive 2.0 J estimated, rest 2.0 J estimated, "
        "memory 2.0 J estimated, to the graphics card 2.0 J estimated, x 2.0 J measured"
    )


def test_every_source_that_is_assumed_has_a_name_of_its_own() -> None:
    work = Work(seconds=1, drive_bytes=10**9, ram_bytes=10**9, link_bytes=10**9)
    for part in assumed_parts((), work):
        assert energy_words.energy_part(part.source) != part.source


def test_answer_tells_energy_of_a_token_by_source() -> None:
    parts = [
        EnergyPart(source="rapl:package-0", joules=120.0, is_measured=True),
        EnergyPart(source="assumed-watts", joules=40.0, is_measured=False),
        EnergyPart(source="drive-reads", joules=0.02, is_measured=False),
    ]
    stats = msgspec.structs.replace(
        some_stats(), energy=EnergyEstimate(total_j=160.02, parts=parts), generated_tokens=20
    )
    line = "8.0 J a token: processor 120 J measured, rest 40 J estimated"
    assert line in plain(phrases.stats_tooltip(stats)).splitlines()
    assert energy_words.energy_of_tokens([], 20) == ""
    assert energy_words.energy_of_tokens(parts, 0) == ""
