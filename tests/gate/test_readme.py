"""What the README tells people to expect is what the program forecasts."""

from __future__ import annotations

import re

import pytest

from console import ROOT

PLANS = ROOT / "tests" / "golden" / "plans"
PCS = {
    "8 GB, no card": "laptop-8",
    "16 GB, card of 6 GB": "laptop-16-gpu-6",
    "32 GB, card of 8 GB": "desktop-32-gpu-8",
    "64 GB, card of 16 GB": "desktop-64-gpu-16",
}
MODELS = (
    "ibm-granite--granite-3.1-1b-a400m-instruct",
    "openai--gpt-oss-20b",
    "Qwen--Qwen3-30B-A3B",
    "openai--gpt-oss-120b",
)
BITS = {"four_bit": ", 4 bits", "six_bit": ", 6 bits", "eight_bit": ", 8 bits", "exact": ""}


def shown(rate: str) -> str:
    """A rate as the table has it: whole numbers, below 3 one place after the point."""
    number = float(rate)
    return f"{number:.0f}" if number >= 2.95 else f"{number:.1f}"


def expected(pc: str, model: str) -> str:
    """What the recommended plan of a model on a PC comes to."""
    text = (PLANS / f"{pc}.txt").read_text(encoding="utf-8")
    block = text.partition(f"\n{model}\n")[2].partition("\n\n")[0]
    line = next((line for line in block.splitlines() if line.startswith("* ")), "")
    if not line:
        return "not enough RAM"
    low, high = re.findall(r"\(([\d.]+) to ([\d.]+)\)", line)[0]
    drive = ", drive" if " drive " in line else ""
    return f"{shown(low)}–{shown(high)}{BITS[line.split()[2]]}{drive}"


@pytest.mark.parametrize(("name", "pc"), PCS.items())
def test_table_of_the_readme_is_what_is_forecast(name: str, pc: str) -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    (row,) = (line for line in lines if line.startswith(f"| {name} |"))
    cells = [cell.strip() for cell in row.strip("|").split("|")[1:]]
    assert cells == [expected(pc, model) for model in MODELS]
