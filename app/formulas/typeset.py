"""One formula in LaTeX as SVG. Runs in the process for formulas alone: some take for ever."""

import re

MAX_SVG_CHARACTERS = 400_000
"""Larger pictures are not worth their time."""
INK = "currentColor"
"""The colour of all ink, which the window replaces by the one of its palette."""
SIZE_PX = 16
"""As large as the text around it looks."""
_VIEW_BOX = re.compile(r'viewBox="([-\d.e]+) ([-\d.e]+) ([-\d.e]+) ([-\d.e]+)"')

# WORKAROUND: an environment with a power or an index behind it fails an assertion in ziamath, and
# one in braces does not. Goes once ``\\begin{pmatrix}a\\end{pmatrix}^T`` can be set (not in 0.13).
_RAISED = re.compile(
    r"(\\begin\{(\w+)\}(?:(?!\\begin\{\2\}).)*?\\end\{\2\})(?=\s*[\^_])", re.DOTALL
)


class FormulaError(Exception):
    """A formula cannot be set; the text says why."""


def typeset(latex: str, *, is_block: bool) -> dict[str, str | float]:
    """Return the SVG of a formula, its width, and how far it reaches above and below the line.

    Raises ``FormulaError``, and whatever the library does for what is no formula.
    """
    from ziamath.config import config
    from ziamath.zmath import Latex

    config.svg2 = False
    latex = _RAISED.sub(r"{\1}", latex)
    svg = Latex(latex, size=SIZE_PX, color=INK, inline=not is_block).svg()
    box = _VIEW_BOX.search(svg)
    if box is None:
        raise FormulaError("its picture has no size")
    if len(svg) > MAX_SVG_CHARACTERS:
        raise FormulaError(f"its picture has {len(svg)} characters")
    # The line of writing is at zero.
    _, top, width, height = (float(number) for number in box.groups())
    return {"svg": svg, "width": width, "ascent": -top, "descent": height + top}
