"""Phrases about measurements, the drive and budgets."""

import time

import msgspec
import pytest

from app.graphs.series import Totals, total
from app.state.drive_warning import DriveUse, Remedy, RemedyKind, use_of_answer
from app.text import drive_phrases, model_phrases, monitor_phrases, units
from runtime.protocol.plan import PlanKind
from runtime.protocol.telemetry import NoteCode, RuntimeNote
from runtime.protocol.values import EnergyEstimate, EnergyPart, Tier
from tests.gui.text.test_units import plain
from tests.support.drive_values import answer_with, plan_that_reads
from tests.support.monitor_stage import live_sample, loaded_with_device, plan_with_device
from tests.support.window_values import some_plan, some_stats


def test_cost_is_in_the_small_coin_where_it_has_a_name() -> None:
    assert plain(monitor_phrases.cost(0.0006, "€")) == "0.06 ct"
    assert plain(monitor_phrases.cost(0.012, "£")) == "1.20 p"
    assert plain(monitor_phrases.cost(1.2, "€")) == "1.20 €"
    assert plain(monitor_phrases.cost(0.0006, "CHF")) == "0.0006 CHF"


def test_watt_hours_have_digits_that_matter() -> None:
    found = [plain(units.watt_hours(wh)) for wh in (1.71, 0.314, 0.0123)]
    assert found == ["1.7 Wh", "0.31 Wh", "0.012 Wh"]


def test_pointed_expert_is_named_in_words() -> None:
    line = monitor_phrases.pointed_expert(
        layer=11, num_layers=48, expert=86, num_experts=128, tier="RAM", bits=8, uses=14.2
    )
    assert line == "layer 12 of 48 · expert 87 of 128 · RAM · 8 bits · used about 14 times"
    line = monitor_phrases.pointed_expert(
        layer=0, num_layers=1, expert=0, num_experts=1, tier="drive", bits=0, uses=0.0
    )
    assert line == "layer 1 of 1 · expert 1 of 1 · drive · not used in the last minute"


def test_bytes_of_an_expert_are_told_where_they_are_known() -> None:
    assert plain(monitor_phrases.with_bytes("expert 1", 3 << 20)) == "expert 1 · 3 MiB"
    assert monitor_phrases.with_bytes("expert 1", 0) == "expert 1"


def test_hits_of_a_layer_are_told_in_words() -> None:
    line = monitor_phrases.pointed_layer(11, 48, (0.41, 0.55, 0.04))
    assert plain(line) == "layer 12 of 48 · VRAM 41 % · RAM 55 % · drive 4 %"
    line = monitor_phrases.pointed_layer(0, 48, (0.0, 0.0, 0.0))
    assert line == "layer 1 of 48 · not used in the last minute"
    said = monitor_phrases.bars_described([(1.0, 0.0, 0.0), (0.5, 0.2, 0.3)])
    assert plain(said) == "Layer 2 reads most from the drive: 30 % of its look-ups."
    assert monitor_phrases.bars_described([(1.0, 0.0, 0.0)]) == "No layer reads from the drive."
    assert monitor_phrases.bars_described([]) == "No layer reads from the drive."


def test_map_is_described_by_its_tiers() -> None:
    text = monitor_phrases.map_described((1200, 0, 5), is_simulated=True)
    assert text == "Experts: VRAM (simulated) 1,200, drive 5"


def test_map_of_a_model_without_experts_says_so() -> None:
    assert monitor_phrases.map_size(0, 0) == "This model has no experts."
    text = monitor_phrases.map_described((0, 0, 0), is_simulated=False)
    assert text == "This model has no experts."


def test_throughput_unit_fits_the_largest_rate() -> None:
    assert monitor_phrases.throughput_unit(34e9) == (1e9, "GB/s")
    assert monitor_phrases.throughput_unit(3e6) == (1e6, "MB/s")
    # Nothing moves: then the limits beside it are told in the unit that fits them.
    assert monitor_phrases.throughput_unit(0.0) == (1e9, "GB/s")
    assert monitor_phrases.rate_of_limit(34e9, 0, 1e9) == "34"
    assert monitor_phrases.rate_of_limit(0, 52e9, 1e9) == "0 of 52"


def test_power_says_what_is_measured_and_what_is_estimated() -> None:
    assert "Energy is shown" in monitor_phrases.power_line(Totals())
    line = plain(monitor_phrases.power_line(total([live_sample(0)])))
    assert line.startswith("130 W now (") or " W now (graphics card" in line
    assert "processor 38 measured" in line
    assert "rest 16 estimated" in line
    small = msgspec.structs.replace(
        live_sample(0), energy=[EnergyPart(source="battery", joules=0.01, is_measured=True)]
    )
    assert plain(monitor_phrases.power_line(total([small]))) == "0 W now"


def test_token_time_is_split_in_order() -> None:
    seconds = {"other": 0.1, "drive_wait": 0.2, "compute": 0.4, "device": 0.3, "new": 0.0}
    assert plain(monitor_phrases.token_title(20.0)) == "A token takes 50 ms"
    assert plain(monitor_phrases.token_title(0.5)) == "A token takes 2.0 s"
    assert monitor_phrases.token_title(0.0) == "What a token takes"
    assert plain(monitor_phrases.token_parts(seconds, 0.05)) == (
        "graphics card 15 ms · processor 20 ms · waiting for the drive 10 ms · other 5.0 ms"
    )
    assert plain(monitor_phrases.time_shares(seconds)).endswith(
        "waiting for the drive 20 % · other 10 %"
    )
    assert monitor_phrases.token_parts({}, 0.05) == monitor_phrases.time_shares({}) == ""


@pytest.mark.parametrize(
    ("note", "words"),
    [
        (
            RuntimeNote(
                code=NoteCode.BUDGET_CHANGED,
                parameters={"tier": "vram", "old_bytes": 2 << 30, "new_bytes": 1 << 30},
            ),
            "VRAM budget 1.0 GiB, before 2.0 GiB",
        ),
        (
            RuntimeNote(code=NoteCode.CARD_UNPACKS),
            (
                "Triton is not at hand, so the graphics card unpacks weights before each use, which"
                " moves several times the bytes. Installing it beside torch changes that."
            ),
        ),
        (
            RuntimeNote(code=NoteCode.CARD_STARTS_PIECES),
            (
                "Starting a layer's fixed part as one does not work on this graphics card, so its"
                " pieces are started one by one: slower, and the same answers."
            ),
        ),
        (
            RuntimeNote(
                code=NoteCode.CARD_FULL, parameters={"old_bytes": 2 << 30, "new_bytes": 1 << 30}
            ),
            (
                "The graphics card had less memory than thought: its budget is 1.0 GiB now, before"
                " 2.0 GiB"
            ),
        ),
        (
            RuntimeNote(
                code=NoteCode.EXPERTS_LOADED, parameters={"num_experts": 720, "seconds": 3.0}
            ),
            "Every expert is in its place, after 3.0 s; read in the background: 720",
        ),
        (
            RuntimeNote(code=NoteCode.TOPIC_CHANGED, parameters={"num_experts": 1}),
            "Topic changed: 1 expert exchanged",
        ),
        (
            RuntimeNote(
                code=NoteCode.MEMORY_GIVEN_BACK,
                parameters={"old_bytes": 3 << 30, "new_bytes": 1 << 30},
            ),
            "Larder gave back 2.0 GiB of RAM because the PC ran short; 1.0 GiB are left",
        ),
        (
            RuntimeNote(
                code=NoteCode.MEMORY_TAKEN_AGAIN,
                parameters={"old_bytes": 1 << 30, "new_bytes": 3 << 30},
            ),
            "There is room again: Larder took back 2.0 GiB of RAM and has 3.0 GiB",
        ),
        (
            RuntimeNote(
                code=NoteCode.DRIVE_STALLED,
                parameters={
                    "file": "/m/a.safetensors",
                    "offset_bytes": 4096,
                    "layer": 3,
                    "expert": 17,
                    "seconds": 5.0,
                },
            ),
            (
                "The drive has not answered for 5.0 s: expert 17 of layer 3, at byte 4,096 of"
                " /m/a.safetensors. Check that it is connected and not busy with something else."
            ),
        ),
    ],
)
def test_note_has_time_of_day_and_words(note: RuntimeNote, words: str) -> None:
    at_s = time.mktime((2026, 3, 1, 14, 2, 0, 0, 0, -1))
    assert plain(monitor_phrases.note_line(at_s, note)) == f"14:02 {words}"


def test_every_note_code_has_words() -> None:
    for code in NoteCode:
        assert len(monitor_phrases.note_line(0.0, RuntimeNote(code=code))) > 12


def some_use(wait: float, drive_j: float = 0.0, drive_bytes: float = 4e9) -> DriveUse:
    return DriveUse(
        num_tokens=20,
        drive_bytes=drive_bytes,
        wait_s=wait,
        total_s=1.0,
        drive_j=drive_j,
        total_j=100,
    )


def test_drive_phrases_say_amount_share_and_cost() -> None:
    assert plain(drive_phrases.drive_short(some_use(0.62))) == "waiting for the drive 62 %"
    assert plain(drive_phrases.drive_short(some_use(0.1, 31))) == "drive takes 31 % of the energy"
    text = plain(drive_phrases.warning_text(some_use(0.62, 5), 0.30, "€"))
    assert text == (
        "20.0 GB per 100 tokens, waiting for it takes 62 % of the time · "
        "1000 tokens take 1.4 Wh, 5 % of it for reading, and cost 0.04 ct · "
        "from RAM they would take about 0.51 Wh and cost 0.02 ct (estimated)"
    )
    free = DriveUse(num_tokens=20, drive_bytes=4e11, wait_s=1, total_s=1, drive_j=0, total_j=0)
    assert "cost" not in drive_phrases.warning_text(free, 0.3, "€")
    assert "per 1000" not in drive_phrases.answer_note(free, 0.3, "€")
    assert "2000 GB" in plain(drive_phrases.answer_note(free, 0.3, "€"))
    quiet = drive_phrases.drive_card(some_use(0.62), is_warned=False, is_quiet=True)
    assert plain(quiet).endswith("takes 62 % of the time.")
    assert drive_phrases.drive_card(some_use(0, 0, 0), is_warned=False) == (
        "Nothing is read from the drive."
    )


def test_remedies_say_their_effect() -> None:
    assert "Working out" in drive_phrases.remedies_text(())
    more = Remedy(RemedyKind.MORE_MEMORY, plan_with_device())
    assert plain(drive_phrases.remedy_text(more)) == (
        "With 7.4 GiB VRAM and 9.2 GiB RAM about 19–24 tokens/s, reading 5.6 GB per 100 tokens."
    )
    lower = Remedy(RemedyKind.LOWER_BITS, plan_that_reads(0, PlanKind.FOUR_BIT, rate=31))
    assert plain(drive_phrases.remedy_text(lower)) == (
        "The plan “4 bits” about 31 tokens/s, reading nothing."
    )
    smaller = Remedy(RemedyKind.SMALLER_MODEL)
    assert "smaller model would" in drive_phrases.remedy_text(smaller)
    both = drive_phrases.remedies_text((lower, smaller))
    assert both.endswith("reading nothing.\nA smaller model would read less too.")
    to_write = msgspec.structs.replace(
        plan_that_reads(0, PlanKind.FOUR_BIT, rate=31), needs_prepare=True, bytes_to_write=3 << 30
    )
    unwritten = Remedy(RemedyKind.LOWER_BITS, to_write)
    assert plain(drive_phrases.remedy_text(unwritten)).endswith("; writes 3.0 GiB once.")
    buttons = [drive_phrases.remedy_button(each) for each in (more, lower, unwritten, smaller)]
    assert len(set(buttons)) == 4


def test_plan_effect_names_tiers_that_hold_something() -> None:
    ratios = [(Tier.VRAM, 0.0), (Tier.RAM, 0.6), (Tier.DRIVE, 0.4)]
    text = plain(drive_phrases.plan_effect(ratios, None, 0, is_simulated=False))
    assert text == "Experts: 60 % in RAM, 40 % on the drive"


def test_placement_names_experts_and_what_every_token_uses() -> None:
    text = plain(model_phrases.placement(loaded_with_device().tiers, some_plan()))
    assert "RAM: 3,200 experts, 8.6 GiB" in text
    assert text.endswith("Beside the experts, what every token uses: 70 MiB in RAM")
    assert "Beside" not in model_phrases.placement(loaded_with_device().tiers, None)
    empty = msgspec.structs.replace(some_plan(), ram_parts={})
    assert "Beside" not in model_phrases.placement(loaded_with_device().tiers, empty)


def test_watts_of_an_answer_are_its_energy_by_its_time() -> None:
    assert plain(model_phrases.watts(some_stats())) == "21 W"
    unknown = msgspec.structs.replace(some_stats(), energy=EnergyEstimate(total_j=None, parts=[]))
    assert model_phrases.watts(unknown) == ""
    assert use_of_answer(answer_with(0.5)).wait_ratio == 0.5
