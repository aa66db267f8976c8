"""The small expert map beside a chat."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.text import monitor_phrases
from app.text.monitor_words import MapWords
from app.theme.palette import Palette
from app.views.pieces import Card, label
from runtime.protocol.telemetry import ExpertMap

if TYPE_CHECKING:
    from app.graphs.expert_map import ExpertMapView

MAP_HEIGHT = 168


class SmallMapCard(Card):
    """The newest map; a click opens the Monitor page.

    What draws it is imported with the first map, because numpy would make the window late; a whole
    window has it imported before (``MapImport``).
    """

    clicked = Signal()

    def __init__(self, palette: Palette) -> None:
        super().__init__(MapWords.TITLE_SMALL)
        self._palette = palette
        self.map: ExpertMapView | None = None
        self._place = QWidget()
        self._place.setFixedHeight(MAP_HEIGHT)
        self._caption = label(MapWords.WAITING, "dim", is_wrapping=True)
        self.body.addWidget(self._place)
        self.body.addWidget(self._caption)

    def show_map(self, experts: ExpertMap | None, *, is_simulated: bool) -> None:
        """Draw the newest map."""
        if experts is None:
            return
        view = self.map or self._make_map()
        view.show_map(experts)
        text = monitor_phrases.map_size(experts.num_layers, experts.num_experts)
        if self._caption.text() != text:
            self._caption.setText(text)
            counts = view.grid.num_in_tiers()
            view.setAccessibleDescription(
                monitor_phrases.map_described(counts, is_simulated=is_simulated)
            )

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self._palette = palette
        if self.map is not None:
            self.map.show_palette(palette)

    def _make_map(self) -> "ExpertMapView":
        from app.graphs.expert_map import ExpertMapView

        view = self.map = ExpertMapView(self._palette, is_small=True)
        view.setFixedHeight(MAP_HEIGHT)
        view.setAccessibleName(MapWords.NAME)
        view.setToolTip(MapWords.OPEN)
        view.clicked.connect(self.clicked)
        self.body.replaceWidget(self._place, view)
        self._place.deleteLater()
        return view
