"""Formulas to vectors."""

import json

import pytest

from app.formulas import __main__ as worker
from app.formulas import typeset as module
from app.formulas.typeset import INK, FormulaError, typeset

# ziamath finds its font in a way that Python 3.11 and 3.12 call old, and 3.13 does not.
pytestmark = pytest.mark.filterwarnings("ignore:path is deprecated:DeprecationWarning")


def number(value: str | float) -> float:
    assert isinstance(value, float)
    return value


@pytest.mark.parametrize(
    "latex",
    [
        r"ax^2+bx+c=0",
        r"x_{1,2} = \frac{-b \pm \sqrt{b^2-4ac}}{2a}",
        r"\sum_{i=1}^{n} i",
        r"\begin{pmatrix} a & b \\ c & d \end{pmatrix}^{-1}",
        r"\begin{align}a&=b\\c&=d\end{align}",
        r"\begin{cases}a&x>0\\b&\text{sonst}\end{cases}",
        r"\mathcal{L}(\theta)=-\sum_i y_i\log\hat{y}_i",
        r"\nabla\cdot\vec{E}=\frac{\rho}{\varepsilon_0}",
    ],
)
def test_formula_becomes_paths_of_one_colour(latex: str) -> None:
    for is_block in (False, True):
        found = typeset(latex, is_block=is_block)
        svg = found["svg"]
        assert isinstance(svg, str)
        assert "<path" in svg
        assert "<text" not in svg
        assert INK in svg
        assert min(number(found["width"]), number(found["ascent"])) > 5
        assert number(found["descent"]) > -5


def test_letter_below_the_line_reaches_below_it() -> None:
    above, below = typeset("x", is_block=False), typeset("y", is_block=False)
    assert number(below["descent"]) > number(above["descent"])


def test_sum_in_a_block_is_higher_than_in_a_line() -> None:
    line, block = (typeset(r"\sum_{i=1}^{n} i", is_block=each) for each in (False, True))
    assert number(block["ascent"]) > number(line["ascent"])


def test_picture_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SVG_CHARACTERS", 100)
    with pytest.raises(FormulaError, match="characters"):
        typeset("x", is_block=False)


@pytest.mark.parametrize("latex", [r"\frac{a", r"\begin{nonsense}x", "^", "&", r"\frac{1}{" * 400])
def test_what_is_no_formula_gets_an_error_as_its_reply(latex: str) -> None:
    reply = worker.reply_to(json.dumps({"latex": latex, "is_block": True}))
    assert set(reply) in ({"error"}, {"svg", "width", "ascent", "descent"})
    assert "error" in reply or latex in ("^", "&", r"\begin{nonsense}x")
