"""Sentences with numbers and names in them."""

import msgspec
import pytest

from app.state.chat_values import ChatNotice
from app.state.settings_file import SettingNotice, SettingProblem
from app.text import phrases, start_words, words
from app.text.errors import reason_text, sentence
from app.text.notices import chat_notice, setting_notice
from runtime.protocol.errors import ErrorCode, ErrorReport, Severity
from runtime.protocol.model import ModelReport, TierShare
from runtime.protocol.plan import PlanChoice, PlanKind, Reason, ReasonCode
from runtime.protocol.values import Tier
from tests.gui.text.test_units import plain
from tests.support.window_values import (
    some_error,
    some_forecast,
    some_plan,
    some_report,
    some_stats,
    some_tiers,
)


def test_every_tier_and_plan_has_a_name() -> None:
    assert [phrases.tier_name(tier) for tier in Tier] == ["VRAM", "RAM", "drive"]
    assert len({phrases.plan_name(kind) for kind in PlanKind}) == len(PlanKind)


def test_a_plan_has_its_name_before_its_bits_and_says_what_they_do() -> None:
    exact, eight = some_plan(), some_plan(PlanKind.EIGHT_BIT)
    assert phrases.plan_title(exact) == "Exact"
    assert phrases.plan_title(eight) == "8 bits"
    said = {
        choice: phrases.plan_title(msgspec.structs.replace(eight, choice=choice))
        for choice in PlanChoice
    }
    assert said == {
        PlanChoice.EXACT: "8 bits",
        PlanChoice.BALANCED: "Balanced · 8 bits",
        PlanChoice.FITS_IN_RAM: "Fits in RAM · 8 bits",
        PlanChoice.SMALLEST: "Smallest · 8 bits",
    }
    notes = [
        phrases.quality_line(msgspec.structs.replace(eight, reasons=[Reason(code=code)]))
        for code in (
            ReasonCode.ANSWERS_NEARLY_AS_PUBLISHED,
            ReasonCode.ANSWERS_DIFFER_LITTLE,
            ReasonCode.ANSWERS_DIFFER,
            ReasonCode.ANSWERS_DIFFER_MUCH,
        )
    ]
    assert notes == [
        "answers nearly as published",
        "answers about as good",
        "worse answers",
        "clearly worse answers",
    ]
    fast = msgspec.structs.replace(some_forecast(), prompt_tokens_per_s=120.0)
    line = plain(phrases.plan_line(some_plan(forecast=fast)))
    assert line.endswith("answers as published · prompts at about 120 tokens/s")


def test_tiers_that_hold_nothing_are_left_out() -> None:
    empty = TierShare(tier=Tier.VRAM, device="cuda:0", num_experts=0, bytes=0)
    line = plain(phrases.tiers_line([empty, *some_tiers()]))
    assert line == "200 MiB RAM · 70 MiB drive"
    assert plain(phrases.tier_tooltip(some_tiers()[0])) == "RAM: 24 experts, 200 MiB"


def test_model_line_says_what_is_known() -> None:
    line = plain(phrases.model_line(some_report()))
    assert "135 million weights, 40 million used per token" in line
    assert "4 layers × 8 experts, 2 per token" in line
    assert line.endswith("270 MiB · Apache-2.0")
    broken = ModelReport(
        folder="/m", name="m", model_type="", fingerprint="", licence="", problems=[some_error()]
    )
    assert phrases.model_line(broken) == ""


def test_plan_line_says_what_is_written_and_what_it_costs() -> None:
    exact = plain(phrases.plan_line(some_plan()))
    assert exact.endswith("writes nothing · answers as published")
    eight = plain(phrases.plan_line(some_plan(PlanKind.EIGHT_BIT, needs_prepare=True)))
    assert eight.endswith("writes 100 MiB once · answers nearly as published")
    costly = msgspec.structs.replace(some_forecast(), joules_per_token=7.2)
    assert plain(phrases.plan_line(some_plan(forecast=costly))).endswith(
        "answers as published · about 2.0 Wh per 1000 tokens"
    )
    budget = plain(phrases.ram_budget_line(some_plan()))
    for amount in ("200 MiB", "250 MiB", "120 MiB", "270 MiB"):
        assert amount in budget


def test_forecast_is_a_band_or_nothing() -> None:
    assert plain(phrases.forecast(some_forecast())) == "19–24 tokens/s"
    assert phrases.forecast_in_strip(some_forecast()) == "forecast 19–24"
    assert phrases.forecast(None) == phrases.forecast_in_strip(None) == ""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((1 << 29, 1 << 30, float(1 << 28), 2.0), "512 MiB of 1.0 GiB · 256 MiB/s · 2.0 s left"),
        ((0, 0, 0.0, None), ""),
    ],
)
def test_progress_line_leaves_out_what_is_not_known(
    arguments: tuple[int, int, float, float | None], expected: str
) -> None:
    assert plain(phrases.progress_line(*arguments)) == expected


def test_stats_line_has_rate_first_token_hits_and_energy() -> None:
    assert plain(phrases.stats_line(some_stats())) == (
        "21.4 tokens/s · prompt 57.0 tokens/s · first token 0.8 s · "
        "experts from RAM 98 %, drive 2 % · 0.010 Wh"
    )
    assert phrases.hits_line([]) == ""
    assert "Wh" not in phrases.stats_line(some_stats(energy_j=None))
    kept = msgspec.structs.replace(some_stats(), reused_tokens=99)
    assert "prompt" not in phrases.stats_line(kept)


def test_stats_tooltip_puts_the_forecast_beside_what_was_measured() -> None:
    lines = phrases.stats_tooltip(some_stats(predicted=some_forecast())).splitlines()
    assert plain(lines[1]) == "20 tokens written at 21.4 tokens/s"
    assert plain(lines[2]) == "expected were 19–24 tokens/s"
    assert len(phrases.stats_tooltip(some_stats()).splitlines()) == len(lines) - 1


def test_short_phrases_have_their_numbers() -> None:
    assert plain(phrases.context_line(1204, 16384)) == "1,204 of 16,384 tokens"
    assert "512 of 3,000 tokens" in plain(phrases.prompt_line(512, 3000))
    assert plain(phrases.prompt_line(512, 3000, 40.0)).endswith("tokens · 40 s left")
    assert plain(phrases.prompt_line(512, 3000, 0.4)).endswith("tokens")
    assert plain(phrases.thought_for(3.2)) == "Thought for 3.2 s"
    assert phrases.variant_of(1, 3) == "2/3"
    assert plain(phrases.library_summary(1, 71 << 30)) == "1 model · 71.0 GiB"
    assert phrases.library_summary(3, 0).startswith("3 models")
    assert plain(phrases.measured(21.0)) == "21.0 tokens/s measured"
    assert phrases.on_this_pc("Demo") == "Demo on this PC"


@pytest.mark.parametrize("notice", ChatNotice)
def test_every_chat_notice_has_its_sentence(notice: ChatNotice) -> None:
    text = chat_notice(notice, "/place {x}")
    assert text.endswith(".")
    assert ("/place {x}" in text) == (notice is not ChatNotice.SAVED_AGAIN)


@pytest.mark.parametrize("problem", SettingProblem)
def test_every_setting_notice_has_its_sentence(problem: SettingProblem) -> None:
    text = setting_notice(SettingNotice(problem, "theem", "theme"))
    assert "theem" in text
    assert text[-1] in ".?"
    assert "theme" in text


def test_unknown_setting_without_a_likely_one_is_not_guessed() -> None:
    text = setting_notice(SettingNotice(SettingProblem.UNKNOWN, "zzz"))
    assert "did you mean" not in text


def test_sentences_for_the_terminal_name_what_they_are_about() -> None:
    assert "3.9.1" in start_words.python_too_old("3.9.1")
    assert "no screen" in start_words.no_screen("no screen")
    assert "/demo" in start_words.no_demo("/demo")


@pytest.mark.parametrize("code", ErrorCode)
def test_every_error_of_the_window_has_a_sentence(code: ErrorCode) -> None:
    text = sentence(ErrorReport(code=code, severity=Severity.MODEL))
    assert text
    assert "!" not in text


def test_error_sentence_has_the_parameters() -> None:
    assert "/models/tiny" in sentence(some_error())


@pytest.mark.parametrize("code", ReasonCode)
def test_every_reason_has_a_sentence(code: ReasonCode) -> None:
    assert reason_text(Reason(code=code))


def test_fixed_words_are_whole_and_calm() -> None:
    areas = [item for item in vars(words).values() if isinstance(item, type)]
    found = [getattr(area, name) for area in areas for name in vars(area) if name.isupper()]
    assert len(found) > 100
    for text in found:
        assert text.strip() == text != ""
        assert "!" not in text
        assert "  " not in text.replace(".  ", "")
