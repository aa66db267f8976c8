"""Cards of the Monitor page that show what is measured now."""

from collections.abc import Sequence

from PySide6.QtWidgets import QHBoxLayout, QSizePolicy

from app.graphs.plot import CurvePlot, DrawnCurve
from app.graphs.series import Curve, SampleSeries, Totals, shares
from app.state.telemetry import TimedNote
from app.text import monitor_phrases
from app.text.monitor_words import LiveWords
from app.text.units import percent
from app.theme import metrics
from app.theme.palette import Palette
from app.views.legend import Legend
from app.views.pieces import Card, label
from app.views.tier_bar import Dot, TierBar
from runtime.protocol.telemetry import RateLimits
from runtime.protocol.values import Tier

CAUSE_COLOURS = {"device": "vram", "compute": "ram", "drive_wait": "drive", "other": "line"}
MAX_NOTES_SHOWN = 4
_CURVES = (
    (Curve.RAM_READ, "ram", ()),
    (Curve.LINK, "vram", (6.0, 3.0)),
    (Curve.DRIVE, "drive", (2.0, 2.0)),
)


class HitCard(Card):
    """Which part of the experts came from one tier, by count and by bytes."""

    def __init__(self, palette: Palette, tier: Tier, name: str) -> None:
        super().__init__()
        self._tier = tier
        self._name = name
        self._dot = Dot(palette, tier.value)
        self._title = label(name, "dim", is_wrapping=True)
        self._figure = label("–", "figure")
        self._bytes = label("", "dim")
        head = QHBoxLayout()
        head.setSpacing(6)
        head.addWidget(self._dot)
        head.addWidget(self._title, 1)
        self.body.setSpacing(4)
        self.body.addLayout(head)
        self.body.addStretch(1)
        self.body.addWidget(self._figure)
        self.body.addWidget(self._bytes)
        self.setAccessibleName(name)

    def show_totals(self, totals: Totals, *, is_simulated: bool) -> None:
        """Show the tier's part; what has no look-ups leaves the numbers as they are."""
        suffix = f" ({LiveWords.SIMULATED})" if is_simulated else ""
        self._title.setText(f"{self._name}{suffix}")
        by_count, by_bytes = shares(totals.hits), shares(totals.hit_bytes)
        if by_count:
            self._figure.setText(percent(by_count[self._tier]))
            text = monitor_phrases.by_bytes(by_bytes[self._tier]) if by_bytes else ""
            self._bytes.setText(text)
            self.setAccessibleName(f"{self._title.text()}: {self._figure.text()}, {text}")

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._dot.show_palette(palette)


class ThroughputCard(Card):
    """What is read from RAM, sent to the device and read from the drive, beside what could be."""

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self._title = label(LiveWords.THROUGHPUT, "heading")
        self._unit = label("GB/s", "dim")
        head = QHBoxLayout()
        head.setSpacing(6)
        head.addWidget(self._title)
        head.addWidget(self._unit)
        head.addStretch(1)
        self.plot = CurvePlot(palette, LiveWords.THROUGHPUT)
        self._names = {
            Curve.RAM_READ: LiveWords.RAM_READ,
            Curve.LINK: LiveWords.LINK,
            Curve.DRIVE: LiveWords.DRIVE,
        }
        self._legend = Legend(palette, {curve: colour for curve, colour, _ in _CURVES})
        self.body.addLayout(head)
        self.body.addWidget(self.plot, 1)
        self.body.addWidget(self._legend)
        self._divisor = 1e9

    def show_curves(self, series: SampleSeries, now_s: float, *, has_device: bool) -> None:
        """Draw the window of the series; the unit is the one that fits its highest point."""
        found = {
            curve: series.segments(curve, now_s)
            for curve, _, _ in _CURVES
            if has_device or curve is not Curve.LINK
        }
        values = (y for parts in found.values() for part in parts for _, y in part)
        self._divisor, unit = monitor_phrases.throughput_unit(max(values, default=0.0))
        self._unit.setText(unit)
        self.plot.show_curves(
            [
                DrawnCurve(
                    colour,
                    [[(x, y / self._divisor) for x, y in part] for part in found[curve]],
                    dashes,
                )
                for curve, colour, dashes in _CURVES
                if curve in found
            ],
            series.window_s,
        )

    def show_numbers(self, totals: Totals, limits: RateLimits, *, has_device: bool) -> None:
        """Show the means of the last second beside the limits."""
        most = monitor_phrases.limits_by_curve(limits)
        texts = {}
        for curve, name in self._names.items():
            if has_device or curve is not Curve.LINK:
                rate = monitor_phrases.rate_of_limit(
                    totals.per_s(curve), most[curve], self._divisor
                )
                texts[curve] = f"{name} {rate}"
        self._legend.show_texts(texts)

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self.plot.show_palette(palette)
        self._legend.show_palette(palette)


class EnergyCard(Card):
    """Watts over the last minute, with what of them is measured and what a token costs."""

    def __init__(self, palette: Palette) -> None:
        super().__init__(LiveWords.ENERGY)
        self.plot = CurvePlot(palette, LiveWords.POWER)
        self._power = label(LiveWords.NO_POWER, "dim", is_wrapping=True)
        self._cost = label("", "dim", is_wrapping=True)
        self._sums = label("", "dim", is_wrapping=True)
        self.body.addWidget(self.plot, 1)
        for line in (self._power, self._cost, self._sums):
            self.body.addWidget(line)

    def show_curves(self, series: SampleSeries, now_s: float) -> None:
        """Draw the window of the series."""
        curve = DrawnCurve("accent", series.segments(Curve.POWER, now_s))
        self.plot.show_curves([curve], series.window_s)

    def show_numbers(self, totals: Totals, cost: str) -> None:
        """Show the mean of the last second, and the energy and money of a thousand tokens."""
        self._power.setText(monitor_phrases.power_line(totals))
        self._cost.setText(cost)
        self._cost.setVisible(bool(cost))

    def show_sums(self, sums: str) -> None:
        """Show what this session and this month took; empty before the first answer."""
        self._sums.setText(sums)
        self._sums.setVisible(bool(sums))

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self.plot.show_palette(palette)


class TokenCard(Card):
    """Where the time of a token goes."""

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self._title = label(LiveWords.TOKEN, "heading")
        self._bar = TierBar(palette, metrics.BAR_HEIGHT_LARGE)
        self._text = label(LiveWords.NO_TOKEN, "dim", is_wrapping=True)
        self.body.addWidget(self._title)
        self.body.addWidget(self._bar)
        self.body.addWidget(self._text)
        self.body.addStretch(1)

    def show_time(self, seconds: dict[str, float], tokens_per_s: float) -> None:
        """Show a split; without tokens the one before stays."""
        if tokens_per_s <= 0 or sum(seconds.values()) <= 0:
            return
        self._title.setText(monitor_phrases.token_title(tokens_per_s))
        line = monitor_phrases.token_parts(seconds, 1 / tokens_per_s)
        parts = [
            (CAUSE_COLOURS.get(cause, "line"), amount)
            for cause, amount in monitor_phrases.in_order(seconds)
        ]
        self._bar.show_parts(parts, line)
        self._text.setText(line)

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._bar.show_palette(palette)


class NotesCard(Card):
    """What happened, newest first, with the time of day."""

    def __init__(self) -> None:
        super().__init__(LiveWords.HAPPENED)
        self._text = label(LiveWords.NOTHING_HAPPENED, "dim", is_wrapping=True)
        self.body.addWidget(self._text)
        self.body.addStretch(1)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def show_notes(self, notes: Sequence[TimedNote]) -> None:
        """Show the newest of these; all of them are in the tooltip."""
        lines = [monitor_phrases.note_line(each.at_s, each.note) for each in notes]
        shown = "\n".join(lines[:MAX_NOTES_SHOWN]) or LiveWords.NOTHING_HAPPENED
        self._text.setText(shown)
        self._text.setToolTip("\n".join(lines))

    def text(self) -> str:
        """Return what is shown."""
        return self._text.text()
