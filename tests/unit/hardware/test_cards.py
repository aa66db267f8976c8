"""Cards as torch saw them beside what NVML tells: agreement, disagreement, and what counts."""

import subprocess
import sys
from pathlib import Path

import pytest

from runtime.hardware.cards import (
    SeenCard,
    beside_told,
    cards_path,
    keep_cards,
    kept_cards,
    with_seen,
)
from runtime.hardware.machine import describe_machine
from runtime.protocol.machine import DeviceReport
from tests.support.fake_nvml import fake_nvml
from tests.support.fake_systems import GIB

NVML = DeviceReport(
    device="cuda:0", name="New Card", total_bytes=8 * GIB, free_bytes=7 * GIB, note="NVML"
)


def seen(total_gib: float = 8, free_gib: float | None = 7, told_gib: float | None = 7) -> SeenCard:
    """Return what torch saw, and what NVML told of the free memory then."""
    free_bytes = None if free_gib is None else int(free_gib * GIB)
    told_bytes = None if told_gib is None else int(told_gib * GIB)
    return SeenCard("cuda:0", "New Card", int(total_gib * GIB), free_bytes, told_bytes)


@pytest.mark.parametrize(
    "card", [seen(), seen(7.7, 6.9), seen(free_gib=None), seen(told_gib=None, free_gib=1)]
)
def test_card_that_torch_sees_as_nvml_does_is_told_as_agreed(card: SeenCard) -> None:
    (report,) = with_seen([NVML], [card])
    assert (report.total_bytes, report.free_bytes) == (8 * GIB, 7 * GIB)
    assert report.note == "NVML; torch agrees"


@pytest.mark.parametrize(
    ("card", "total_gib", "free_gib", "note"),
    [
        (seen(4, None), 4, 4, "torch found 4.0 GiB where NVML tells 8.0 GiB"),
        (seen(16, None), 8, 7, "torch found 16.0 GiB where NVML tells 8.0 GiB"),
        (seen(8, 5, 6.5), 8, 5.5, "torch found 5.0 GiB free where NVML told 6.5 GiB"),
        (seen(8, 6.5, 5), 8, 7, "torch found 6.5 GiB free where NVML told 5.0 GiB"),
    ],
)
def test_card_of_two_minds_has_the_smaller_figure_and_says_both(
    card: SeenCard, total_gib: float, free_gib: float, note: str
) -> None:
    (report,) = with_seen([NVML], [card])
    assert (report.total_bytes, report.free_bytes) == (total_gib * GIB, free_gib * GIB)
    assert note in report.note
    assert report.note.startswith("NVML; ")


def test_another_card_under_the_same_number_is_told() -> None:
    other = SeenCard("cuda:0", "Old Card", 4 * GIB, 4 * GIB)
    (report,) = with_seen([NVML], [other])
    assert report.total_bytes == 8 * GIB
    assert report.note == "NVML; torch found another card here, Old Card"


def test_card_that_torch_alone_sees_is_there() -> None:
    cards = with_seen([], [seen(), SeenCard("cuda:1", "Second", 4 * GIB, None)])
    assert [(card.device, card.total_bytes, card.free_bytes) for card in cards] == [
        ("cuda:0", 8 * GIB, 7 * GIB),
        ("cuda:1", 4 * GIB, 4 * GIB),
    ]
    assert all(card.note.startswith("torch, when the engine last looked") for card in cards)


def test_amd_card_gets_the_number_that_torch_gives_it() -> None:
    small, large = (
        DeviceReport(
            device=f"amd:{number}",
            name="AMD graphics",
            total_bytes=gib * GIB,
            free_bytes=gib * GIB // 2,
            note="amdgpu",
        )
        for number, gib in enumerate((1, 8))
    )
    cards = with_seen([small, large], [seen(7.9, None)])
    assert [(card.device, card.name, card.free_bytes) for card in cards] == [
        ("amd:0", "AMD graphics", GIB // 2),
        ("cuda:0", "New Card", 4 * GIB),
    ]
    assert cards[1].note == "amdgpu; torch agrees"


def test_kept_cards_are_what_was_last_seen(tmp_path: Path) -> None:
    path = cards_path(tmp_path / "cache" / "rates.json")
    keep_cards(path, [])
    assert not path.exists()
    keep_cards(path, beside_told([seen(told_gib=None)], [NVML]))
    assert kept_cards(path) == [seen(told_gib=7)]
    keep_cards(path, [])
    assert kept_cards(path) == []
    assert [entry.name for entry in path.parent.iterdir()] == ["cards.json"]


@pytest.mark.parametrize(
    "text", ["", "[]", '{"cards": [{"device": 1}]}', "null", " " * 2_000_000, "[" * 100_000]
)
def test_kept_cards_of_a_damaged_file_are_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "cards.json"
    path.write_text(text, encoding="utf-8")
    assert kept_cards(path) == []


def test_keep_cards_where_nothing_can_be_written_goes_on(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "cards.json"
    keep_cards(path, [seen()])
    assert kept_cards(path) == [seen()], "as long as the process lives"


def test_describe_machine_compares_nvml_with_what_torch_saw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml())
    rates_path = tmp_path / "rates.json"
    second = SeenCard("cuda:1", "Old Card", 9 * GIB, None)
    keep_cards(cards_path(rates_path), [seen(4, None), second])

    cards = describe_machine([], {}, rates_path=rates_path).devices[:2]

    assert [card.total_bytes for card in cards] == [4 * GIB, 9 * GIB]
    assert "torch found 4.0 GiB where NVML tells 8.0 GiB" in cards[0].note
    assert "torch agrees" in cards[1].note


def test_describing_and_planning_with_seen_cards_never_import_torch(tmp_path: Path) -> None:
    rates_path = tmp_path / "rates.json"
    keep_cards(cards_path(rates_path), [seen()])
    script = (
        "import sys; from pathlib import Path;"
        "from runtime.service.local_planning import LocalPlanning;"
        "from runtime.service.prepared_places import PreparedPlaces;"
        "here = Path(sys.argv[1]);"
        "planning = LocalPlanning(PreparedPlaces(here / 'data'), here / 'rates.json');"
        "machine = planning.describe([]); planning.inspect(str(here));"
        "assert 'torch' in [card for card in machine.devices if card.device == 'cuda:0'][0].note;"
        "sys.exit('torch' in sys.modules)"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
