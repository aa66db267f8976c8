"""The page of models is what its command writes, and says that every family is exact."""

import dataclasses

from tests.support.models_page import (
    FORMATS,
    NUM_GREEDY_TOKENS,
    PAGE,
    Parity,
    family_names,
    parse,
    render,
)

TOLERANCE = 1e-3
STACKED = {"gemma4", "gemma4_text", "gpt_oss", "granitemoe", "qwen3_vl_moe"}


def test_models_page_is_what_the_command_writes() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert render(parse(page)) == page


def test_models_page_has_every_family_in_every_format_exact() -> None:
    table = parse(PAGE.read_text(encoding="utf-8"))
    assert sorted(table) == family_names()
    for name, cells in table.items():
        assert tuple(cells) == tuple(FORMATS)
        missing = {key for key, cell in cells.items() if cell is None}
        without = {"fp8", "int4", "gptq", "awq"} if name in STACKED else set()
        assert missing == without | (set() if name == "gpt_oss" else {"mxfp4"})
        for cell in filter(None, cells.values()):
            assert float(cell.greatest_difference) < TOLERANCE
            assert cell.num_equal_tokens == NUM_GREEDY_TOKENS


def test_models_page_figures_survive_writing_and_reading() -> None:
    other = Parity("3e-07", 12)
    table = {
        name: {key: None if key == "f16" else other for key in FORMATS} for name in family_names()
    }
    assert parse(render(table)) == table
    worse = dataclasses.replace(other, num_equal_tokens=11)
    assert parse(render({**table, "mixtral": dict.fromkeys(FORMATS, worse)})) != table
