"""Contrast of the colours, and that they are written in one place only."""

import dataclasses
import itertools
import re
from pathlib import Path

import pytest

from app.theme.palette import (
    CONTRAST_DARK,
    CONTRAST_LIGHT,
    DARK,
    LIGHT,
    TIERS,
    Palette,
    contrast,
)
from app.theme.stylesheet import style_sheet

APP = Path(__file__).resolve().parents[3] / "app"
PALETTES = {
    "light": LIGHT, "dark": DARK, "contrast-light": CONTRAST_LIGHT, "contrast-dark": CONTRAST_DARK
}  # fmt: skip
EVERY_PALETTE = pytest.mark.parametrize("palette", PALETTES.values(), ids=PALETTES)
HIGH = pytest.mark.parametrize("palette", [CONTRAST_LIGHT, CONTRAST_DARK], ids=["light", "dark"])
TEXT_ON_AREA = [
    ("text", area) for area in ("background", "surface", "own", "code", "hover", "error_area")
] + [
    ("dim", "background"),
    ("dim", "surface"),
    ("dim", "code"),
    ("dim", "hover"),
    ("accent_text", "background"),
    ("accent_text", "surface"),
    ("accent_text", "own"),
    ("on_accent", "accent"),
    ("on_accent", "accent_hover"),
    ("error", "error_area"),
    ("error", "surface"),
    ("link", "background"),
    *((f"code_{kind}", "code") for kind in ("keyword", "string", "number", "comment", "name")),
]


def test_contrast_of_black_on_white_is_21() -> None:
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast("#FFFFFF", "#FFFFFF") == 1


@EVERY_PALETTE
@pytest.mark.parametrize(("text", "area"), TEXT_ON_AREA)
def test_palette_text_meets_wcag_aa(palette: Palette, text: str, area: str) -> None:
    assert contrast(getattr(palette, text), getattr(palette, area)) >= 4.5


@EVERY_PALETTE
def test_palette_tiers_differ_in_lightness_and_from_the_surface(palette: Palette) -> None:
    colours = [palette.tier(name) for name in TIERS]
    for first, second in itertools.pairwise(colours):
        assert contrast(first, second) > 1.3
    assert contrast(palette.drive, palette.surface) > 2


@EVERY_PALETTE
def test_palette_focus_is_seen_on_every_area(palette: Palette) -> None:
    for area in (palette.background, palette.surface):
        assert contrast(palette.focus, area) >= 3


@EVERY_PALETTE
def test_palette_colours_are_six_digits(palette: Palette) -> None:
    for field in dataclasses.fields(palette):
        value = getattr(palette, field.name)
        assert field.name == "is_dark" or re.fullmatch(r"#[0-9A-F]{6}", value), field.name


def test_colours_are_written_in_the_palette_only() -> None:
    found = [
        path.name
        for path in APP.rglob("*.py")
        if path.name != "palette.py" and re.search(r"#[0-9A-Fa-f]{6}\b", path.read_text("utf-8"))
    ]
    assert found == []


@EVERY_PALETTE
def test_style_sheet_braces_are_balanced(palette: Palette) -> None:
    sheet = style_sheet(palette)
    assert sheet.count("{") == sheet.count("}") > 40


@HIGH
@pytest.mark.parametrize(("text", "area"), TEXT_ON_AREA)
def test_high_contrast_text_meets_wcag_aaa(palette: Palette, text: str, area: str) -> None:
    assert contrast(getattr(palette, text), getattr(palette, area)) >= 7


@HIGH
def test_high_contrast_edges_are_as_strong_as_text(palette: Palette) -> None:
    for edge in (palette.line, palette.focus):
        assert contrast(edge, palette.surface) >= 7
