"""The expert map with its modes, on the Monitor page."""

from PySide6.QtWidgets import (
    QButtonGroup,
    QCheckBox,
    QHBoxLayout,
    QSizePolicy,
    QToolButton,
    QWidget,
)

from app.graphs.expert_grid import MapMode
from app.graphs.expert_map import ExpertMapView, PointedExpert
from app.text import monitor_phrases
from app.text.monitor_words import MapWords
from app.theme.palette import Palette
from app.views.pieces import Card, label
from runtime.protocol.telemetry import ExpertMap


class MapCard(Card):
    """The expert map, by tier, use or bits, sorted or by number."""

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self._is_simulated = False
        self.map = ExpertMapView(palette)
        self.map.setAccessibleName(MapWords.NAME)
        self.map.pointed.connect(self._on_pointed)
        self._caption = label(MapWords.CAPTION_TIER, "dim")
        self._caption.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self._sorted = QCheckBox(MapWords.SORTED)
        self._sorted.setChecked(True)
        self._sorted.setToolTip(MapWords.SORTED_EXPLAINED)
        self._sorted.setAccessibleDescription(MapWords.SORTED_EXPLAINED)
        self._sorted.toggled.connect(self._show_mode)
        self._modes = QButtonGroup(self)
        self._mode = MapMode.TIER
        head = self._head = QHBoxLayout()
        head.setSpacing(2)
        head.addWidget(label(MapWords.TITLE, "heading"))
        head.addStretch(1)
        head.addWidget(self._sorted)
        head.addSpacing(12)
        for mode, name in (
            (MapMode.TIER, MapWords.TIER),
            (MapMode.USE, MapWords.USE),
            (MapMode.BITS, MapWords.BITS),
        ):
            choice = QToolButton()
            choice.setText(name)
            choice.setCheckable(True)
            choice.setChecked(mode is self._mode)
            choice.setProperty("look", "segment")
            choice.setAccessibleName(f"{MapWords.BY} {name}")
            choice.clicked.connect(lambda _=False, mode=mode: self.choose(mode))
            self._modes.addButton(choice)
            head.addWidget(choice)
        self.body.addLayout(head)
        self.body.addWidget(self.map, 1)
        self.body.addWidget(self._caption)

    def add_action(self, widget: QWidget) -> None:
        """Put a button at the end of the head line."""
        self._head.addSpacing(8)
        self._head.addWidget(widget)

    def choose(self, mode: MapMode) -> None:
        """Draw in another mode."""
        self._mode = mode
        self._show_mode()

    def show_map(self, experts: ExpertMap | None, *, is_simulated: bool) -> None:
        """Draw the newest map."""
        self._is_simulated = is_simulated
        if experts is not None:
            self.map.show_map(experts)
            if not experts.num_experts:
                self._caption.setText(MapWords.NO_EXPERTS)

    def show_numbers(self) -> None:
        """Say the map in words, for those who do not see it."""
        grid = self.map.grid
        if not grid.is_empty:
            counts = grid.num_in_tiers()
            self.map.setAccessibleDescription(
                monitor_phrases.map_described(counts, is_simulated=self._is_simulated)
            )

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self.map.show_palette(palette)

    def caption(self) -> str:
        """Return the line below the map."""
        return self._caption.text()

    def _show_mode(self) -> None:
        self.map.show_mode(self._mode, is_sorted=self._sorted.isChecked())
        self._on_pointed(None)

    def _on_pointed(self, pointed: PointedExpert | None) -> None:
        if pointed is None:
            captions = {
                MapMode.TIER: MapWords.CAPTION_TIER,
                MapMode.USE: MapWords.CAPTION_USE,
                MapMode.BITS: MapWords.CAPTION_BITS,
            }
            text = MapWords.WAITING if self.map.grid.is_empty else captions[self._mode]
            self._caption.setText(text)
            return
        grid = self.map.grid
        tier = monitor_phrases.TIER_ORDER[min(pointed.tier, 2)]
        self._caption.setText(
            monitor_phrases.pointed_expert(
                layer=pointed.layer,
                num_layers=grid.num_layers,
                expert=pointed.expert,
                num_experts=grid.num_experts,
                tier=monitor_phrases.tier_place(tier, is_simulated=self._is_simulated),
                bits=pointed.bits,
                uses=pointed.uses,
            )
        )
