"""Small line charts as SVG, for pages that show measured curves."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from xml.sax.saxutils import escape

WIDTH, HEIGHT, MARGIN = 420, 280, 44
COLOURS = ("#8a8f98", "#2f6fed", "#1f9d63", "#b4531a")


@dataclasses.dataclass(frozen=True)
class Curve:
    """One line of a chart: its name and its points, x and y both from 0 to 100."""

    name: str
    points: Sequence[tuple[float, float]]


def chart(title: str, x_label: str, y_label: str, curves: Sequence[Curve]) -> str:
    """Return a chart of curves over a white ground, both axes from 0 to 100."""
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            'font-family="sans-serif" font-size="11">'
        ),
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{WIDTH / 2}" y="18" text-anchor="middle" font-size="13">{escape(title)}</text>',
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x_label)}</text>',
        (
            f'<text transform="translate(12 {HEIGHT / 2}) rotate(-90)" text-anchor="middle">'
            f"{escape(y_label)}</text>"
        ),
    ]
    for value in range(0, 101, 25):
        x, y = _place(value, value)
        left, bottom = _place(0, 0)
        right, top = _place(100, 100)
        lines += [
            f'<path d="M{left} {y}H{right}M{x} {bottom}V{top}" stroke="#e3e5e8"/>',
            f'<text x="{left - 6}" y="{y + 4}" text-anchor="end">{value}</text>',
            f'<text x="{x}" y="{bottom + 14}" text-anchor="middle">{value}</text>',
        ]
    for number, curve in enumerate(curves):
        colour = COLOURS[number % len(COLOURS)]
        places = " ".join(f"{x},{y}" for x, y in (_place(*point) for point in curve.points))
        lines += [
            f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="2"/>',
            (
                f'<text x="{WIDTH - MARGIN - 4}" y="{HEIGHT - MARGIN - 12 - 15 * number}" '
                f'text-anchor="end" fill="{colour}">{escape(curve.name)}</text>'
            ),
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _place(x: float, y: float) -> tuple[float, float]:
    """Return where a point of the axes lies in the picture."""
    width, height = WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN
    return round(MARGIN + x / 100 * width, 1), round(HEIGHT - MARGIN - y / 100 * height, 1)
