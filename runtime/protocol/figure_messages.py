"""The messages about figures of this PC that a person may state; see ``messages``."""

import enum

from runtime.protocol.base import Command, Reply
from runtime.protocol.machine import Measured
from runtime.protocol.values import Value


class FigureUnit(enum.StrEnum):
    """What a figure counts in."""

    GIB = "gib"
    GB_PER_S = "gb_per_s"
    """10^9 bytes per second."""
    WATT = "watt"
    J_PER_GB = "j_per_gb"
    """Joules for 10^9 bytes."""
    COUNT = "count"
    TEXT = "text"


class Figure(Value):
    """One figure of this PC: what was found, and what the person states in its place."""

    name: str
    """As in a machine profile, for example ``ram.read_gb_per_s``; a card's begins ``cards[ID].``"""
    unit: FigureUnit
    found: Measured | None = None
    """In the unit; None where nothing was found, or the figure is text."""
    problem: str = ""
    """Why it could not be measured, technically; empty if it was, or nobody tried yet."""
    found_text: str = ""
    stated: float | None = None
    stated_text: str = ""


class StatedFigures(Value):
    """The figures that a person states and a plan counts with, each with what was found instead."""

    figures: list[Figure]
    file: str
    """Where they are stated."""
    is_fixed: bool = False
    """Whether that file was named for this run and is not the one of the settings."""


class DescribeFigures(Command):
    """Tell the figures that can be stated. Closed by ``FiguresDescribed``."""

    folder: str = ""
    """Whose drive is meant; empty for the one of prepared copies."""
    is_fresh: bool = False
    """Forget what was measured before, and measure again: a few seconds."""


class StateFigure(Command):
    """State a figure, or take it back with neither number nor text. Closed as the one above."""

    name: str
    number: float | None = None
    text: str = ""
    folder: str = ""


class FiguresDescribed(Reply):
    """The figures in force."""

    figures: list[Figure]
    file: str
    """Where they are stated."""
    is_fixed: bool = False
    """Whether that file was named for this run, so that nothing is changed in it."""
