"""The expert map with its modes, on the Monitor page."""

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QButtonGroup,
    QCheckBox,
    QHBoxLayout,
    QSizePolicy,
    QWidget,
)

from app.graphs.expert_grid import MapMode
from app.graphs.expert_map import ExpertMapView, PointedExpert
from app.graphs.layer_bars import LayerBars
from app.text import map_phrases, monitor_phrases
from app.text.monitor_words import MapWords
from app.theme.palette import Palette
from app.views.legend import Legend
from app.views.pieces import Card, ToolButton, label
from runtime.protocol.telemetry import ExpertMap


class MapCard(Card):
    """The expert map, by tier, use or bits, sorted or by number."""

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self._is_simulated = False
        self._expert_bytes = 0
        self.map = ExpertMapView(palette)
        self.map.setAccessibleName(MapWords.NAME)
        self.map.pointed.connect(self._on_pointed)
        self.bars = LayerBars(self.map.grid, palette)
        self.bars.setAccessibleName(MapWords.LAYER_HITS)
        self.bars.pointed.connect(self._on_layer_pointed)
        self._caption = label(MapWords.CAPTION_TIER, "dim", is_wrapping=True)
        self._caption.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        # Room for two lines, so that the map stays as high as it is whatever is said below it.
        self._caption.setFixedHeight(2 * self._caption.fontMetrics().lineSpacing())
        self._caption.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._legend = Legend(palette, {name: name for name in map_phrases.COLOURS})
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
            choice = ToolButton()
            choice.setText(name)
            choice.setCheckable(True)
            choice.setChecked(mode is self._mode)
            choice.setProperty("look", "segment")
            choice.setAccessibleName(f"{MapWords.BY} {name}")
            choice.clicked.connect(lambda _=False, mode=mode: self.choose(mode))
            self._modes.addButton(choice)
            head.addWidget(choice)
        self.body.addLayout(head)
        pictures = QHBoxLayout()
        pictures.setSpacing(6)
        pictures.addWidget(self.map, 1)
        pictures.addWidget(self.bars)
        self.body.addLayout(pictures, 1)
        self.body.addWidget(self._legend)
        self.body.addWidget(self._caption)

    def add_action(self, widget: QWidget) -> None:
        """Put a button at the end of the head line."""
        self._head.addSpacing(8)
        self._head.addWidget(widget)

    def choose(self, mode: MapMode) -> None:
        """Draw in another mode."""
        self._mode = mode
        self._show_mode()

    def show_map(
        self, experts: ExpertMap | None, *, is_simulated: bool, expert_bytes: int = 0
    ) -> None:
        """Draw the newest map."""
        self._is_simulated = is_simulated
        self._expert_bytes = expert_bytes
        if experts is not None:
            if self.map.show_map(experts):
                self.bars.renew()
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
            shares = [grid.layer_hits(layer) for layer in range(grid.num_layers)]
            self.bars.setAccessibleDescription(monitor_phrases.bars_described(shares))
            self._show_legend()

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        self.map.show_palette(palette)
        self.bars.show_palette(palette)
        self._legend.show_palette(palette)

    def caption(self) -> str:
        """Return the line below the map."""
        return self._caption.text()

    def legend(self) -> Sequence[str]:
        """Return what colours are said to mean."""
        return self._legend.texts()

    def _show_legend(self) -> None:
        grid = self.map.grid
        if grid.is_empty:
            return
        if self._mode is MapMode.TIER:
            texts = map_phrases.tier_legend(grid.num_in_tiers(), is_simulated=self._is_simulated)
        elif self._mode is MapMode.BITS:
            texts = map_phrases.bits_legend(grid.num_of_bits())
        else:
            texts = map_phrases.use_legend()
        self._legend.show_texts(texts)

    def _show_mode(self) -> None:
        self.map.show_mode(self._mode, is_sorted=self._sorted.isChecked())
        self._show_legend()
        self._on_pointed(None)

    def _on_pointed(self, pointed: PointedExpert | None) -> None:
        if pointed is None:
            captions = {
                MapMode.TIER: MapWords.CAPTION_TIER,
                MapMode.USE: MapWords.CAPTION_USE,
                MapMode.BITS: MapWords.CAPTION_BITS,
            }
            text = f"{captions[self._mode]} {MapWords.CAPTION_BARS}"
            self._caption.setText(MapWords.WAITING if self.map.grid.is_empty else text)
            self.map.setToolTip("")
            return
        grid = self.map.grid
        tier = monitor_phrases.TIER_ORDER[min(pointed.tier, 2)]
        text = monitor_phrases.pointed_expert(
            layer=pointed.layer,
            num_layers=grid.num_layers,
            expert=pointed.expert,
            num_experts=grid.num_experts,
            tier=monitor_phrases.tier_place(tier, is_simulated=self._is_simulated),
            bits=pointed.bits,
            uses=pointed.uses,
        )
        text = monitor_phrases.with_bytes(text, self._expert_bytes)
        self._caption.setText(text)
        self.map.setToolTip(text)

    def _on_layer_pointed(self, layer: int) -> None:
        if layer < 0:
            self._on_pointed(None)
            self.bars.setToolTip("")
            return
        grid = self.map.grid
        text = monitor_phrases.pointed_layer(layer, grid.num_layers, grid.layer_hits(layer))
        self._caption.setText(text)
        self.bars.setToolTip(text)
