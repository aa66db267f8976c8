"""Sentences: one for each code, with a next step, whatever the report holds."""

import dataclasses
import itertools
import math
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import severity_of
from runtime.plan.planner import plan_kinds
from runtime.protocol.errors import ErrorCode, ErrorReport
from runtime.protocol.machine import DeviceReport
from runtime.protocol.plan import Reason, ReasonCode
from runtime.protocol.sentences import (
    ERROR_TEMPLATES,
    REASON_TEMPLATES,
    reason_sentence,
    sentence,
    template,
)
from runtime.protocol.values import Budgets, WeightFormat
from runtime.protocol.wording import fill, format_bytes, places
from tests.support.plan_cases import GIB, facts, machine, spec

PARAMETERS = {
    "folder_not_found": "folder",
    "not_a_model": "folder reason",
    "several_models": "folder num_models names",
    "copy_without_model": "folder name",
    "file_unreadable": "file reason",
    "file_invalid": "file reason",
    "config_invalid": "file field found expected",
    "architecture_unsupported": "architecture supported",
    "quantization_unsupported": "method supported",
    "shard_missing": "file num_tensors first_tensor",
    "shard_misnamed": "file found",
    "index_stale": "file tensor expected found num_tensors",
    "shard_truncated": "file found_bytes expected_bytes",
    "shard_invalid": "file reason",
    "tensor_missing": "tensor num_missing",
    "weights_not_finite": "place",
    "tensor_mismatched": "file tensor found expected",
    "tokenizer_missing": "file",
    "tokenizer_invalid": "file reason",
    "chat_template_missing": "folder",
    "chat_template_invalid": "reason",
    "ram_budget_too_small": "budget_bytes needed_bytes",
    "ram_not_free": "free_bytes needed_bytes",
    "vram_budget_too_small": "ram_bytes needed_bytes device budget_bytes",
    "vram_not_there": "device",
    "vram_full": "device",
    "device_lost": "device",
    "context_too_long": "asked_tokens max_tokens",
    "not_prepared": "folder",
    "used_in_place": "folder",
    "plan_outdated": "folder",
    "disk_full": "folder needed_bytes free_bytes",
    "disk_not_writable": "folder reason",
    "store_invalid": "folder reason",
    "store_damaged": "file offset_bytes part",
    "drive_read_failed": "file offset_bytes reason",
    "prepare_failed": "folder reason",
    "not_calibrated": "folder name",
    "nothing_to_prepare": "folder",
    "copy_place_refused": "folder reason",
    "copy_busy": "folder",
    "copy_write_failed": "folder reason",
    "copy_miswritten": "file",
    "copy_lost": "folder",
    "prompt_too_long": "prompt_tokens context_tokens",
    "engine_busy": "",
    "no_model_loaded": "",
    "model_already_loaded": "name",
    "setting_invalid": "name found expected",
    "machine_file_invalid": "file place found expected",
    "text_invalid": "file reason min_words",
    "conversation_invalid": "reason",
    "engine_missing": "reason",
    "out_of_memory": "",
    "protocol_mismatched": "found expected",
    "frame_invalid": "reason",
    "runtime_not_started": "reason",
    "runtime_ended": "exit_status reason",
    "runtime_silent": "seconds",
    "internal": "",
    "hub_offline": "",
    "hub_unreachable": "host reason",
    "hub_answer_invalid": "host reason",
    "hub_model_missing": "host model",
    "hub_model_gated": "host model",
    "hub_model_unusable": "model reason",
    "download_mismatched": "file host",
    "download_place_taken": "folder",
    "download_busy": "model",
    "download_write_failed": "folder reason",
    "update_unreachable": "host reason",
    "update_invalid": "host reason",
    "update_unsigned": "host",
    "engine_parts_unreachable": "host reason",
    "engine_parts_unusable": "reason",
}
NEXT_STEPS = (
    "Change", "Check", "Choose", "Close", "Delete", "Download", "Free", "Install", "Plan",
    "Prepare", "Raise", "Rename", "Restart", "Shorten", "Start", "Try", "Unload", "Wait",
)  # fmt: skip


def error(code: ErrorCode, **parameters: str | float) -> ErrorReport:
    return ErrorReport(code=code, severity=severity_of(code), parameters=parameters)


@pytest.mark.parametrize("code", ErrorCode)
def test_template_every_error_ends_with_a_next_step(code: ErrorCode) -> None:
    text = template(code)
    last = re.split(r"(?<=[.”]) (?=[A-Z])", text)[-1]
    assert last.startswith(NEXT_STEPS)
    assert last != text
    assert text.endswith(".")
    assert "!" not in text
    assert len(text) < 250


@pytest.mark.parametrize("code", ErrorCode)
def test_template_every_error_uses_the_agreed_parameters(code: ErrorCode) -> None:
    assert places(template(code)) == set(PARAMETERS[code.value].split())


@pytest.mark.parametrize("code", ReasonCode)
def test_template_every_reason_is_a_plain_sentence(code: ReasonCode) -> None:
    text = template(code)
    assert text.endswith(".")
    assert "!" not in text


def test_templates_are_complete() -> None:
    assert set(ERROR_TEMPLATES) == set(ErrorCode)
    assert set(REASON_TEMPLATES) == set(ReasonCode)


def test_reason_sentence_of_every_plan_has_all_its_values() -> None:
    card = DeviceReport(device="cuda:0", name="Card", total_bytes=GIB, free_bytes=GIB)
    of = spec()
    known = facts(of, prepared=(WeightFormat.Q4A_G32,))
    few_bits = msgspec.structs.replace(known.report, published_bits=8)
    widened = dataclasses.replace(known, report=few_bits)
    blocks = msgspec.structs.replace(known.report, gguf_kinds=["Q4_K", "IQ4_XS"])
    repacked = dataclasses.replace(known, report=blocks)
    seen: set[ReasonCode] = set()
    for here in (
        machine(devices=(card,), kernels="reference"),
        machine(limit_gib=12),
        machine(total_gib=900, available_gib=800),
    ):
        for ram_bytes in (None, 5 * GIB, 6 * GIB, 10 * GIB):
            budgets = Budgets(ram_bytes=ram_bytes)
            plans = [plan_kinds(each, here, budgets) for each in (known, widened, repacked)]
            for reason in itertools.chain(*(plan.reasons for plan in itertools.chain(*plans))):
                seen.add(reason.code)
                assert places(template(reason.code)) <= set(reason.parameters)
                assert "?" not in reason_sentence(reason)
    on_devices = {
        ReasonCode.FITS_IN_VRAM,
        ReasonCode.HOT_EXPERTS_IN_VRAM,
        ReasonCode.VRAM_LIMITED_BY_FREE,
        ReasonCode.VRAM_LIMITED_BY_BUDGET,
        ReasonCode.VRAM_TOO_SMALL,
        ReasonCode.KV_IN_RAM,
    }
    # Those of answers, of what a model did before, of memory that other programs need and of the
    # recommendation have their own tests.
    of_the_past = {
        ReasonCode.RAM_GIVEN_BACK,
        ReasonCode.RAM_TAKEN_AGAIN,
        ReasonCode.WHOLE_IN_MEMORY,
        ReasonCode.BEST_IN_MEMORY,
        ReasonCode.BEST_NEARLY_IN_MEMORY,
        ReasonCode.BEST_BY_SPEED,
        ReasonCode.MORE_EXACT_SLOWER,
        ReasonCode.MORE_EXACT_TOO_LARGE,
        ReasonCode.SMALLER_LESS_EXACT,
        ReasonCode.ONLY_CHOICE,
        ReasonCode.OTHER_GPU_UNUSED,
        ReasonCode.HITS_FROM_OWN,
        ReasonCode.HITS_ASSUMED,
        ReasonCode.SUITS_WELL,
        ReasonCode.SUITS_FAIRLY,
        ReasonCode.SUITS_BADLY,
        ReasonCode.RAN_BEFORE,
        ReasonCode.FASTER_THAN_FORECAST,
        ReasonCode.SLOWER_THAN_FORECAST,
        ReasonCode.SLOWER_THAN_USUAL,
    }
    assert seen == set(ReasonCode) - on_devices - of_the_past


def test_sentence_has_numbers_and_units() -> None:
    report_ = error(
        ErrorCode.RAM_BUDGET_TOO_SMALL, budget_bytes=3 * GIB, needed_bytes=int(4.26 * GIB)
    )
    assert sentence(report_) == (
        "The RAM budget is 3.0 GiB, but this plan needs at least 4.3 GiB. Raise the budget, or"
        " choose a plan with fewer bits."
    )


def test_sentence_amounts_that_read_the_same_are_exact() -> None:
    report_ = error(
        ErrorCode.SHARD_TRUNCATED, file="a", found_bytes=4 * GIB - 1, expected_bytes=4 * GIB
    )
    assert "4,294,967,295 bytes of 4,294,967,296 bytes" in sentence(report_)


def test_sentence_position_in_a_file_is_exact() -> None:
    report_ = error(
        ErrorCode.STORE_DAMAGED, file="experts.bin", offset_bytes=1234567, part="layer 3, expert 17"
    )
    assert "at byte 1,234,567 (layer 3, expert 17)" in sentence(report_)


def test_sentence_reason_with_full_stop_has_one() -> None:
    assert "not JSON. Download" in sentence(
        error(ErrorCode.TOKENIZER_INVALID, file="f", reason="it is not JSON.")
    )
    assert "“Roles must alternate”." in sentence(
        error(ErrorCode.CONVERSATION_INVALID, reason="Roles must alternate.")
    )


@pytest.mark.parametrize("code", ErrorCode)
def test_sentence_missing_parameters_show_as_unknown(code: ErrorCode) -> None:
    assert sentence(error(code)).count("?") == len(re.findall(r"\{", template(code)))


@given(
    st.sampled_from(list(ErrorCode)),
    st.dictionaries(
        st.sampled_from(sorted({name for names in PARAMETERS.values() for name in names.split()})),
        st.text() | st.integers() | st.floats(),
    ),
)
def test_sentence_any_parameters_never_fails(
    code: ErrorCode, parameters: dict[str, str | int | float]
) -> None:
    text = sentence(error(code, **parameters))
    assert text
    assert "\n" not in text
    assert len(text) < 1600


def test_sentence_braces_in_a_value_are_left_alone() -> None:
    assert "{reason}" in sentence(error(ErrorCode.NOT_A_MODEL, folder="{reason}", reason="x"))


def test_fill_long_value_is_cut() -> None:
    assert fill("{reason}", {"reason": "word " * 1000}).endswith("…")
    assert fill("{reason}", {"reason": " \n"}) == "?"


def test_fill_floats_have_one_decimal() -> None:
    assert fill("{seconds} s", {"seconds": 5.04}) == "5.0 s"


def test_reason_sentence_missing_parameters_show_as_unknown() -> None:
    assert reason_sentence(Reason(code=ReasonCode.WRITES_ONCE)) == (
        "A prepared copy of ? is written once."
    )


@pytest.mark.parametrize(
    ("num_bytes", "text"),
    [
        (0, "0 bytes"),
        (1023, "1,023 bytes"),
        (1536, "1.5 KiB"),
        (1024**2, "1.0 MiB"),
        (300 * 1024**2, "300 MiB"),
        (1.5 * GIB, "1.5 GiB"),
        (1234 * GIB, "1,234 GiB"),
        (-3 * GIB, "-3.0 GiB"),
        (math.inf, "inf GiB"),
        ("many", "many"),
    ],
)
def test_format_bytes_uses_binary_units(num_bytes: float | str, text: str) -> None:
    assert format_bytes(num_bytes) == text


def test_sentence_of_a_silent_process_says_that_it_was_ended() -> None:
    text = sentence(error(ErrorCode.RUNTIME_SILENT, seconds=31))
    assert "31 seconds and was ended" in text
    assert "Wait" not in text
