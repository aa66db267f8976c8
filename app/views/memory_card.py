"""The memory map: who holds which part of RAM and VRAM, and what is left."""

from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.state.memory_map import MemoryKind, MemoryMap
from app.text.memory_words import MemoryWords, memory_part, memory_title
from app.theme import metrics
from app.theme.palette import Palette
from app.views.legend import Legend
from app.views.pieces import Card, label
from app.views.tier_bar import TierBar

_COLOURS = {
    MemoryKind.DENSE: "use_high",
    MemoryKind.KV_CACHE: "bits_16",
    MemoryKind.WORK: "bits_8",
    MemoryKind.PROGRAM: "use_low",
    MemoryKind.OTHERS: "dim",
    MemoryKind.RESERVE: "bits_4",
    MemoryKind.FREE: "empty",
}


class MemoryRow(QWidget):
    """One memory: a bar, and below it each part that is not nothing."""

    def __init__(self, palette: Palette, colour: str) -> None:
        super().__init__()
        self._title = label("", "strong")
        self._bar = TierBar(palette, metrics.BAR_HEIGHT_LARGE)
        self._colours = {kind: _COLOURS.get(kind, colour) for kind in MemoryKind}
        self._legend = Legend(palette, self._colours)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(self._title)
        layout.addWidget(self._bar)
        layout.addWidget(self._legend)

    def show_memory(self, place: str, memory: MemoryMap) -> None:
        """Show who holds what."""
        title = memory_title(place, memory.total_bytes)
        self._title.setText(title)
        parts = {kind: amount for kind, amount in memory.parts.items() if amount > 0}
        texts = {kind: memory_part(kind, amount) for kind, amount in parts.items()}
        self._bar.show_parts(
            [(self._colours[kind], amount) for kind, amount in parts.items()],
            f"{title}: {', '.join(texts.values())}",
        )
        self._legend.show_texts(texts)

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._bar.show_palette(palette)
        self._legend.show_palette(palette)


class MemoryCard(Card):
    """Both memories; VRAM only where the model uses a device."""

    def __init__(self, palette: Palette) -> None:
        super().__init__(MemoryWords.TITLE)
        self.vram = MemoryRow(palette, "vram")
        self.ram = MemoryRow(palette, "ram")
        self.vram.hide()
        self.body.addWidget(self.vram)
        self.body.addWidget(self.ram)

    def show_memory(self, ram: tuple[str, MemoryMap], vram: tuple[str, MemoryMap] | None) -> None:
        """Show both, each with the name of its place."""
        self.ram.show_memory(*ram)
        self.vram.setVisible(vram is not None)
        if vram is not None:
            self.vram.show_memory(*vram)

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self.vram.show_palette(palette)
        self.ram.show_palette(palette)
