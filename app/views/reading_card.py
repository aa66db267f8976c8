"""What was read from the drive, and what became of what was read ahead."""

from app.text.memory_words import ReadingWords, hints_line, read_line
from app.theme.palette import Palette
from app.views.pieces import Card, label
from app.views.tier_bar import TierBar

_COLOURS = ("bits_16", "ram", "line")
"""Useful, late, wasted."""


class ReadingCard(Card):
    """Outcomes of the last ten seconds, and bytes of the window that the curves have."""

    def __init__(self, palette: Palette) -> None:
        super().__init__(ReadingWords.TITLE)
        self.setToolTip(ReadingWords.EXPLAINED)
        self.setAccessibleDescription(ReadingWords.EXPLAINED)
        self._bar = TierBar(palette)
        self._hints = label(ReadingWords.NOTHING, "dim", is_wrapping=True)
        self._read = label("", "dim", is_wrapping=True)
        self.body.addWidget(self._bar)
        self.body.addWidget(self._hints)
        self.body.addWidget(self._read)

    def show_reading(
        self, hints: tuple[int, int, int], drive_bytes: float, window_s: float
    ) -> None:
        """Show outcomes, and the bytes of the window that is drawn."""
        line = hints_line(*hints)
        self._bar.show_parts(list(zip(_COLOURS, map(float, hints), strict=True)), line)
        self._bar.setVisible(any(hints))
        self._hints.setText(line)
        self._read.setText(read_line(drive_bytes, window_s))

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._bar.show_palette(palette)
